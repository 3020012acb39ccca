"""Mounts that only this test and its processes see."""

import ctypes
import errno
import os
import pathlib
import subprocess

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_PRIVATE_REC = 0x00040000 | 0x00004000


def mine():
    """Gives this process mounts of its own; False where that is denied."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS) != 0:
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
            return False
        pathlib.Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1", encoding="ascii")
        pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1", encoding="ascii")
    return libc.mount(b"none", b"/", None, MS_PRIVATE_REC, None) == 0


def tmpfs(folder, size):
    """Mounts a file system in memory there, open to this user only; False where that is denied."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"mode=0700,size={size}", "none", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def fill(path):
    """Takes what is left of the path's file system, to the last page."""
    with open(path, "ab", buffering=0) as file:
        for block in (1 << 20, 1 << 12):
            try:
                while file.write(bytes(block)):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def unmount(folder):
    subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True)


def private_command():
    """What gives one program mounts of its own, put in front of it; empty where that is denied."""
    for command in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user", "--user"]):
        mount = [*command, "mount", "-t", "tmpfs", "none", "/mnt"]
        if subprocess.run(mount, check=False, capture_output=True).returncode == 0:
            return command
    return []
