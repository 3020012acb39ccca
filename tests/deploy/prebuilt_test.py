"""deploy/docker/prebuilt.sh on a made-up build: what it lays out, and who may read it."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("tetrion-actor-plain", "tetrion-learner")


def private_copy(path, mode):
    """A program that its user alone may read, as a umask of 077 leaves it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/true", path)
    path.chmod(mode)


class Prebuilt(unittest.TestCase):

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-prebuilt-"))
        self.addCleanup(shutil.rmtree, self.base)
        self.root = self.base / "a tree"
        self.script = self.root / "deploy" / "docker" / "prebuilt.sh"
        self.script.parent.mkdir(parents=True)
        shutil.copy(ROOT / "deploy" / "docker" / "prebuilt.sh", self.script)
        for name in PROGRAMS:
            private_copy(self.root / "build" / "cpu" / "bin" / name, 0o700)
        library = self.root / ".deps" / "torch" / "libtensor.so"
        private_copy(library, 0o600)
        ldd = self.base / "bin" / "ldd"
        ldd.parent.mkdir()
        ldd.write_text("#!/bin/bash\necho 'libc.so.6 => /lib/libc.so.6 (0x0)'\n"
                       f"echo 'libtensor.so => {library} (0x0)'\n")
        ldd.chmod(0o755)

    def test_all_may_read_and_run_what_was_built_for_its_user_alone(self):
        path = f"{self.base}/bin:{os.environ['PATH']}"
        subprocess.run([str(self.script)], check=True, umask=0o077, timeout=50,
                       stdout=subprocess.DEVNULL, env={**os.environ, "PATH": path})
        images = self.root / "build" / "images"
        modes = {str(path.relative_to(images)): path.stat().st_mode & 0o777
                 for path in (images, *images.rglob("*"))}
        programs = {f"bin/{name}": 0o755 for name in PROGRAMS}
        self.assertEqual(modes, {".": 0o755, "bin": 0o755, **programs, "lib": 0o755,
                                 "lib/libtensor.so": 0o644})

    def test_programs_without_the_tensor_library_are_laid_out_and_told(self):
        (self.base / "bin" / "ldd").write_text("#!/bin/bash\necho 'libc.so.6 => /lib/libc.so.6'\n")
        done = subprocess.run([str(self.script)], check=True, timeout=50, capture_output=True,
                              text=True, env={**os.environ,
                                              "PATH": f"{self.base}/bin:{os.environ['PATH']}"})
        self.assertIn("without the tensor library", done.stderr)
        self.assertIn("./tetrion install wheels", done.stderr)
        self.assertTrue((self.root / "build/images/bin/tetrion-learner").exists())


if __name__ == "__main__":
    unittest.main()
