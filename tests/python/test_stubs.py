"""_core.pyi says what the compiled part has, no more and no less; the public surface is documented.
The extension needs nothing that a base system lacks."""

import ast
import inspect
import pathlib
import re
import subprocess

import pytest
import tetrion
from tetrion import _core

STUB = pathlib.Path(tetrion.__file__).parent / "_core.pyi"
# What every Debian 12 has: the C and C++ runtime.
BASE_LIBRARIES = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6"}


def names_of(body):
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node for node in body if isinstance(node, kinds)}


def test_the_stub_has_the_compiled_parts_names():
    stub = names_of(ast.parse(STUB.read_text()).body)
    assert set(stub) == {name for name in dir(_core) if not name.startswith("_")}
    for name, node in stub.items():
        if isinstance(node, ast.ClassDef):
            members = {m for m in names_of(node.body) if not m.startswith("_")}
            assert members == {m for m in dir(getattr(_core, name)) if not m.startswith("_")}, name


def test_the_stubs_parameters_are_the_compiled_ones():
    stub = names_of(ast.parse(STUB.read_text()).body)
    functions = {n: node for n, node in stub.items() if isinstance(node, ast.FunctionDef)}
    for name, node in functions.items():
        signature = getattr(_core, name).__doc__.splitlines()[0]
        if "arg" in signature:  # not named in C++
            continue
        named = re.findall(r"(\w+): ", signature)
        assert [a.arg for a in node.args.args] == named, signature


def test_everything_public_is_documented():
    for name in tetrion.__all__:
        thing = getattr(tetrion, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            own = [m for m in vars(thing) if not m.startswith("_") and callable(getattr(thing, m))]
            assert all(inspect.getdoc(getattr(thing, m)) for m in own), (name, own)


def test_the_extension_needs_base_libraries_only():
    done = subprocess.run(
        ["readelf", "-d", _core.__file__], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("no readelf here (binutils)")
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout))
    assert needed
    assert {n for n in needed if not n.startswith("ld-linux")} <= BASE_LIBRARIES
