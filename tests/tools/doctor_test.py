"""./tetrion doctor on made-up machines: what it says, and that it only looks."""

import fcntl
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Doctor(unittest.TestCase):

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-doctor-"))
        self.addCleanup(shutil.rmtree, self.base)
        self.shm = self.base / "shm"
        self.shm.mkdir(mode=0o700)
        (self.shm / ".lock").touch()
        self.root = self.base / "a tree"
        (self.root / "tools").mkdir(parents=True)
        (self.root / "deploy").mkdir()
        for script in ("doctor.sh", "processor.sh"):
            shutil.copy(ROOT / "tools" / script, self.root / "tools")
        (self.root / "python/tetrion").mkdir(parents=True)
        shutil.copy(ROOT / "python/tetrion/_cpu.py", self.root / "python/tetrion")
        (self.root / "deploy" / "packages.txt").write_text("alpha\nbeta\n")
        (self.root / "deploy" / "wheels.txt").write_text("some-torch==1.2 --hash=sha256:0\n")
        (self.root / ".deps/torch/some_torch-1.2.dist-info").mkdir(parents=True)
        self.bin = self.base / "bin"
        self.bin.mkdir()
        self.fake("dpkg-query", 'printf "installed alpha\\ninstalled beta\\n"')

    def fake(self, name, body):
        (self.bin / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.bin / name).chmod(0o755)

    def region(self, name, pid):
        path = self.shm / name
        path.write_bytes(bytes(56) + struct.pack("<I", pid) + bytes(4036))
        return path

    def examine(self, status, *args, **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("TETRION_")}
        environment.update(variables, PATH=f"{self.bin}:/usr/bin:/bin")
        done = subprocess.run([str(self.root / "tools" / "doctor.sh"),
                               *(args or ("--shm-dir", str(self.shm)))], env=environment,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_a_healthy_machine_has_no_failures(self):
        said = self.examine(0)
        self.assertIn("ok    packages: all 2", said)
        self.assertIn("ok    libtorch", said)
        self.assertNotIn("FAIL", said)

    def test_a_processor_that_programs_are_not_compiled_for_fails(self):
        self.fake("lscpu", "echo 'Flags:   fpu sse4_2 avx avx2 bmi1 bmi2 f16c fma abm'")
        self.assertIn("FAIL  processor: lacks movbe; ", self.examine(1))

    def test_shm_hands_the_settings_to_the_program_that_knows_the_regions(self):
        self.assertEqual(self.examine(1, "--shm", "--lanes", "8"), "")  # nothing is built
        program = self.root / "build/cpu/bin/tetrion-shm-size"
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/bash\necho "$@"\n')
        program.chmod(0o755)
        self.assertEqual(self.examine(0, "--shm", "--lanes", "8"), "--lanes 8\n")

    def test_kernels_are_those_that_the_built_program_names(self):
        self.assertNotIn("kernels", self.examine(0))  # nothing is built
        program = self.root / "build/cpu/bin/tetrion-kernels"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/bash\necho avx1024\n")
        program.chmod(0o755)
        self.assertIn("ok    kernels: avx1024\n", self.examine(0))
        program.write_text("#!/bin/bash\nkill -ILL $$\n")
        self.assertRegex(self.examine(1), "FAIL  kernels: .* ended with status 132")

    def test_missing_packages_fail_with_the_line_that_mends_it(self):
        self.fake("dpkg-query", 'printf "installed alpha\\n"; exit 1')
        self.assertIn("FAIL  packages: 1 missing; as root run: apt-get update && "
                      "apt-get install -y --no-install-recommends beta\n", self.examine(1))

    def test_missing_wheels_are_no_failure_but_said(self):
        shutil.rmtree(self.root / ".deps")
        self.assertIn("ok    libtorch: not unpacked; --algo dreamer, --network conv, ./tetrion "
                      "test and sweep download it (545 MB, once)\n", self.examine(0))

    def test_regions_of_the_living_and_the_dead_are_told_apart_and_left_alone(self):
        self.region("00000000000000aa.ring.77-00000001.0", 77)
        self.region("00000000000000aa.stream.78-00000001.0", 78)
        (self.shm / "00000000000000aa.sock.lock").touch()  # of a coordinator's socket
        living = self.region("00000000000000aa.learner", os.getpid())
        with living.open("rb") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            said = self.examine(0)
        self.assertIn("regions: 1 with a living owner", said)
        self.assertIn("regions: 2 left by dead owners", said)
        self.assertIn("ring.77-00000001.0 (owner was pid 77)", said)
        self.assertIn("stream.78-00000001.0 (owner was pid 78)", said)
        self.assertEqual(len(list(self.shm.iterdir())), 5)

    def test_a_folder_without_regions_is_fine(self):
        self.assertIn("ok    regions: none", self.examine(0, f"--shm-dir={self.base}/absent"))

    def test_folders_are_those_that_the_variables_of_up_name(self):
        self.region("00000000000000aa.ring.77-00000001.0", 77)
        runs = self.base / "disk"
        runs.mkdir()
        named = {"TETRION_SHM_DIR": str(self.shm), "TETRION_RUNS_DIR": f"{runs}/not/yet"}
        said = self.examine(0, "", **named)
        self.assertIn("1 left by dead owners", said)
        self.assertIn(f"shared memory: {self.shm} has", said)
        self.assertIn(f"ok    runs: {runs}/not/yet is writable, ", said)
        said = self.examine(0, f"--shm-dir={self.base}/absent", **named)
        self.assertIn(f"ok    regions: none in {self.base}/absent\n", said)
        self.assertIn(f"ok    runs: {self.root}/runs is writable", self.examine(0))

    def test_a_folder_open_to_others_fails(self):
        self.shm.chmod(0o755)
        self.assertRegex(self.examine(1), r"FAIL  shared memory: .*chmod 700")

    def test_an_old_toolkit_is_a_warning(self):
        self.fake("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.1'")
        self.assertIn("warn  CUDA toolkit: 12.4", self.examine(0))

    def test_unknown_arguments_are_usage_errors(self):
        self.examine(2, "--fix")
        for nothing in (("--shm-dir=",), ("--shm-dir", ""), ("--shm-dir",)):
            self.assertEqual(self.examine(2, *nothing), "")


if __name__ == "__main__":
    unittest.main()
