"""docs/python.md: its code runs, its table of observations is true, its names exist.

Blocks of ```python run in order in one namespace; those of ```python needs-run want a trained run
and are held against a run's classes by name only.
"""

import ast
import inspect
import pathlib
import pickle
import re

import numpy as np
import pytest
import tetrion

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Environments that are not Tetris: the name in the tables is the class's.
GAMES = {
    one.python_name: tuple(one.observations)
    for one in tetrion._spaces.TABLE.values()
    if "queue_size" not in one.options
}
ENVIRONMENTS = {
    "both Tetris": (tetrion.TetrisEnv, tetrion.TetrisPlacementEnv),
    "`tetris`": (tetrion.TetrisEnv,),
    "placement": (tetrion.TetrisPlacementEnv,),
    **{game: (getattr(tetrion.envs, f"{game}Env"),) for game in GAMES},
}


def blocks(needs_run):
    """(line, code) of the page's Python blocks."""
    found = []
    for match in BLOCK.finditer(PAGE):
        assert match[1].strip() in ("", "needs-run"), match[0]
        if (match[1].strip() == "needs-run") == needs_run:
            found.append((PAGE.count("\n", 0, match.start()) + 2, match[2]))
    return found


def at_its_line(line, code):
    """Compiled so that a traceback points into the page."""
    return compile("\n" * (line - 1) + code, "docs/python.md", "exec")


@pytest.fixture(scope="module")
def namespace():
    """What the page's names are after its last block."""
    names = {}
    for line, code in blocks(needs_run=False):
        exec(at_its_line(line, code), names)
    return names


def test_every_block_that_needs_no_run_runs(namespace):
    assert len(blocks(needs_run=False)) >= 7
    assert namespace["picture"].dtype == np.uint8
    assert namespace["picture"].ndim == 3
    assert set(np.unique(namespace["pixels"])) <= {0, 1, 2, 3}
    assert namespace["terminated"].shape == (8,)
    assert namespace["batch"].rewards.shape == namespace["real"].shape == (32, 100)


def test_a_state_is_as_small_as_the_page_says(namespace):
    state = namespace["state"]
    sizes = f"{len(pickle.dumps(state))} bytes when pickled, {len(state.saved)} of them the game's"
    assert sizes in PAGE


def test_the_printed_error_is_the_one_in_the_comment(capsys):
    block = next(code for _, code in blocks(needs_run=False) if "except ValueError" in code)
    exec(block, {"tetrion": tetrion})
    assert capsys.readouterr().out.strip() == re.search(r"print\(error\)  # (.*)", block)[1]


def test_blocks_that_need_a_run_use_what_runs_and_policies_have():
    classes = {"run": tetrion.Run, "policy": tetrion.Policy}
    members = set()
    for line, code in blocks(needs_run=True):
        at_its_line(line, code)
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                members.add((node.value.id, node.attr))
    used = {(owner, name) for owner, name in members if owner in classes}
    assert {owner for owner, _ in used} == set(classes)
    for owner, name in used:
        source = inspect.getsource(classes[owner])
        assert hasattr(classes[owner], name) or f"self.{name}" in source, f"{owner}.{name}"


def test_every_name_of_the_package_on_the_page_exists():
    names = set(re.findall(r"\btetrion((?:\.[A-Za-z_]\w*)+)", PAGE))
    assert len(names) >= 10
    for name in names:
        found = tetrion
        for part in name[1:].split("."):
            found = getattr(found, part)


def test_examples_on_the_page_are_those_in_the_folder():
    section = PAGE[PAGE.index("## Examples") :]
    folder = ROOT / "python" / "examples"
    there = {file.name for file in folder.iterdir() if file.suffix in (".py", ".ipynb")}
    assert set(re.findall(r"`(\w+\.(?:py|ipynb))`", section)) == there


@pytest.mark.parametrize("queue_size", [0, 1, 4, 7])
def test_the_table_has_the_shapes_of_the_spaces(queue_size):
    row = re.compile(r"^\| `([\w-]+)` \| ([^|]+?) \| (float32|uint8) \[([^]]+)\]", re.MULTILINE)
    rows = row.findall(PAGE)
    told = {(kind, obs) for obs, kind, _, _ in rows}
    for obs, of, dtype, length in rows:
        for kind in ENVIRONMENTS[of]:
            more = {} if of in GAMES else {"queue_size": queue_size}
            space = kind(obs, **more).observation_space
            assert space.shape == (eval(length, {"Q": queue_size}),), (obs, of)
            assert space.dtype == dtype, (obs, of)
    wanted = {("both Tetris", obs) for obs in ("flat", "planes", "pixels", "compact", "packed2")}
    wanted |= {(game, obs) for game, observations in GAMES.items() for obs in observations}
    wanted |= {("placement", f"afterstates{which}") for which in ("", "-dt", "-boards")}
    assert told == wanted | {("`tetris`", "drops")}


@pytest.mark.parametrize("queue_size", [0, 1, 4, 7])
def test_the_four_arrays_have_the_shapes_of_the_table(queue_size):
    row = re.search(r"^\| `dict` .*$", PAGE, re.MULTILINE)[0]
    arrays, _ = tetrion.TetrisEnv("dict", queue_size=queue_size).reset(seed=1)
    told = {
        name: eval(f"({shape})", {"Q": queue_size})
        for name, shape in re.findall(r"`(\w+)` \[([^]]+)\]", row)
    }
    assert told == {name: array.shape for name, array in arrays.items()}
