# Stages of .ci/run, which sources this in the tree's root: how they are run, told and ended.
#
# A run that takes 90 minutes is killed and tells nothing. So at TETRION_CI_SECONDS all that runs
# under `bounded`, `beside` and `ended` ends, and what is left out is named. What had failed by then
# fails the run.
set -uo pipefail

logs=build/ci
mkdir -p "$logs"
limit=${TETRION_CI_SECONDS:-4700}
[[ $limit =~ ^[1-9][0-9]*$ ]] || {
  echo "$0: TETRION_CI_SECONDS=$limit: expected seconds from 1" >&2
  exit 2
}
deadline=$limit  # of the present stage, in seconds since the run began
readonly LACKS=77 CUT=124  # statuses: the machine lacks what a stage needs; its deadline came
# What failed stages complain of. ctest's ***Skipped is no complaint.
complaint='error:|cmake error|: failure|^(fail|error)|assertion|\[  failed|\*\*\*[^s]|no such'
complaint+='|  survived  |  broken  |segmentation fault|core dumped|sanitizer:'
failed=()
summary=()
export PYTHONUNBUFFERED=1  # a stage that is ended has printed what it found

# stage NAME COMMAND...: runs COMMAND, shows its output, keeps it in build/ci/NAME.log.
stage() {
  local name=$1 start=$SECONDS status result=ok
  shift
  printf '\n=== %s\n' "$name"
  "$@" 2>&1 | tee "$logs/$name.log"
  status=${PIPESTATUS[0]}
  if ((status == LACKS)); then
    result="not run: this machine lacks what it needs, see above"
  elif ((status == CUT && SECONDS >= deadline)) &&
    ! grep -q -a -i -E "$complaint" "$logs/$name.log"; then
    result="NOT FINISHED: no time left on this machine; nothing had failed"
  elif ((status != 0)); then
    result="FAILED (exit status $status)"
    failed+=("$name")
  fi
  told "$name" $((SECONDS - start)) "$result"
}
told() { summary+=("$(printf '%-12s %5d s  %s' "$@")"); }

# within PERCENT NAME COMMAND...: a stage that may take so much of the time left.
within() {
  local percent=$1 name=$2 left=$((limit - SECONDS))
  shift 2
  if ((left <= 0)) && ! has_failed "$name" "build-$name"; then
    told "$name" 0 "NOT RUN: no time left on this machine"
    return
  fi
  deadline=$((SECONDS + left * percent / 100))
  stage "$name" "$@"
  deadline=$limit
}
# has_failed NAME...: whether one that was begun beside has ended with a failure.
has_failed() {
  local name
  for name in "$@"; do
    [[ ! -s $logs/$name.status || $(<"$logs/$name.status") =~ ^(0|$LACKS|$CUT)$ ]] || return 0
  done
  return 1
}

# end_group PID: ends a process group, which has 40 s to put things in order.
end_group() {
  local tries
  kill -TERM -- "-$1" 2>/dev/null
  for ((tries = 0; tries < 200; ++tries)); do
    kill -0 -- "-$1" 2>/dev/null || return 0
    sleep 0.2
  done
  kill -KILL -- "-$1" 2>/dev/null
}

# bounded COMMAND...: COMMAND, in a process group of its own, which is ended at the deadline.
bounded() {
  local pid
  set -m
  "$@" </dev/null &
  pid=$!
  set +m
  echo "$pid" >"$logs/bounded.pid"
  until ! kill -0 "$pid" 2>/dev/null; do
    if ((SECONDS >= deadline)); then
      end_group "$pid"
      rm -f "$logs/bounded.pid"
      return "$CUT"
    fi
    sleep 0.2
  done
  rm -f "$logs/bounded.pid"
  wait "$pid"
}

# beside NAME COMMAND...: begins COMMAND; a stage `ended NAME` takes its output and status over.
beside() {
  local name=$1
  shift
  rm -f "$logs/$name.status"
  set -m
  { "$@" >"$logs/$name.beside" 2>&1; echo $? >"$logs/$name.status"; } </dev/null &
  echo $! >"$logs/$name.pid"
  set +m
}
ended() {
  local pid
  pid=$(<"$logs/$1.pid")
  until [[ -s $logs/$1.status ]]; do
    if ((SECONDS >= deadline)); then
      end_group "$pid"
      [[ ! -s $logs/$1.status ]] || break  # it was about to end by itself
      echo "$CUT" >"$logs/$1.status"
      grep -a -i -E "$complaint" "$logs/$1.beside" | tail -n 30
      tail -n 3 "$logs/$1.beside"
      return "$CUT"
    elif ! kill -0 -- "-$pid" 2>/dev/null && [[ ! -s $logs/$1.status ]]; then
      echo "error: $1 was killed"
      echo 1 >"$logs/$1.status"
    fi
    sleep 0.2
  done
  cat "$logs/$1.beside"
  return "$(<"$logs/$1.status")"
}

# What still runs ends with the run, also with one that is interrupted.
end_all() {
  local file
  for file in "$logs"/*.pid; do
    [[ ! -e $file || -s ${file%.pid}.status ]] || end_group "$(<"$file")" &
  done
  wait
}
rm -f "$logs"/*.pid "$logs"/*.status
trap end_all EXIT

# finish: the last lines of the run, and its exit status.
finish() {
  local name
  printf '\n=== stages\n'
  printf '%s\n' "${summary[@]}"
  printf '\n=== the whole test suite (cpu preset)\n'
  sed -n '/% tests passed/,$p' "$logs/tests.log"
  ((${#failed[@]})) || exit 0
  # Again, where a reader of the last lines finds it.
  for name in "${failed[@]}"; do
    printf '\n=== what failed in %s\n' "$name"
    grep -n -a -i -E "$complaint" "$logs/$name.log" | cut -c1-300 | head -n 40
  done
  echo "failed stages: ${failed[*]}"
  exit 1
}
