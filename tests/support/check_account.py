"""Checks the account of a run: check_account.py RUN_FOLDER_OR_DB.

Opens tetrion.db read-only and verifies, in one snapshot, that
  - the stored counters of tokens are what the ranges say, counted bit by bit,
  - the done bits are exactly the episodes of the report batches, and no episode is there twice,
  - every report came from a member of this run,
  - the steps of the run are those that its processes told, and no session was made up.
Prints one line of JSON; exit status 1 on a violation, 2 where there is no account to read.
"""

import json
import pathlib
import sqlite3
import struct
import sys

RANGE_TOKENS = 256
ALL_DONE = (1 << RANGE_TOKENS) - 1  # of ranges that are not listed
EPISODE = struct.Struct("<QIIIIfHH")  # token, attempt, length, lines, version, return, lane, worker
BASE = struct.Struct("<QIIIIIHH")  # the same by its bits
FIELD_BYTES = (8, 4, 4, 4, 4, 4, 2, 2)
MOST_EPISODES = 1024  # of one report
LENGTH_FIELD, VERSION_FIELD, RETURN_FIELD, WORKER_FIELD = 2, 4, 5, 7


def episodes_of(blob, count):
    """The tuples of a report, described in services/coordinator/episode_blob.h. ValueError."""
    if len(blob) == count * EPISODE.size:
        return list(EPISODE.iter_unpack(blob))
    widths, at = blob[:len(FIELD_BYTES)], len(FIELD_BYTES) + BASE.size
    if (not 0 < count <= MOST_EPISODES or len(blob) != at + count * sum(widths)
            or any(width not in (0, 1, 2, 4, 8) or width > most
                   for width, most in zip(widths, FIELD_BYTES, strict=True))):
        raise ValueError(f"{len(blob)} bytes for {count} episodes")
    columns = []
    for base, width, field in zip(BASE.unpack_from(blob, len(FIELD_BYTES)), widths, FIELD_BYTES,
                                  strict=True):
        code = {0: "", 1: "B", 2: "H", 4: "I", 8: "Q"}[width]
        values = struct.unpack_from(f"<{count}{code}", blob, at) if width else (0,) * count
        columns.append([(base + value) % 256**field for value in values])
        at += count * width
    columns[RETURN_FIELD] = struct.unpack(f"<{count}f",
                                          struct.pack(f"<{count}I", *columns[RETURN_FIELD]))
    return list(zip(*columns, strict=True))


def bits(blob):
    return int.from_bytes(blob or b"", "little")


def check_members(database, counts):
    """Violations of sessions, processes and their steps."""
    violations = []
    steps = counts["steps_forgotten"] or 0
    processes = set()
    for process, env_steps, base in database.execute(
            "SELECT process, env_steps, steps_base FROM processes"):
        processes.add(process)
        steps += env_steps - base
        if not 0 <= base <= env_steps:
            violations.append(f"process {process}: {env_steps} steps from a base of {base}")
    if steps != (counts["env_steps"] or 0):
        violations.append(f"{counts['env_steps']} steps, the processes have told {steps}")
    owners = []
    for number, process in database.execute("SELECT session, process FROM sessions"):
        owners.append(process)
        if not 0 < number >> 32 < counts["next_session"]:
            violations.append(f"session {number >> 32} was never given")
        if process not in processes:
            violations.append(f"session {number >> 32}: its process is not known")
    if len(owners) != len(set(owners)):
        violations.append("two sessions of one process")
    return violations


def check(path):
    """(figures, violations) of the store at `path`."""
    place = pathlib.Path(path).resolve().as_uri()  # a '#' or '?' of the path would end it
    database = sqlite3.connect(f"{place}?mode=ro", uri=True, timeout=10)
    database.execute("BEGIN")  # one snapshot for everything below
    columns = [row[1] for row in database.execute("PRAGMA table_info(counts)")]
    row = database.execute("SELECT * FROM counts").fetchone()
    counts = dict(zip(columns, row, strict=True)) if row else dict.fromkeys(columns, 0)
    found = {"issued": 0, "done": 0, "outstanding": 0, "free_again": 0}
    violations = []
    done_bits = {}
    live = {number for number, in database.execute("SELECT session FROM sessions")}
    found["issued"] = found["done"] = counts["next_token"]  # but for those below
    # Earlier builds also kept ranges that are all done.
    columns_of_ranges = [row[1] for row in database.execute("PRAGMA table_info(ranges)")]
    listed = "WHERE complete = 0" if "complete" in columns_of_ranges else ""
    for first_id, attempt, session, done, abandoned in database.execute(
            f"SELECT first_id, attempt, session, done, abandoned FROM ranges {listed}"):
        done, abandoned = bits(done), bits(abandoned)
        done_count = done.bit_count()
        found["done"] -= RANGE_TOKENS - done_count
        done_bits[first_id] = done
        if first_id % RANGE_TOKENS or attempt < 1:
            violations.append(f"range {first_id}: off the grid or attempt {attempt}")
        if done & abandoned:
            violations.append(f"range {first_id}: tokens both done and abandoned")
        if done_count == RANGE_TOKENS:
            violations.append(f"range {first_id}: all done and still listed")
        if first_id >= counts["next_token"]:
            violations.append(f"range {first_id}: never issued")
        if session and session not in live:
            violations.append(f"range {first_id}: owned by session {session}, which has ended")
        if session:
            found["free_again"] += abandoned.bit_count()
            found["outstanding"] += RANGE_TOKENS - done_count - abandoned.bit_count()
        else:
            found["free_again"] += RANGE_TOKENS - done_count
    for name in ("issued", "done", "free_again"):
        if counts[name] != found[name]:
            violations.append(f"counter {name} = {counts[name]}, the ranges have {found[name]}")
    violations += check_members(database, counts)
    run_id = (database.execute("SELECT run_id FROM run").fetchone() or [0])[0]
    episodes = counts["episodes_pruned"]
    longest = episode_steps = 0
    for row_id, row_run, count, blob in database.execute(
            "SELECT id, run_id, count, episodes FROM reports"):
        if row_run != run_id:
            violations.append(f"report row {row_id}: of run {row_run}, this is {run_id}")
        try:
            report = episodes_of(blob, count)
        except ValueError as error:
            violations.append(f"report row {row_id}: {error}")
            continue
        for episode in report:
            token = episode[0]
            first_id = token - token % RANGE_TOKENS
            bit = 1 << (token % RANGE_TOKENS)
            episodes += 1
            longest = max(longest, episode[LENGTH_FIELD])
            episode_steps += episode[LENGTH_FIELD]
            if first_id not in done_bits and token < counts["next_token"]:
                done_bits[first_id] = ALL_DONE
            if not done_bits.get(first_id, 0) & bit:
                violations.append(f"token {token}: reported twice, or not marked done")
            else:
                done_bits[first_id] &= ~bit
    if episodes != found["done"]:
        violations.append(f"{found['done']} done bits, {episodes} episodes in the report batches")
    if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        violations.append("the database file is damaged")
    figures = {**found, "episodes": episodes, "duplicates": counts["duplicates"],
               "refused": counts["refused"], "env_steps": counts["env_steps"],
               "episode_steps": episode_steps, "longest": longest}
    return figures, violations


def main(argument):
    path = pathlib.Path(argument)
    if path.is_dir():
        path = path / "tetrion.db"
    try:
        figures, violations = check(path)
    except sqlite3.Error as error:
        print(f"check_account: {path} cannot be read as the account of a run: {error}; give the "
              "folder of a run", file=sys.stderr)
        return 2
    print(json.dumps({"ok": not violations, **figures, "violations": violations[:20]}))
    return 1 if violations else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
