#!/usr/bin/env bash
# Lays what the images hold into one folder: prebuilt.sh [BIN_FOLDER [TARGET]], by default the
# programs of build/release/bin, or of build/cpu/bin where that is newer or alone, and build/images.
# Programs come without debug information and without the build's library paths; the tensor
# library's folders give exactly the libraries that the programs load. All users may read and run
# them, whatever the umask is and the build's was: the images' user is another one.
set -euo pipefail
umask 022
cd "$(dirname "$0")/../.."

newest_build() {
  local folder newest=""
  for folder in build/release/bin build/cpu/bin; do
    [[ -x $folder/tetrion-actor-plain ]] || continue
    if [[ -z $newest || $folder/tetrion-learner -nt $newest/tetrion-learner ]]; then
      newest=$folder
    fi
  done
  echo "$newest"
}

from=${1:-$(newest_build)}
to=${2:-build/images}
if [[ -z $from ]]; then
  echo "prebuilt.sh: no programs here; build them: cmake --preset release &&" \
    "cmake --build --preset release, or leave out TETRION_BINARIES=prebuilt" >&2
  exit 2
fi
rm -rf "$to"
mkdir -p "$to/bin" "$to/lib"
for name in tetrion-coordinator tetrion-keygen tetrion-actor tetrion-actor-plain tetrion-learner; do
  [[ -x $from/$name ]] || continue
  strip -o "$to/bin/$name" "$from/$name"
  # NAME => PATH (ADDRESS), whose path may have spaces.
  ldd "$from/$name" | sed -nE 's/^[^>]*=> (.*) \(0x[0-9a-f]+\)$/\1/p' |
    awk '/\/[.]deps\/torch\/|\/lib(cudart|cupti)[.]so/'
done | sort -u | while read -r library; do
  cp -L "$library" "$to/lib/"
done
script=$(mktemp --suffix=.cmake)
trap 'rm -f "$script"' EXIT
for program in "$to"/bin/*; do echo "file(RPATH_REMOVE FILE \"$program\")"; done >"$script"
cmake -P "$script"
chmod -R a+rX "$to"
if [[ -z $(ls "$to/lib") ]]; then
  echo "prebuilt.sh: these programs are without the tensor library: no --algo dreamer and no" \
    "--network conv; with it: ./tetrion install wheels && ./tetrion up --help, then this" >&2
fi
echo "$from -> $to: $(du -sm "$to" | cut -f1) MiB"
