"""Reads what a training run left behind: settings, curves, episodes, checkpoints. Nothing is
written (but SQLite may make its tetrion.db-shm anew where a run was killed), and a run may be read
while it goes on."""

from __future__ import annotations

import json
import os
import sqlite3
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# An episode, as wire::EpisodeReport; 32 bytes.
EPISODE_DTYPE = np.dtype(
    [
        ("token_id", "<u8"),
        ("attempt", "<u4"),
        ("length_steps", "<u4"),
        ("lines", "<u4"),
        ("policy_version", "<u4"),
        ("episode_return", "<f4"),
        ("lane", "<u2"),
        ("worker", "<u2"),
    ]
)
_STORE_LAYOUTS = (2, 3, 4)  # a report's length says whether it has columns
_MOST_EPISODES = 1024  # of one report
_MANIFEST_VERSION = "1"


# What reading JSON that anybody may have written raises.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


class RunError(Exception):
    """What is wrong with a run's files, where, and what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """One line of a run's checkpoint manifest."""

    path: Path
    updates: int  # optimiser steps
    policy_version: int
    env_steps: int  # that the learner had received since the run began, about
    mean_return: float  # of recent episodes when it was written; NaN where none were its learner's
    env: str
    network: str
    run: str


class Run:
    """A run's folder. RunError when it is no run.

    Args:
        path: the folder, or the folder of runs with "latest" as last part ("runs/latest").
    """

    def __init__(self, path: str | os.PathLike[str]):
        folder = Path(path)
        if folder.name == "latest" and not folder.exists():
            folder = _newest(folder.parent)
        self.path = folder
        file = folder / "config.toml"
        if not file.is_file():
            raise RunError(
                f"{folder} is no run: it holds no config.toml; pass the folder of a run,"
                f" such as runs/<name>, or runs/latest"
            )
        try:
            sections = tomllib.loads(_bytes_of(file).decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise RunError(f"{file} is not TOML: {error}") from error
        if not isinstance(sections.get("run"), dict):
            raise RunError(f"{file} has no section [run]: it was not written by tetrion")
        #: The run's effective settings, those of its algorithm among them: docs/options.md names
        #: them.
        self.config: dict[str, Any] = _settings(sections["run"], file)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.resolve().name

    def metrics(self) -> dict[str, np.ndarray]:
        """The status samples, one every 5 s.

        Returns:
            Name -> float64 [samples], NaN where a sample lacks the figure. Figures within figures
            are named with dots ("tokens.done"); elapsed_s is seconds since the (latest) start,
            env_steps steps, episodes_per_s a rate.
        """
        file = self.path / "metrics.jsonl"
        if not file.is_file():
            raise RunError(f"{file} is not there: its first line is written 5 s after the start")
        samples = []
        lines = _bytes_of(file).splitlines()
        for number, line in enumerate(lines, 1):
            try:
                samples.append(_flat(json.loads(line)))
            except (ValueError, AttributeError, OverflowError, RecursionError) as error:
                if number == len(lines):  # being written
                    continue
                raise RunError(f"{file}:{number} is no JSON object: {error}") from error
        names = sorted({name for sample in samples for name in sample})
        return {name: np.array([sample.get(name, np.nan) for sample in samples]) for name in names}

    def episodes(self) -> dict[str, np.ndarray]:
        """The accounted episodes in order of accounting, all of them unless a long run's store has
        let its oldest go.

        Returns:
            Column -> array [episodes]: token_id uint64, attempt, length_steps (steps), lines,
            policy_version uint32, episode_return float32, lane, worker uint16, session uint64.
        """
        file = self.path / "tetrion.db"
        if not file.is_file():
            raise RunError(f"{file} is not there: the coordinator makes it when the run starts")
        tables, sessions = [], []
        try:
            for session, count, blob in _rows(file):
                table = _table(blob, count)
                if table is None:
                    raise RunError(
                        f"{file} holds a report of {len(blob)} bytes for {count} "
                        "episodes: it is corrupt"
                    )
                tables.append(table)
                sessions.append(np.full(count, session, np.uint64))
        except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
            raise RunError(f"{file} cannot be read: {error}") from error
        table = np.concatenate(tables) if tables else np.zeros(0, EPISODE_DTYPE)
        columns = {name: np.ascontiguousarray(table[name]) for name in EPISODE_DTYPE.names or ()}
        columns["session"] = np.concatenate(sessions) if sessions else np.zeros(0, np.uint64)
        return columns

    def checkpoints(self) -> list[Checkpoint]:
        """What the learner has saved.

        Returns:
            Complete checkpoints, newest last; empty before the first.
        """
        file = self.path / "checkpoints" / "manifest.json"
        if not file.is_file():
            return []
        try:
            manifest = json.loads(_bytes_of(file))
            if str(manifest["version"]) != _MANIFEST_VERSION:
                raise RunError(
                    f"{file} has version {manifest['version']}, this package reads "
                    f"{_MANIFEST_VERSION}: update tetrion"
                )
            return [_checkpoint(file, entry) for entry in manifest["checkpoints"]]
        except UNREADABLE as error:
            raise RunError(f"{file} is no checkpoint manifest ({error!r})") from error

    def checkpoint(self, which: str = "newest") -> Checkpoint:
        """One checkpoint. RunError when there is none.

        Args:
            which: "newest", or "best", that of the highest mean return, the newest among equals.

        Returns:
            The checkpoint.
        """
        if which not in ("newest", "best"):
            raise ValueError(f'checkpoint must be "newest" or "best", not {which!r}')
        found = self.checkpoints()
        if not found:
            raise RunError(f"{self.path} has no checkpoint yet: the learner writes them as it goes")
        if which == "newest":
            return found[-1]
        return max(
            reversed(found), key=lambda c: -np.inf if np.isnan(c.mean_return) else c.mean_return
        )


def _table(blob: bytes, count: int) -> np.ndarray[Any, Any] | None:
    """The episodes of a report, described in services/coordinator/episode_blob.h. None where `blob`
    does not hold `count` episodes."""
    sizes = [EPISODE_DTYPE[name].itemsize for name in EPISODE_DTYPE.names or ()]
    if len(blob) == count * EPISODE_DTYPE.itemsize:
        return np.frombuffer(blob, EPISODE_DTYPE)
    widths, column = blob[: len(sizes)], len(sizes) + EPISODE_DTYPE.itemsize
    if not 0 < count <= _MOST_EPISODES or len(blob) != column + count * sum(widths):
        return None
    table = np.repeat(np.frombuffer(blob, EPISODE_DTYPE, 1, len(sizes)), count)
    for name, size, width in zip(EPISODE_DTYPE.names or (), sizes, widths, strict=True):
        if width not in (0, 1, 2, 4, 8) or width > size:
            return None
        if width > 0:
            values = np.ascontiguousarray(table[name]).view(f"<u{size}")
            values += np.frombuffer(blob, f"<u{width}", count, column)
            table[name] = values.view(EPISODE_DTYPE[name])
        column += count * width
    return table


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RunError(f"{file} cannot be read: {error.strerror}") from error


def _settings(section: dict[str, Any], file: Path) -> dict[str, Any]:
    """The keys of [run], and those of the section of its algorithm, [run.vtrace]."""
    common = {key: value for key, value in section.items() if not isinstance(value, dict)}
    algo = section.get("algo", "")
    if not isinstance(algo, str):
        raise RunError(f"{file} is damaged: algo must be the name of an algorithm, not {algo!r}")
    own = section.get(algo)
    return common | own if isinstance(own, dict) else common


def _newest(folder: Path) -> Path:
    runs = [file for file in folder.glob("*/config.toml") if file.is_file()]
    if not runs:
        raise RunError(f"there is no run in {folder}: start one with ./tetrion up")
    return max(runs, key=lambda file: file.stat().st_mtime).parent


def _flat(sample: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers of nested objects under dotted names."""
    out: dict[str, float] = {}
    for key, value in sample.items():
        if isinstance(value, dict):
            out.update(_flat(value, f"{prefix}{key}."))
        elif isinstance(value, (bool, int, float)):
            out[prefix + key] = float(value)
    return out


def _is_at_rest(file: Path) -> bool:
    """Whether no process writes to a store: all of it is in `file`, none in a write-ahead log."""
    try:
        logged = os.stat(f"{file}-wal").st_size
    except FileNotFoundError:
        return True
    # An empty log is a writer's, who has just begun, or was left behind on a read-only disk, where
    # a reader of logs has no shared-memory file to open.
    return logged == 0 and not os.access(file.parent, os.W_OK)


def _rows(file: Path) -> list[tuple[int, int, bytes]]:
    """(session, count, blob) of every report."""
    # Who reads logs makes SQLite's files beside a store that has none, so that is read as
    # unchanging; a writer who comes meanwhile leaves a log.
    if _is_at_rest(file):
        try:
            rows = _read(file, "mode=ro&immutable=1")
        except sqlite3.Error:
            if _is_at_rest(file):
                raise
        else:
            if _is_at_rest(file):
                return rows
    return _read(file, "mode=ro")


def _read(file: Path, mode: str) -> list[tuple[int, int, bytes]]:
    """The same in one go, so that no writer waits."""
    connection = sqlite3.connect(f"{file.resolve().as_uri()}?{mode}", uri=True, timeout=10)
    try:
        layout = connection.execute("SELECT layout FROM run").fetchone()
        if layout is not None and layout[0] not in _STORE_LAYOUTS:
            raise RunError(
                f"{file} has layout {layout[0]}, this package reads "
                f"{', '.join(map(str, _STORE_LAYOUTS))}: "
                "use the tetrion release that made the run"
            )
        return connection.execute(
            "SELECT session, count, episodes FROM reports ORDER BY id"
        ).fetchall()
    finally:
        connection.close()


def _checkpoint(manifest: Path, entry: dict[str, str]) -> Checkpoint:
    file = entry["file"]
    if not file or "/" in file or "\0" in file or file.startswith("."):
        raise RunError(f"{manifest} names a file outside its folder: {file}")
    return Checkpoint(
        path=manifest.parent / file,
        updates=int(entry["updates"]),
        policy_version=int(entry["policy_version"]),
        env_steps=int(entry["env_steps"]),
        mean_return=float(entry["mean_return"]),
        env=entry["env"],
        network=entry["network"],
        run=entry["run"],
    )
