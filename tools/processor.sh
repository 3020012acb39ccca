# What this processor lacks of what programs are compiled for. Sourced by ./tetrion and doctor.sh.

# missing_features ROOT: their names as /proc/cpuinfo has them, on one line; none where the machine
# does not say what its processor has.
missing_features() {
  local flags name missing=()
  flags=" $(LC_ALL=C lscpu 2>/dev/null | sed -n 's/^Flags: *//p') "
  [[ $flags == *" fpu "* ]] || return 0
  # One list, that of the Python package.
  for name in $(sed -n 's/^_NEEDED = (\(.*\))$/\1/p' "$1/python/tetrion/_cpu.py" | tr -d '",'); do
    [[ $flags == *" $name "* ]] || missing+=("$name")
  done
  echo "${missing[*]}"
}
