"""Refuses processors that the compiled part was not built for, before it is loaded."""

from pathlib import Path

# What x86-64-v3 adds, as /proc/cpuinfo spells it; abm is lzcnt.
_NEEDED = ("avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm")


def missing_features(cpuinfo: str) -> list[str]:
    """The needed features that a processor lacks, given the text of /proc/cpuinfo; empty when that
    says nothing of features."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "flags":
            have = set(value.split())
            return [name for name in _NEEDED if name not in have]
    return []


def check(path: Path = Path("/proc/cpuinfo")) -> None:
    """Raises ImportError on a processor older than x86-64-v3."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    missing = missing_features(text)
    if missing:
        raise ImportError(
            f"tetrion is built for x86-64-v3 processors (Intel Haswell, AMD Excavator or newer); "
            f"this one lacks {', '.join(missing)}. Build it for this machine: in a checkout, "
            f"pip install . -C cmake.define.TETRION_NATIVE=ON"
        )
