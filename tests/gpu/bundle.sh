#!/usr/bin/env bash
# Packs what a machine with a GPU runs into one folder: bundle.sh [FOLDER] (build/gpu/bundle).
#
# Builds every test with the label gpu and every tetrion_cuda_bench with the cuda preset and copies
# them there with run.sh, which needs CUDA 13, python3 with torch's wheel and a C++ runtime, and
# nothing installed. Programs that link torch are among them where its wheel is unpacked in
# .deps/torch (./tetrion install); they need the same version of it there. Ends with an error when a
# program links what that machine does not have, or the folder is over its limit. Needs nvcc and no
# device.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build/gpu
folder=${1:-$build/bundle}
most_mib=60
# What the machine has, by the name of the shared library: the system's, CUDA's, torch's.
present='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libutil|libstdc\+\+|libgcc_s'
present+='|libcuda|libcudart|libcupti|libtorch|libtorch_cpu|libtorch_cuda|libc10|libc10_cuda)\.so'
# What must not come along, although it could.
refused='^lib(zmq|boost_|prometheus|sqlite3|flatbuffers)'

with_torch=OFF
torch=$(sed -n "s/^__version__ = '\([^+]*\).*/\1/p" .deps/torch/torch/version.py 2>/dev/null) ||
  true
[[ -z $torch ]] || with_torch=ON
mkdir -p "$build"
PATH=$PATH:/usr/local/cuda/bin
cmake --preset cuda -B "$build" -DTETRION_BENCH=ON -DTETRION_TORCH=$with_torch \
  >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 1; }
cmake --build "$build" --target gpu_programs -- -j "${JOBS:-$(nproc)}"

rm -rf "$folder"
mkdir -p "$folder"/{tests,bench,lib}
copy() {  # PROGRAM FOLDER: without what only a debugger reads
  strip --strip-debug -o "$folder/$2/$(basename "$1")" "$1"
  chmod +x "$folder/$2/$(basename "$1")"
}
while read -r program; do copy "$program" tests; done <"$build/gpu_tests.txt"
while read -r program; do copy "$program" bench; done <"$build/gpu_benches.txt"
copy "$build/bin/device_info" .
cp tests/gpu/run.sh tests/gpu/report.py tools/bench.py tools/bench_program.py "$folder"
cp -r tests/golden "$folder"
{
  echo "revision $(git describe --always --dirty --abbrev=12)"
  echo "g++ $(c++ -dumpfullversion), nvcc $(nvcc --version | sed -n 's/.*release.*, V//p')"
  echo "flags RelWithDebInfo (-O2), x86-64-v3, sm_90 and its PTX"
  [[ -z $torch ]] || echo "torch $torch"
} >"$folder/build.txt"

for program in "$folder"/device_info "$folder"/tests/* "$folder"/bench/*; do
  [[ -f $program ]] || continue
  while read -r name arrow path _; do
    if [[ $name =~ $refused ]]; then
      echo "bundle.sh: $(basename "$program") links $name, which stays out of it" >&2
      exit 1
    fi
    [[ $arrow == "=>" && ! $name =~ $present ]] || continue
    [[ -f $path ]] || { echo "bundle.sh: $(basename "$program") needs $name" >&2; exit 1; }
    cp -L "$path" "$folder/lib/$name"
  done < <(ldd "$program")
done

mib=$(du -sm "$folder" | cut -f1)
tests=$(wc -l <"$build/gpu_tests.txt") benches=$(wc -l <"$build/gpu_benches.txt")
echo "$folder: $mib MiB, programs: $tests of tests, $benches of benchmarks"
((mib <= most_mib)) || { echo "bundle.sh: more than $most_mib MiB" >&2; exit 1; }
