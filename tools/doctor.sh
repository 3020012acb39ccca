#!/usr/bin/env bash
# Says what is missing or misconfigured on this machine: one line a finding, with the line that
# mends it. Changes nothing. Exit status 1 when something FAILs. Usage: doctor.sh [--shm-dir DIR]
# Or the shared memory that a run of these settings needs: doctor.sh --shm [SETTING...]
# TETRION_SHM_DIR and TETRION_RUNS_DIR name the folders to look at, as they do for ./tetrion up.
set -uo pipefail

root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)
shm_dir=${TETRION_SHM_DIR:-/dev/shm/tetrion-$(id -u)}
usage="usage: ./tetrion doctor [--shm-dir DIR | --shm [SETTING...]]"
case ${1:-} in
  --shm-dir | --shm-dir=*)
    if [[ $1 == *=* ]]; then shm_dir=${1#*=}; else shm_dir=${2:-}; fi
    if [[ -z $shm_dir ]]; then
      echo "--shm-dir needs a folder; $usage" >&2
      exit 2
    fi
    ;;
  --shm)
    program=$root/build/cpu/bin/tetrion-shm-size
    if [[ ! -x $program ]]; then
      echo "nothing is built here yet: ./tetrion up builds what says how large the regions are" >&2
      exit 1
    fi
    exec "$program" "${@:2}"
    ;;
  "") ;;
  --help | -h)
    echo "$usage"
    exit 0
    ;;
  *)
    echo "$usage" >&2
    exit 2
    ;;
esac
. "$root/tools/processor.sh"
readonly mib=1024 # KiB
failed=0

ok() { printf 'ok    %s\n' "$*"; }
warn() { printf 'warn  %s\n' "$*"; }
fail() {
  printf 'FAIL  %s\n' "$*"
  failed=1
}

# The folder itself, or the nearest above it that is there.
existing() {
  local folder=$1
  while [[ ! -d $folder ]]; do folder=$(dirname -- "$folder"); done
  printf '%s\n' "$folder"
}

entries() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"; }

check_packages() {
  local wanted have missing=() package
  if ! command -v dpkg-query >/dev/null; then
    warn "packages: no dpkg-query here; install the counterparts of deploy/packages.txt by hand"
    return
  fi
  mapfile -t wanted < <(entries "$root/deploy/packages.txt")
  have=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null)
  for package in "${wanted[@]}"; do
    grep -qxF "installed $package" <<<"$have" || missing+=("$package")
  done
  if ((${#missing[@]})); then
    fail "packages: ${#missing[@]} missing; as root run: apt-get update &&" \
      "apt-get install -y --no-install-recommends ${missing[*]}"
  else
    ok "packages: all ${#wanted[@]} of deploy/packages.txt"
  fi
}

check_wheels() {
  local line name missing=0
  while read -r line; do
    line=${line%% *}
    name=${line%%==*}
    [[ -d $root/.deps/torch/${name//-/_}-${line##*==}.dist-info ]] || missing=1
  done < <(entries "$root/deploy/wheels.txt")
  if ((missing)); then
    ok "libtorch: not unpacked; --algo dreamer, --network conv, ./tetrion test and sweep download" \
      "it (545 MB, once)"
  else
    ok "libtorch: unpacked in .deps/torch"
  fi
}

check_build() {
  if [[ -x $root/build/cpu/bin/tetrion-up ]]; then
    ok "build: build/cpu/bin/tetrion-up is there"
  else
    warn "build: nothing built yet; ./tetrion up builds it (minutes, once)"
  fi
}

# Which arithmetic networks run with: "baseline" is what the build asks for, AVX2.
check_kernels() {
  local program=$root/build/cpu/bin/tetrion-kernels name
  [[ -x $program ]] || return 0
  if name=$("$program"); then
    ok "kernels: $name"
  else
    fail "kernels: $program ended with status $?; if it was built on another processor," \
      "remove '$root/build/cpu' and run ./tetrion up"
  fi
}

check_processor() {
  local missing
  missing=$(missing_features "$root")
  if [[ -z $missing ]]; then
    ok "processor: has all that programs are compiled for (x86-64-v3)"
  else
    fail "processor: lacks $missing; programs need x86-64-v3 (Intel Haswell, AMD Excavator or" \
      "newer); a virtual machine may hide it: give it the host's model"
  fi
}

check_machine() {
  local cores memory
  cores=$(nproc)
  if ((cores >= 2)); then
    ok "cores: $cores"
  else
    warn "cores: 1; actors and learner take turns: expect half the speed; give the machine 2"
  fi
  memory=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
  if ((memory >= 4096)); then
    ok "memory: $memory MiB available"
  else
    warn "memory: $memory MiB available; compiling needs 2 GiB a job: TETRION_JOBS=1 ./tetrion up"
  fi
}

# Rings and weights slots are allocated whole at start.
check_shm() {
  local size free mount parent
  parent=$(existing "$shm_dir")
  read -r size free mount < <(df -Pk "$parent" | awk 'NR == 2 {print $2, $4, $6}')
  local mend="enlarge it: mount -o remount,size=1g $mount (in compose the tmpfs volume's size key)"
  if ((free < 64 * mib)); then
    fail "shared memory: $parent has $((free / mib)) MiB free of $((size / mib)); $mend"
  elif ((free < 256 * mib)); then
    warn "shared memory: $parent has $((free / mib)) MiB free of $((size / mib)); $mend"
  else
    ok "shared memory: $parent has $((free / mib)) MiB free of $((size / mib))"
  fi
  if [[ ! -d $shm_dir ]]; then return; fi
  if [[ $(stat -c %u "$shm_dir") != "$(id -u)" ]]; then
    fail "shared memory: $shm_dir belongs to another user; start with another --shm-dir"
  elif [[ $(stat -c %a "$shm_dir") != 700 ]]; then
    fail "shared memory: $shm_dir is open to others; run: chmod 700 '$shm_dir'"
  fi
}

check_files() {
  local soft hard
  soft=$(ulimit -Sn)
  hard=$(ulimit -Hn)
  if [[ $hard == unlimited ]] || ((hard >= 4096)); then
    ok "open files: $soft, may be raised to $hard"
  else
    warn "open files: at most $hard, enough for $((hard / 4)) actors; raise it as root in" \
      "/etc/security/limits.conf (in compose: ulimits: nofile)"
  fi
}

check_cuda() {
  local nvcc release
  if nvcc=$(PATH="$PATH:/usr/local/cuda/bin" command -v nvcc); then
    release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    if ((${release%%.*} >= 13)); then
      ok "CUDA toolkit: $release"
    else
      warn "CUDA toolkit: $release, the cuda preset needs 13; the CPU build does not"
    fi
  else
    ok "CUDA toolkit: none (only the cuda preset needs one)"
  fi
  if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
    ok "CUDA device: $(nvidia-smi -L | head -n 1)"
  else
    ok "CUDA device: none (GPU tests skip)"
  fi
}

# A region's owner holds an exclusive flock for life; the kernel drops it at the owner's death.
check_regions() {
  local file pid live=0 dead=() bytes=0
  if [[ ! -d $shm_dir || ! -f $shm_dir/.lock ]]; then
    ok "regions: none in $shm_dir"
    return
  fi
  exec {guard}<"$shm_dir/.lock"
  if ! flock -w 5 -s "$guard"; then
    warn "regions: $shm_dir/.lock was held for 5 s; see by whom: fuser '$shm_dir/.lock'"
    return
  fi
  for file in "$shm_dir"/*; do
    [[ -f $file && $file != *.sock.lock ]] || continue
    pid=$(od -An -t u4 -j 56 -N 4 "$file" 2>/dev/null | tr -d ' ')
    if flock -n -s "$file" true; then
      dead+=("$(basename "$file") (owner was pid ${pid:-unknown})")
      bytes=$((bytes + $(stat -c %s "$file")))
    else
      live=$((live + 1))
    fi
  done
  exec {guard}<&-
  ok "regions: $live with a living owner in $shm_dir"
  if ((${#dead[@]})); then
    warn "regions: ${#dead[@]} left by dead owners, $((bytes / 1048576)) MiB; the next run" \
      "removes them, or with no run alive: rm '$shm_dir'/*"
    printf '      %s\n' "${dead[@]}"
  fi
}

check_runs() {
  local runs=${TETRION_RUNS_DIR:-$root/runs} folder
  folder=$(existing "$runs")
  if [[ -w $folder ]]; then
    ok "runs: $runs is writable, $(df -Pm "$folder" | awk 'NR == 2 {print $4}') MiB free"
  else
    fail "runs: $folder is not writable; run: chown -R $(id -un) '$folder', or use --runs-dir"
  fi
}

check_packages
check_wheels
check_build
check_processor
check_kernels
check_machine
check_shm
check_files
check_cuda
check_regions
check_runs
exit "$failed"
