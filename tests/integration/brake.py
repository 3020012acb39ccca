"""Stops one thread of a process and lets it go on, as a debugger does; the others run meanwhile."""

import ctypes
import os
import pathlib

SEIZE, INTERRUPT, CONTINUE, DETACH = 0x4206, 0x4207, 7, 17
ANY_CHILD = 0x40000000  # __WALL: threads, too

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long] * 4


def _ptrace(request, thread):
    """Raises OSError; PermissionError where this machine lets no process watch another."""
    if _libc.ptrace(request, thread, 0, 0) == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class Brake:
    """On the thread of that name. One thread of ours makes every call. A watched process cannot be
    waited for: release it first, also where a test fails."""

    def __init__(self, pid, name):
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        self.thread, = (int(task.name) for task in tasks
                        if (task / "comm").read_text().strip() == name)
        _ptrace(SEIZE, self.thread)
        self.watched, self.stopped = True, False

    def stop(self):
        """Returns once it stands still, wherever that is: it may hold a lock."""
        _ptrace(INTERRUPT, self.thread)
        os.waitpid(self.thread, ANY_CHILD)
        self.stopped = True

    def go_on(self):
        _ptrace(CONTINUE, self.thread)
        self.stopped = False

    def release(self):
        """For good. May be called twice."""
        if not self.watched:
            return
        if not self.stopped:
            self.stop()
        _ptrace(DETACH, self.thread)
        self.watched = False
