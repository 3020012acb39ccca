"""One program of ./tetrion bench: it is started, its figures are read, and all of it is ended."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM_TIMEOUT_S = 600
INTERRUPTS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
END_S = 45  # from SIGTERM to SIGKILL; the scripts give tetrion-up 40


def no_number(name):
    raise ValueError(f"{name} is no figure")


def figures_of(output, program):
    """(figures, unreadable lines) of the JSON lines of a program's output; other lines are its own
    remarks. A line with a figure that is no number is unreadable."""
    figures, unreadable = [], []
    for line in output.splitlines():
        if not line.lstrip().startswith("{"):
            continue
        try:
            figure = json.loads(line, parse_constant=no_number)
        except ValueError:
            unreadable.append(line[:80])
            continue
        if "what" in figure and "ours" in figure:
            figures.append({**figure, "program": program})
    return figures, unreadable


def is_left(program):
    """Whether a process of the program's group still runs."""
    if program.poll() is None:
        return True
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            state, _, group = stat.read_text(errors="replace").rsplit(")", 1)[1].split()[:3]
            if int(group) == program.pid and state not in "ZX":
                return True
    return False


def end(program):
    """Ends all that is left of a program: asks its group, and kills it after END_S, or at once when
    that is interrupted."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not is_left(program):
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, number)
        until = time.monotonic() + END_S
        try:
            while is_left(program) and time.monotonic() < until:
                time.sleep(0.05)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            raise


@contextlib.contextmanager
def scratch():
    """The environment of a program: folders for what it keeps meanwhile, on disk and in shared
    memory, which are removed at the end of the block."""
    with contextlib.ExitStack() as made:
        files, shm = (made.enter_context(tempfile.TemporaryDirectory(
            prefix="tetrion-bench-", dir=place, ignore_cleanup_errors=True))
            for place in (None, "/dev/shm"))
        yield {**os.environ, "TMPDIR": files, "TETRION_BENCH_SHM": shm}


def run(name, command, quick, timeout_s=PROGRAM_TIMEOUT_S):
    """(figures, error sentence or None) of one program, which has a session of its own: none of its
    processes and temporary files outlives this call, also when it takes too long, is killed or is
    interrupted."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as messages, \
            scratch() as environment:
        # An interrupt is heard once there is a program to end: on a busy machine one runs before
        # Popen returns.
        program, late = None, False
        heard = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
        try:
            program = subprocess.Popen(
                command + (["--quick"] if quick else []), cwd=ROOT, stdin=subprocess.DEVNULL,
                stdout=out, stderr=messages, env=environment, start_new_session=True,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, heard))
            signal.pthread_sigmask(signal.SIG_SETMASK, heard)
            program.wait(timeout_s)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, heard)
            if program is not None:
                end(program)
        out.seek(0)
        messages.seek(0)
        printed, told = (f.read().decode(errors="replace") for f in (out, messages))
    figures, unreadable = figures_of(printed, name)
    if late:
        return figures, f"{name}: no end within {timeout_s:g} s"
    if program.returncode != 0:
        last = (told.strip().splitlines() or ["no message"])[-1]
        return figures, f"{name}: exit status {program.returncode}: {last}"
    if unreadable:
        return figures, f"{name}: unreadable line: {unreadable[0]}"
    if figures or printed.startswith("skipped"):
        return figures, None
    return figures, f"{name}: printed no figure"
