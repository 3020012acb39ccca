"""_core.pyi says what the compiled part has, no more and no less; the public surface is documented.
The extension needs nothing that a base system lacks."""

import ast
import dataclasses
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
    named = {node.name: node for node in body if isinstance(node, kinds)}
    return named | {node.target.id: node for node in body if isinstance(node, ast.AnnAssign)}


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


def documented():
    """(name, callable, docstring) of everything public that takes arguments or returns something;
    a constructor's arguments stand in its class's docstring. Properties and dataclasses tell by
    their own lines."""
    for name in tetrion.__all__:
        thing = getattr(tetrion, name)
        if inspect.isfunction(thing):
            yield name, thing, thing.__doc__
        if not inspect.isclass(thing) or issubclass(thing, Exception | tuple):
            continue
        if dataclasses.is_dataclass(thing):
            continue
        if "__init__" in vars(thing):
            yield name, thing.__init__, thing.__doc__
        for member, value in inspect.getmembers(thing, inspect.isfunction):
            if not member.startswith("_") and value.__module__.startswith("tetrion"):
                yield f"{name}.{member}", value, value.__doc__
    for env in tetrion.envs.IDS.values():
        name = tetrion.envs.vector_maker(env)
        thing = getattr(tetrion.vector, name)
        yield name, thing, thing.__doc__
    vector = tetrion.vector.TetrionVectorEnv
    yield "TetrionVectorEnv", vector.__init__, vector.__doc__
    for member, value in inspect.getmembers(vector, inspect.isfunction):
        if not member.startswith("_") and value.__module__ == vector.__module__:
            yield f"TetrionVectorEnv.{member}", value, value.__doc__


@pytest.mark.parametrize("of", [pytest.param(d, id=d[0]) for d in documented()])
def test_docstrings_name_every_argument_and_what_comes_back(of):
    _, function, text = of
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters if p != "self"]
    if parameters:
        assert "Args:" in text
        for parameter in parameters:
            assert re.search(rf"^\s+{parameter}: ", text, re.MULTILINE), parameter
    if signature.return_annotation not in (None, "None", inspect.Signature.empty):
        assert "Returns:" in text
