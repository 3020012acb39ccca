"""Writes tests/golden/dreamer.safetensors from the formulas beside it, or compares:

    .deps/py/bin/python tests/golden/generate.py           writes
    .deps/py/bin/python tests/golden/generate.py --check   status 1 when they differ

Needs numpy alone. The file carries the hash of the Python files that made it.
"""

import hashlib
import json
import pathlib
import struct
import sys

import dreamer_cases
import dreamer_loss_cases
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE / "dreamer.safetensors"
SOURCES = ("dreamer_cases.py", "dreamer_formulas.py", "dreamer_loss_cases.py", "generate.py")
MAX_BYTES = 300_000
# Sums of another numpy may differ in their order.
TOLERANCE = 1e-6


def sources_hash():
    return hashlib.sha256(b"".join((HERE / name).read_bytes() for name in SOURCES)).hexdigest()


def encode(tensors):
    header, data = {"__metadata__": {"generator_sha256": sources_hash()}}, b""
    for name, values in tensors.items():
        values = np.asarray(values, "<f4")
        header[name] = {"dtype": "F32", "shape": list(values.shape),
                        "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def decode(file):
    size = struct.unpack("<Q", file[:8])[0]
    header, data = json.loads(file[8:8 + size]), file[8 + size:]
    metadata = header.pop("__metadata__")
    return metadata, {name: np.frombuffer(data[slice(*entry["data_offsets"])], "<f4")
                      .reshape(entry["shape"]) for name, entry in header.items()}


def differences(old, new):
    """What the file holds that the generator would not write."""
    metadata, tensors = old
    found = [] if metadata == new[0] else ["the generator changed: run it without --check"]
    if list(tensors) != list(new[1]):
        return [*found, "it holds other tensors"]
    for name, values in new[1].items():
        exact = name == "bins"
        tolerance = 0 if exact else TOLERANCE
        scale = max(1.0, float(np.abs(values).max()))
        if tensors[name].shape != values.shape:
            found.append(f"{name} has another shape")
        elif not (np.abs(tensors[name] - values) <= tolerance * scale).all():
            found.append(f"{name} differs")
    return found


def main(arguments):
    file = encode(dreamer_cases.all_cases() | dreamer_loss_cases.all_cases())
    assert len(file) < MAX_BYTES, len(file)
    if arguments == ["--check"]:
        found = differences(decode(FILE.read_bytes()), decode(file))
        print("\n".join(f"{FILE}: {line}" for line in found) or "as it would be written")
        return 1 if found else 0
    assert not arguments, __doc__
    FILE.write_bytes(file)
    print(f"{FILE}: {len(file)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
