#!/usr/bin/env bash
# Runs a bundle (tests/gpu/bundle.sh) on a machine with a GPU: run.sh [--quick].
#
# Every gpu test, the same under each tool of compute-sanitizer that is there (not with --quick),
# and the benchmarks. Prints what goes into docs/benchmarks.md, and keeps it in results/ with the
# output of each program. Exit status 1 when a test failed or a program ran none; 0 without a
# device, where nothing is measured.
set -uo pipefail
cd "$(dirname "$0")"
quick=${1:-}
cuda=${CUDA_HOME:-/usr/local/cuda}
# Torch's wheel brings CUDA's libraries along; found without loading torch, which takes seconds.
torch=$(python3 -c 'import importlib.util as u, os; s = u.find_spec("torch")
print(os.path.dirname(s.origin) if s else "")' 2>/dev/null)
paths=$PWD/lib:$cuda/lib64:$cuda/lib:$cuda/extras/CUPTI/lib64
if [[ -n $torch ]]; then
  paths+=:$torch/lib
  for folder in "$torch"/../nvidia/*/lib; do paths+=:$folder; done
fi
export LD_LIBRARY_PATH=$paths${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PATH=$PATH:$cuda/bin
export TETRION_GOLDEN_DIR=$PWD/golden

device=$(./device_info 2>&1)
case $? in
  0) ;;
  3) echo "no CUDA device: not measured"; exit 0 ;;
  *) echo "the CUDA device cannot be asked: $device"; exit 1 ;;
esac
rm -rf results
mkdir -p results
{
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -1)
  echo "device $device, driver ${driver:-unknown}"
  echo "date $(date -u +%Y-%m-%d)"
  cat build.txt
} >results/machine.txt

# Programs of the tensor library take no other version of it than they were built with.
wanted_torch=$(sed -n 's/^torch //p' build.txt)
here_torch=$(sed -n "s/^__version__ = '\([^+]*\).*/\1/p" "${torch:-.}/version.py" 2>/dev/null)
links_torch() { [[ $(ldd "$1" 2>/dev/null) == *libtorch* ]]; }  # PROGRAM
runs_here() {  # PROGRAM
  [[ $here_torch == "$wanted_torch" ]] || ! links_torch "$1" && return
  say "not run $(basename "$1"): built with torch $wanted_torch, here is ${here_torch:-none}"
  return 1
}

failed=0
say() { echo "$*" | tee -a results/checks.txt; }
check() {  # NAME PROGRAM COMMAND...: its output in results/NAME.log
  local name=$1 program=$2 status count
  shift 2
  "$@" >"results/$name.log" 2>&1
  status=$?
  if ((status != 0)); then
    failed=1
    say "FAILED $name (exit status $status), results/$name.log ends with:"
    tail -20 "results/$name.log"
    return
  fi
  count=$(grep -E '^\[  (PASSED|SKIPPED) +\] [0-9]+ test' "results/$name.log" | tr -d '[]' |
    tr -s ' \n' ' ')
  if [[ $count =~ PASSED\ [1-9] ]]; then
    say "passed $name:$count"
  elif grep -qx 'without CUDA in torch' build.txt && links_torch "$program"; then
    say "not run $name: built without CUDA in torch"
  else
    failed=1
    say "NOT RUN $name:${count:- no test}, results/$name.log says why"
  fi
}
programs=()
for test in tests/*; do
  [[ -f $test ]] || continue
  if [[ ! -x $test ]]; then
    failed=1
    say "left out $(basename "$test"): not executable"
  elif runs_here "$test"; then
    programs+=("$test")
  fi
done
if ((${#programs[@]} == 0)); then
  failed=1
  say "FAILED: no test ran"
fi
for test in "${programs[@]}"; do check "$(basename "$test")" "$test" timeout 600 "$test"; done
if [[ $quick != --quick ]] && command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck; do
    for test in "${programs[@]}"; do
      # Its own client of CUPTI; and calls that a test expects to fail are no errors.
      [[ $test != *cupti* ]] || continue
      check "$tool-$(basename "$test")" "$test" timeout 600 compute-sanitizer --tool $tool \
        --report-api-errors no --error-exitcode 9 "$test"
    done
  done
else
  say "compute-sanitizer: not run"
fi
for bench in bench/*; do
  [[ -x $bench ]] || continue
  name=$(basename "$bench")
  timeout 600 "$bench" $quick >"results/$name.json" 2>"results/$name.log" ||
    { failed=1; say "FAILED $name, see results/"; }
done
python3 -B report.py results | tee results/report.md
exit $failed
