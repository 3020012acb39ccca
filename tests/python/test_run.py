"""Reading a run's folder, whole, damaged and growing."""

import copy
import json
import os
import pathlib
import pickle
import re
import sqlite3
import time

import numpy as np
import pytest
import tetrion
from tetrion.run import EPISODE_DTYPE

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = (
    '# Effective settings.\n[run]\nenv = "cartpole"\nseed = 7\nlanes = 16\nlearning_rate = 0.001\n'
)


@pytest.fixture
def folder(tmp_path):
    run = tmp_path / "runs" / "first"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.toml").write_text(CONFIG)
    return run


STORE = ROOT / "services" / "coordinator"
LAYOUT_TEXT = (STORE / "store_schema.h").read_text(encoding="utf-8")
SCHEMA_TEXT = (STORE / "store_schema.cc").read_text(encoding="utf-8")
LAYOUT = int(re.search(r"kStoreLayout = (\d+);", LAYOUT_TEXT).group(1))
# The tables as the coordinator makes them, out of its source.
SCHEMA = "".join(re.findall(r'"(.*)"', SCHEMA_TEXT.split("kSchema =")[1].split(";\n\n")[0]))


def write_store(folder, batches, layout=LAYOUT):
    """A store as the coordinator writes it."""
    database = sqlite3.connect(folder / "tetrion.db")
    database.execute("PRAGMA journal_mode=WAL")
    database.executescript(SCHEMA)
    database.execute("INSERT INTO run VALUES(1, ?, 1, 1)", (layout,))
    for number, (session, rows) in enumerate(batches):
        blob = np.array(rows, EPISODE_DTYPE).tobytes()
        database.execute(
            "INSERT INTO reports(session, batch, count, episodes) VALUES(?,?,?,?)",
            (session, number, len(rows), blob),
        )
    database.commit()
    return database


def write_manifest(folder, entries):
    text = {"version": 1, "best": "", "checkpoints": entries}
    (folder / "checkpoints" / "manifest.json").write_text(json.dumps(text))


def entry(updates, mean_return, file=None):
    return {
        "file": file or f"{updates:012d}.safetensors",
        "xxhash64": "0" * 16,
        "bytes": "1",
        "config_hash": "0" * 16,
        "run": "first",
        "env": "cartpole",
        "network": "mlp",
        "updates": str(updates),
        "policy_version": str(updates + 1),
        "env_steps": str(100 * updates),
        "mean_return": str(mean_return),
    }


def test_settings_are_read(folder):
    run = tetrion.Run(folder)
    assert run.name == "first"
    assert run.config == {"env": "cartpole", "seed": 7, "lanes": 16, "learning_rate": 0.001}
    newer = CONFIG.replace("learning_rate", 'algo = "vtrace"\n[run.vtrace]\nlearning_rate')
    (folder / "config.toml").write_text(newer)
    assert tetrion.Run(folder).config == {**run.config, "algo": "vtrace"}


def test_latest_is_the_run_whose_settings_are_newest(folder):
    second = folder.parent / "second"
    second.mkdir()
    (second / "config.toml").write_text(CONFIG)
    past = time.time() - 100
    os.utime(folder / "config.toml", (past, past))
    assert tetrion.Run(folder.parent / "latest").name == "second"


def test_metrics_are_columns_with_gaps_as_nan(folder):
    lines = [
        {"time": 10, "run": "first", "env_steps": 5, "tokens": {"done": 1, "free_again": 0}},
        {"time": 15, "env_steps": 9, "learner_up": True, "tokens": {"done": 2}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text + '{"time": 20, "env_st')
    metrics = tetrion.Run(folder).metrics()
    assert set(metrics) == {"time", "env_steps", "tokens.done", "tokens.free_again", "learner_up"}
    np.testing.assert_array_equal(metrics["env_steps"], [5, 9])
    np.testing.assert_array_equal(metrics["tokens.done"], [1, 2])
    np.testing.assert_array_equal(metrics["tokens.free_again"], [0, np.nan])
    np.testing.assert_array_equal(metrics["learner_up"], [np.nan, 1])


def test_a_broken_line_of_metrics_is_named(folder):
    (folder / "metrics.jsonl").write_text('{"time": 1}\nnonsense\n{"time": 2}\n')
    with pytest.raises(tetrion.RunError, match=r"metrics\.jsonl:2 is no JSON object"):
        tetrion.Run(folder).metrics()


def test_episodes_are_columns_in_order_also_while_the_run_goes_on(folder):
    first = [(3, 0, 20, 0, 1, 20.0, 5, 1), (4, 1, 30, 2, 2, 30.5, 6, 0)]
    writer = write_store(folder, [(11, first), (12, [(9, 0, 1, 0, 3, -1.0, 0, 0)])])
    episodes = tetrion.Run(folder).episodes()  # the writer still has it open
    np.testing.assert_array_equal(episodes["token_id"], [3, 4, 9])
    np.testing.assert_array_equal(episodes["attempt"], [0, 1, 0])
    np.testing.assert_array_equal(episodes["length_steps"], [20, 30, 1])
    np.testing.assert_array_equal(episodes["lines"], [0, 2, 0])
    np.testing.assert_array_equal(episodes["policy_version"], [1, 2, 3])
    np.testing.assert_array_equal(episodes["episode_return"], np.float32([20, 30.5, -1]))
    np.testing.assert_array_equal(episodes["lane"], [5, 6, 0])
    np.testing.assert_array_equal(episodes["worker"], [1, 0, 0])
    np.testing.assert_array_equal(episodes["session"], [11, 11, 12])
    writer.close()


def test_a_run_without_episodes_has_empty_columns(folder):
    write_store(folder, []).close()
    episodes = tetrion.Run(folder).episodes()
    assert {len(column) for column in episodes.values()} == {0}
    assert episodes["episode_return"].dtype == np.float32


def test_a_store_of_another_layout_or_kind_is_refused(folder):
    run = tetrion.Run(folder)
    with pytest.raises(tetrion.RunError, match=r"tetrion\.db is not there"):
        run.episodes()
    write_store(folder, [], layout=9).close()
    with pytest.raises(tetrion.RunError, match="has layout 9, this package reads 2, 3, 4"):
        run.episodes()
    (folder / "tetrion.db").write_bytes(b"no database" * 100)
    with pytest.raises(tetrion.RunError, match="cannot be read"):
        run.episodes()


def test_a_reader_without_write_access_sees_what_is_in_the_log(folder, monkeypatch):
    writer = write_store(folder, [(1, [(3, 0, 20, 0, 1, 20.0, 5, 1)])])
    assert (folder / "tetrion.db-wal").stat().st_size > 0
    monkeypatch.setattr(os, "access", lambda *_: False)
    np.testing.assert_array_equal(tetrion.Run(folder).episodes()["token_id"], [3])
    writer.close()
    np.testing.assert_array_equal(tetrion.Run(folder).episodes()["token_id"], [3])


def test_reading_a_run_leaves_nothing_behind(folder):
    write_store(folder, [(1, [(3, 0, 20, 0, 1, 20.0, 5, 1)])]).close()
    before = sorted(folder.iterdir())
    np.testing.assert_array_equal(tetrion.Run(folder).episodes()["token_id"], [3])
    assert sorted(folder.iterdir()) == before


def test_a_writer_who_comes_while_a_store_is_read_is_heard(folder, monkeypatch):
    write_store(folder, [(1, [(3, 0, 20, 0, 1, 20.0, 5, 1)])]).close()
    read, writers = tetrion.run._read, []

    def read_slowly(file, mode):
        rows = read(file, mode)
        if not writers:
            writers.append(sqlite3.connect(file))
            writers[0].execute(
                "INSERT INTO reports(session, count, episodes)"
                " SELECT 2, count, episodes FROM reports"
            )
            writers[0].commit()
        return rows

    monkeypatch.setattr(tetrion.run, "_read", read_slowly)
    np.testing.assert_array_equal(tetrion.Run(folder).episodes()["session"], [1, 2])
    writers[0].close()


def test_a_short_report_is_corruption(folder):
    database = write_store(folder, [(1, [(3, 0, 20, 0, 1, 20.0, 5, 1)])])
    database.execute("UPDATE reports SET count = 2")
    database.commit()
    with pytest.raises(tetrion.RunError, match="32 bytes for 2 episodes"):
        tetrion.Run(folder).episodes()
    database.close()


# Of the three episodes below, as tests/services/coordinator/episode_blob_test.cc has it.
COLUMNS = bytes.fromhex(
    "0101020101040200e803000000000000010000001400000000000000070000000000a04104000100"
    "00020100000100000100180103000100000200000000000008000000e07d010000002801"
)


def test_reports_by_columns_are_read(folder):
    database = write_store(folder, [(1, [(3, 0, 20, 0, 1, 20.0, 5, 1)])])
    database.execute("INSERT INTO reports(session, count, episodes) VALUES(2, 3, ?)", (COLUMNS,))
    database.commit()
    episodes = tetrion.Run(folder).episodes()
    assert episodes["token_id"].tolist() == [3, 1000, 1002, 1001]
    assert episodes["attempt"].tolist() == [0, 1, 1, 2]
    assert episodes["length_steps"].tolist() == [20, 20, 21, 300]
    assert episodes["lines"].tolist() == [0, 3, 0, 1]
    assert episodes["policy_version"].tolist() == [1, 7, 7, 9]
    assert episodes["episode_return"].tolist() == [20.0, 20.0, 21.0, -1.0]
    assert episodes["lane"].tolist() == [5, 5, 4, 300]
    assert episodes["worker"].tolist() == [1, 1, 1, 1]
    assert episodes["session"].tolist() == [1, 2, 2, 2]
    database.close()


@pytest.mark.parametrize(
    ("blob", "count"),
    [
        (b"", 3),
        (COLUMNS[:39], 3),
        (COLUMNS[:-1], 3),
        (COLUMNS + b"\0", 3),
        (COLUMNS, 4),
        (COLUMNS, -3),
        (b"\3" + bytes(39 + 3), 1),
        (bytes(6) + b"\4" + bytes(33 + 4), 1),
        (bytes(40), 1 << 60),
    ],
)
def test_columns_that_are_none_are_corruption(folder, blob, count):
    database = write_store(folder, [])
    database.execute("INSERT INTO reports(session, count, episodes) VALUES(2, ?, ?)", (count, blob))
    database.commit()
    with pytest.raises(tetrion.RunError, match=f"{len(blob)} bytes for {count} episodes"):
        tetrion.Run(folder).episodes()
    database.close()


def test_checkpoints_newest_and_best(folder):
    run = tetrion.Run(folder)
    assert run.checkpoints() == []
    with pytest.raises(tetrion.RunError, match="no checkpoint yet"):
        run.checkpoint()
    write_manifest(folder, [entry(1, "nan"), entry(2, 9.5), entry(3, 9.5), entry(4, 1.0)])
    assert [c.updates for c in run.checkpoints()] == [1, 2, 3, 4]
    assert run.checkpoint().updates == 4
    best = run.checkpoint("best")
    assert best.updates == 3, "the newest among equals"
    assert best.path == folder / "checkpoints" / "000000000003.safetensors"
    assert (best.policy_version, best.env_steps, best.network) == (4, 300, "mlp")
    with pytest.raises(ValueError, match='"newest" or "best"'):
        run.checkpoint("last")


def test_manifests_that_lie_are_refused(folder):
    run = tetrion.Run(folder)
    write_manifest(folder, [entry(1, 1.0, file="../../secret")])
    with pytest.raises(tetrion.RunError, match="outside its folder"):
        run.checkpoints()
    (folder / "checkpoints" / "manifest.json").write_text('{"version": 2, "checkpoints": []}')
    with pytest.raises(tetrion.RunError, match="version 2, this package reads 1"):
        run.checkpoints()
    for text in ("[]", "{", '{"version": 1, "checkpoints": [{}]}'):
        (folder / "checkpoints" / "manifest.json").write_text(text)
        with pytest.raises(tetrion.RunError, match="is no checkpoint manifest"):
            run.checkpoints()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is no run: it holds no config.toml"),
        ("[run", "is not TOML"),
        ("[actor]\nx = 1\n", r"has no section \[run\]"),
    ],
)
def test_what_is_no_run_is_said(tmp_path, text, message):
    if text is not None:
        (tmp_path / "config.toml").write_text(text)
    with pytest.raises(tetrion.RunError, match=message):
        tetrion.Run(tmp_path)
    with pytest.raises(tetrion.RunError, match=r"no run in .*/empty"):
        tetrion.Run(tmp_path / "empty" / "latest")


def write_checkpoint(folder, header=b'{"__metadata__": {"network": "mlp"}}', data=b""):
    """A safetensors file, and the manifest that names it."""
    write_manifest(folder, [entry(1, 1.0)])
    file = folder / "checkpoints" / entry(1, 1.0)["file"]
    file.write_bytes(len(header).to_bytes(8, "little") + header + data)


policy = tetrion.load_policy


def settings(folder):
    return tetrion.Run(folder).config


def metrics(folder):
    return tetrion.Run(folder).metrics()


def checkpoints(folder):
    return tetrion.Run(folder).checkpoints()


DEEP = b"[" * 100_000
RUN = b'[run]\nenv = "cartpole"\n'


@pytest.mark.parametrize(
    ("file", "content", "use", "message"),
    [
        ("config.toml", RUN + b"# \xff\n", settings, r"config\.toml is not TOML"),
        ("config.toml", RUN + b"x = " + DEEP, settings, r"config\.toml is not TOML"),
        ("config.toml", RUN + b"algo = []\n", settings, r"config\.toml is damaged"),
        (
            "config.toml",
            RUN + b'view = "x"\n',
            tetrion.load_policy,
            r"config\.toml .* observation 'x'",
        ),
        (
            "config.toml",
            RUN + b'queue_size = "x"\n',
            tetrion.load_policy,
            r"config\.toml .*queue_size",
        ),
        (
            "config.toml",
            RUN + b"queue_size = 9\n",
            tetrion.load_policy,
            r"config\.toml .*queue_size",
        ),
        ("metrics.jsonl", b'{"a": 1}\n{"\xff": 1}\n{}\n', metrics, r"metrics\.jsonl:2 is no JSON"),
        ("metrics.jsonl", DEEP + b"\n{}\n", metrics, r"metrics\.jsonl:1 is no JSON"),
        ("metrics.jsonl", b'{"a": 1%s}\n{}\n' % (b"0" * 400), metrics, r"metrics\.jsonl:1 is no"),
        ("checkpoints/manifest.json", DEEP, checkpoints, "is no checkpoint manifest"),
        ("checkpoints/manifest.json", b"\xff", checkpoints, "is no checkpoint manifest"),
    ],
)
def test_damaged_files_are_named(folder, file, content, use, message):
    write_checkpoint(folder)
    (folder / file).write_bytes(content)
    with pytest.raises(tetrion.RunError, match=message):
        use(folder)


@pytest.mark.parametrize(
    "header",
    [
        DEEP,
        b'{"t": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 8]}}',
        b'{"t": {"dtype": "F32", "shape": [1e999], "data_offsets": [0, 4]}}',
        b'{"t": {"dtype": "F32", "shape": [0, 1%s], "data_offsets": [0, 0]}}' % (b"0" * 30),
    ],
)
def test_damaged_checkpoints_are_named(folder, header):
    write_checkpoint(folder, header, bytes(8))
    with pytest.raises(tetrion.RunError, match=r"1\.safetensors is not a usable checkpoint"):
        tetrion.load_policy(folder)


def test_a_misspelt_checkpoint_is_told_of_the_names(folder):
    write_checkpoint(folder)
    with pytest.raises(tetrion.RunError, match=r'newst is not there: .* "newest", "best" or'):
        tetrion.load_policy(folder, "newst")


def test_a_policy_is_pickled_and_copied(folder):
    rng = np.random.default_rng(1)
    header, data = {"__metadata__": {"network": "mlp"}}, b""
    for trunk, actions in (("policy", 2), ("value", 1)):
        for layer, into, out in (("1", 4, 8), ("2", 8, 8), ("head", 8, actions)):
            for kind, shape in (("weight", [out, into]), ("bias", [out])):
                numbers = rng.normal(size=shape).astype("<f4").tobytes()
                offsets = [len(data), len(data) + len(numbers)]
                name = f"policy.{trunk}.{layer}.{kind}"
                header[name] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
                data += numbers
    write_checkpoint(folder, json.dumps(header).encode(), data)
    policy = tetrion.load_policy(folder, greedy=False, seed=3)
    policy(np.zeros((5, 4), np.float32))  # the generator has moved
    observations = rng.normal(size=(64, 4)).astype(np.float32)
    pickled = pickle.dumps(policy)
    (folder / "checkpoints" / entry(1, 1.0)["file"]).unlink()
    others = (pickle.loads(pickled), copy.deepcopy(policy))
    expected = policy.evaluate(observations), policy(observations)
    for other in others:
        for mine, theirs in zip(other.evaluate(observations), expected[0], strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(other(observations), expected[1])
