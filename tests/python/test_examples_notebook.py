"""python/examples/games.ipynb: kept with its outputs, and its code still runs. Cells tagged
needs-run want a trained run; the others are executed here, in order, without Jupyter."""

import ast
import base64
import json
import os
import pathlib
import re

import pytest
import tetrion

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "python" / "examples" / "games.ipynb"
MAX_BYTES = 1 << 20
PNG, GIF = b"\x89PNG\r\n\x1a\n", b"GIF89a"


PICTURE = NOTEBOOK.parents[2] / "docs" / "pictures" / "games.png"


@pytest.fixture(scope="module")
def notebook():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def code_cells(notebook, needs_run=None):
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if needs_run is None:
        return cells
    return [c for c in cells if ("needs-run" in c["metadata"].get("tags", [])) == needs_run]


def run_cells(cells):
    """Executes them in one namespace and returns it."""
    names = {"__name__": "__main__"}
    for cell in cells:
        exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}:{cell['id']}", "exec"), names)
    return names


@pytest.fixture
def pyplot(monkeypatch):
    matplotlib = pytest.importorskip(
        "matplotlib", reason="the cells draw with it; deploy/python.txt has it"
    )
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_it_is_a_notebook_of_moderate_size(notebook):
    assert notebook["nbformat"] == 4
    assert NOTEBOOK.stat().st_size < MAX_BYTES
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)


def test_it_was_executed_once_from_top_to_bottom_without_errors(notebook):
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell["outputs"]:
            assert output["output_type"] != "error", cell["id"]
            assert output.get("name") != "stderr", (cell["id"], output)


def pictures(notebook):
    """(media type, content) of every picture kept."""
    return [
        (kind, base64.b64decode("".join(data)))
        for cell in code_cells(notebook)
        for output in cell["outputs"]
        for kind, data in output.get("data", {}).items()
        if kind.startswith("image/")
    ]


def test_its_pictures_are_pictures(notebook):
    kinds = [kind for kind, _ in pictures(notebook)]
    assert kinds.count("image/png") >= 3
    assert kinds.count("image/gif") == 1
    for kind, content in pictures(notebook):
        assert content.startswith({"image/png": PNG, "image/gif": GIF}[kind])


def test_the_picture_of_the_page_is_one_of_its_pictures(notebook):
    assert PICTURE.read_bytes() in [content for _, content in pictures(notebook)]


def test_its_texts_name_no_folder_of_the_machine_that_made_it(notebook):
    for cell in notebook["cells"]:
        texts = ["".join(cell["source"])]
        for output in cell.get("outputs", []):
            texts.append("".join(output.get("text", [])))
            texts.append("".join(output.get("data", {}).get("text/plain", [])))
        for text in texts:
            assert not re.search(r"(?<![\w.])/(home|root|tmp|usr|work|Users)\b", text), cell["id"]
    assert not {"user", "username"} & set(json.dumps(notebook["metadata"]).lower().split('"'))


def test_cells_that_need_no_run_run(notebook, pyplot, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TETRION_RUN_FOLDER", os.fspath(tmp_path / "latest"))
    names = run_cells(code_cells(notebook, needs_run=False))
    assert "make one with ./tetrion up" in capsys.readouterr().out
    assert names["run"] is None
    assert names["info"] == {
        "episode_return": 4.0,
        "episode_length": 13,
        "lines": 0,
        "lines_cleared": 0,
    }
    assert names["batch"].observations.shape == (200, 400, 64)
    assert len(pyplot.get_fignums()) >= 3


def test_without_a_run_the_first_cell_that_needs_one_says_so(
    notebook, pyplot, tmp_path, monkeypatch
):
    monkeypatch.setenv("TETRION_RUN_FOLDER", os.fspath(tmp_path))
    first = code_cells(notebook)[0]
    with pytest.raises(tetrion.RunError, match="needs a trained run"):
        run_cells([first, code_cells(notebook, needs_run=True)[0]])


def test_a_run_of_another_environment_is_refused_by_name(
    notebook, pyplot, tmp_path, monkeypatch, capsys
):
    (tmp_path / "config.toml").write_text('[run]\nenv = "cartpole"\n')
    (tmp_path / "checkpoints").mkdir()
    entry = {"file": "a.safetensors", "updates": "1", "policy_version": "1", "env_steps": "1"}
    entry |= {"mean_return": "1", "env": "cartpole", "network": "mlp", "run": "a"}
    manifest = {"version": 1, "best": "", "checkpoints": [entry]}
    (tmp_path / "checkpoints" / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.setenv("TETRION_RUN_FOLDER", os.fspath(tmp_path))
    assert run_cells(code_cells(notebook)[:1])["run"] is None
    assert "is a run of cartpole, not tetris-placement" in capsys.readouterr().out


def test_cells_that_use_the_run_are_tagged(notebook):
    for cell in code_cells(notebook, needs_run=False)[1:]:
        names = {n.id for n in ast.walk(ast.parse("".join(cell["source"]))) if hasattr(n, "id")}
        assert not names & {"run", "policy", "frames"}, cell["id"]
    assert len(code_cells(notebook, needs_run=True)) >= 3
