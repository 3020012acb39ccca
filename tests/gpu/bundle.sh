#!/usr/bin/env bash
# Packs what a machine with a GPU runs into one folder: bundle.sh [--services] [FOLDER]
# (build/gpu/bundle). --services: coordinator, actor, learner, up and eval come along, and tests
# that link what these do.
#
# Builds every test with the label gpu and every tetrion_cuda_bench with the cuda preset and copies
# them there with run.sh, which needs CUDA 13, python3 with torch's wheel and a C++ runtime, and
# nothing installed. Programs that link torch are among them where its wheel is unpacked in
# .deps/torch (./tetrion install); they need the same version of it there. DreamerV3's updates are
# computed on the device where TETRION_TORCH_ROOT names a folder that has torch's part for CUDA
# (libtorch_cuda.so), too. Ends with an error when a program links what that machine lacks, or the
# folder is over its limit. Needs nvcc and no device.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build/gpu
services=() services_tests=()
if [[ ${1:-} == --services ]]; then
  services=(tetrion-{coordinator,actor,actor-plain,learner,up,eval})
  shift
fi
folder=${1:-$build/bundle}
most_mib=60
# What the machine has, by the name of the shared library: the system's, CUDA's, torch's.
present='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libutil|libstdc\+\+|libgcc_s'
present+='|libresolv|libcuda|libcudart|libcupti|libtorch|libtorch_cpu|libtorch_cuda'
present+='|libc10|libc10_cuda)\.so'
# What must not come along, although it could.
refused='^lib(zmq|boost_|prometheus|sqlite3|flatbuffers)'

with_torch=OFF
torch_root=${TETRION_TORCH_ROOT:-$PWD/.deps/torch}
torch=$(sed -n "s/^__version__ = '\([^+]*\).*/\1/p" .deps/torch/torch/version.py 2>/dev/null) ||
  true
[[ -z $torch ]] || with_torch=ON
mkdir -p "$build"
PATH=$PATH:/usr/local/cuda/bin
cmake --preset cuda -B "$build" -DTETRION_BENCH=ON -DTETRION_TORCH=$with_torch \
  -DTETRION_TORCH_ROOT="$torch_root" \
  >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 1; }
((${#services[@]} == 0)) || mapfile -t services_tests <"$build/services_gpu_tests.txt"
cmake --build "$build" --target gpu_programs "${services[@]}" "${services_tests[@]##*/}" -- \
  -j "${JOBS:-$(nproc)}"

rm -rf "$folder"
mkdir -p "$folder"/{tests,bench,services,lib}
copy() {  # PROGRAM FOLDER: without names that nothing loads by
  strip --strip-unneeded -o "$folder/$2/$(basename "$1")" "$1"
  chmod +x "$folder/$2/$(basename "$1")"
}
while read -r program; do copy "$program" tests; done <"$build/gpu_tests.txt"
while read -r program; do copy "$program" bench; done <"$build/gpu_benches.txt"
for program in "${services_tests[@]}"; do copy "$program" tests; done
for program in "${services[@]}"; do copy "$build/bin/$program" services; done
copy "$build/bin/device_info" .
cp tests/gpu/run.sh tests/gpu/report.py tools/bench.py tools/bench_program.py "$folder"
cp -r tests/golden "$folder"
{
  echo "revision $(git describe --always --dirty --abbrev=12)"
  echo "g++ $(c++ -dumpfullversion), nvcc $(nvcc --version | sed -n 's/.*release.*, V//p')"
  echo "flags RelWithDebInfo (-O2), x86-64-v3, sm_90 and its PTX"
  [[ -z $torch ]] || echo "torch $torch"
  # run.sh knows then that tests of updates on a device have nothing to run.
  [[ -f $torch_root/torch/lib/libtorch_cuda.so ]] || echo "without CUDA in torch"
} >"$folder/build.txt"

# Copies the libraries that FILE names and that the machine lacks, and what these name.
copy_libraries() {  # FILE WHERE, its paths as ldd tells them
  local name path
  for name in $(objdump -p "$1" | sed -n 's/^ *NEEDED *//p'); do
    [[ ! $name =~ $present && ! -f $folder/lib/$name ]] || continue
    path=$(sed -n "s/^\t$name => \(\/[^ ]*\) .*/\1/p" <<<"$2")
    [[ -f $path ]] || { echo "bundle.sh: $(basename "$1") needs $name" >&2; return 1; }
    cp -L "$path" "$folder/lib/$name"
    copy_libraries "$path" "$2" || return 1
  done
}
for program in "$folder"/device_info "$folder"/{tests,bench,services}/*; do
  [[ -f $program ]] || continue
  found=$(ldd "$program")
  if [[ $program != */services/* && " ${services_tests[*]##*/} " != *" ${program##*/} "* ]] &&
    unwanted=$(objdump -p "$program" | sed -n 's/^ *NEEDED *//p' | grep -E "$refused"); then
    echo "bundle.sh: $(basename "$program") links $unwanted, which stays out of it" >&2
    exit 1
  fi
  copy_libraries "$program" "$found"
done

mib=$(du -sm "$folder" | cut -f1)
tests=$(($(wc -l <"$build/gpu_tests.txt") + ${#services_tests[@]}))
benches=$(wc -l <"$build/gpu_benches.txt")
echo "$folder: $mib MiB, programs: $tests of tests, $benches of benchmarks"
((mib <= most_mib)) || { echo "bundle.sh: more than $most_mib MiB" >&2; exit 1; }
