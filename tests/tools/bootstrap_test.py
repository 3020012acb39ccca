"""./tetrion in a folder of its own, with a space in its name, among fake programs that record how
they are called: what it installs, builds and starts, and in which order."""

import os
import pathlib
import pty
import re
import shutil
import subprocess
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Appends its name and arguments to $CALLS, then runs the body.
FAKE = '#!/bin/bash\necho "$(basename "$0") $*" >>"$CALLS"\n'
# A second configuration at the same time, or none before a build, fails.
FAKE_CMAKE = FAKE + '''
mkdir "$CALLS.busy" || exit 9
for ((i = 1; i <= $#; i++)); do [[ ${!i} == -S ]] && j=$((i + 1)) && src=${!j}; done
mkdir -p "$src/build/$2" && touch "$src/build/$2/build.ninja"
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$src" >"$src/build/$2/CMakeCache.txt"
[[ " $* " =~ " -DTETRION_TORCH="([A-Z]+) ]] &&
  echo "TETRION_TORCH:BOOL=${BASH_REMATCH[1]}" >>"$src/build/$2/CMakeCache.txt"
rmdir "$CALLS.busy"
'''
# As with CMake's files: the step that looks at the revision is in every call, and `-n` takes what
# depends on it for changed.
FAKE_NINJA = FAKE + '''
echo "[1/2] cd there && cmake -P write_revision.cmake"
if [[ -f $2/built && " $* " != *" -n "* ]]; then exit; fi
echo "[2/2] Linking tetrion-up"
if [[ " $* " == *" -n "* ]]; then exit; fi
echo "compiled $*" >>"$CALLS"
[[ -f $2/../../broken ]] && { echo "error: expected a semicolon"; exit 1; }
mkdir -p "$2/bin"
echo '#!/bin/bash' >"$2/bin/tetrion-up"
echo 'printf "[%s]" "runs: $TETRION_DEFAULT_RUNS_DIR" "$0" "$@"' >>"$2/bin/tetrion-up"
for name in eval keygen load stream; do cp "$2/bin/tetrion-up" "$2/bin/tetrion-$name"; done
chmod +x "$2"/bin/*
touch "$2/built"
'''


class Bootstrap(unittest.TestCase):

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-bootstrap-"))
        self.addCleanup(shutil.rmtree, self.base)
        self.root = self.base / "a folder"
        (self.root / "deploy").mkdir(parents=True)
        shutil.copy(ROOT / "tetrion", self.root)
        shutil.copy(ROOT / "CMakeLists.txt", self.root)
        for path in ("tools/processor.sh", "python/tetrion/_cpu.py"):
            self.write(path, (ROOT / path).read_text(encoding="utf-8"))
        self.write("deploy/packages.txt", "# list\nalpha\nbeta-dev  # needed\n")
        self.write("deploy/wheels.txt", "# none\n")
        self.calls = self.base / "calls"
        self.bin = self.base / "bin"
        self.bin.mkdir()
        self.fake("dpkg-query", 'printf "installed alpha\\ninstalled beta-dev\\n"\n')
        self.fake("apt-get", "exit 0\n")
        self.fake("sudo", "exit 1\n")
        self.fake("ctest", "exit 0\n")
        self.program("cmake", FAKE_CMAKE)
        self.program("ninja", FAKE_NINJA)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def program(self, name, text):
        (self.bin / name).write_text(text, encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def fake(self, name, body):
        self.program(name, FAKE + body)

    def fake_pip(self, body, place=None):
        """That of a virtual environment made at `place`, by default where it stands."""
        pip = self.root / ".deps/py/bin/pip"
        pip.parent.mkdir(parents=True)
        begin, rest = FAKE.split("\n", 1)
        pip.write_text(f"{begin}\n# {place or pip.parent}/python3\n{rest}{body}")
        pip.chmod(0o755)

    def environment(self):
        return {**os.environ, "PATH": f"{self.bin}:/usr/bin:/bin", "CALLS": str(self.calls)}

    def run_it(self, *args, script=None, status=0, cwd=None, **variables):
        done = subprocess.run([str(script or self.root / "tetrion"), *args], cwd=cwd or self.root,
                              env={**self.environment(), **variables}, capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def run_as_user(self, *args, status=0, stdin=subprocess.DEVNULL):
        """As run_it, by another user where we are root."""
        command = [str(self.root / "tetrion"), *args]
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "65534", self.base], check=True)
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--",
                       *command]
        done = subprocess.run(command, cwd=self.root, env=self.environment(), stdin=stdin,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def fake_sudo(self, nothing, verify):
        """Exit statuses of `sudo -n true` and `sudo -v`; commands are run."""
        self.fake("sudo", f'case "$*" in "-n true") exit {nothing} ;; -v) exit {verify} ;; esac\n'
                          '"$@"\n')

    def called(self, name):
        lines = self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []
        return [line for line in lines if line.split()[0] == name]

    def builds(self):
        return self.called("compiled")

    def test_up_configures_builds_and_becomes_the_program(self):
        done = self.run_it("up", "--env", "cart pole")
        self.assertIn("/build/cpu/bin/tetrion-up]", done.stdout)
        self.assertTrue(done.stdout.endswith("[--env][cart pole]"), done.stdout)
        self.assertEqual((len(self.called("cmake")), len(self.builds())), (1, 1))
        self.assertIn("tetrion-learner", self.builds()[0])

    def test_runs_stay_in_this_folder_wherever_it_is_called_from(self):
        for verb in ("up", "play"):
            here, elsewhere = (self.run_it(verb, "a", cwd=cwd).stdout for cwd in (self.root, "/"))
            self.assertTrue(here.startswith("[runs: ]["), here)
            self.assertTrue(elsewhere.startswith(f"[runs: {self.root}/runs]["), elsewhere)
            self.assertEqual(elsewhere.split("][")[1:], here.split("][")[1:])

    def test_a_second_call_does_nothing_but_start_the_program(self):
        self.run_it("up")
        done = self.run_it("up")
        self.assertEqual((len(self.called("cmake")), len(self.builds())), (1, 1))
        self.assertEqual(done.stderr, "")

    def test_a_build_is_announced_when_there_is_something_to_build(self):
        for verb in ("up", "play"):
            done = self.run_it(verb)
            building = "tetrion: building build/cpu (log: build/cpu/build.log)\n"
            self.assertEqual(done.stderr.count(building), 1 if verb == "up" else 0, done.stderr)
        (self.root / "build/cpu/built").unlink()  # a source changed
        self.assertEqual(self.run_it("eval").stderr, building)
        self.assertIn("Linking", (self.root / "build/cpu/build.log").read_text(encoding="utf-8"))

    def test_install_builds_nothing(self):
        self.run_it("install")
        self.assertEqual((self.called("cmake"), self.builds()), ([], []))
        self.fake("dpkg-query", 'printf "installed alpha\\n"\n')
        self.run_it("install", status=0 if os.geteuid() == 0 else 1)
        if os.geteuid() == 0:
            self.assertIn("beta-dev", self.called("apt-get")[-1])
        self.run_it("install", "wheels")  # needs no package
        self.assertIn("not \"rivals\"", self.run_it("install", "rivals", status=2).stderr)

    def test_help_of_the_tools_in_python_installs_and_builds_nothing(self):
        for verb in ("bench", "plot", "sweep"):
            self.write(f"tools/{verb}.py", "import sys; print(__file__, sys.argv[1:])")
            done = self.run_it(verb, "--quick", "-h")
            self.assertTrue(done.stdout.endswith(f"tools/{verb}.py ['--help']\n"), done.stdout)
        self.assertIn("usage: ./tetrion test", self.run_it("test", "-R", "X", "--help").stdout)
        self.assertFalse(self.calls.exists())
        self.run_it("sweep", "--", "--help")  # of up, which is to be built
        self.assertTrue(self.builds())

    def test_every_verb_installs_packages_before_it_needs_them(self):
        self.fake("dpkg-query", 'printf "installed alpha\\n"; exit 1\n')
        self.fake("apt-get", "exit 5\n")
        self.fake("sleep", "exit 0\n")
        for words in (["up"], ["test"], ["sweep"], ["plot", "a"], ["bench"], ["bench", "--stored"]):
            done = self.run_it(*words, status=1)
            self.assertNotIn("Python environment", done.stderr)
            self.assertIn("beta-dev", self.called("apt-get")[-1] + done.stderr)

    def test_eval_play_and_dream_are_verbs_of_one_program(self):
        for verb in ("eval", "play", "dream"):
            self.assertTrue(self.run_it(verb, "latest").stdout.endswith(f"[{verb}][latest]"))

    def test_programs_that_few_call_are_built_when_they_are_called(self):
        for verb in ("keygen", "load", "stream"):
            (self.root / "build/cpu/built").unlink(missing_ok=True)
            done = self.run_it(verb, "some", "--words")
            self.assertTrue(done.stdout.endswith(f"/tetrion-{verb}][some][--words]"), done.stdout)
            self.assertTrue(self.builds()[-1].endswith(f" tetrion-{verb}"), self.builds())

    def test_test_builds_everything_and_passes_arguments_to_ctest(self):
        self.run_it("test", "-R", "Ledger")
        self.assertNotIn("tetrion-up", self.builds()[0])
        self.assertRegex(self.called("ctest")[0], r"-j3 --output-on-failure -R Ledger$")

    def test_the_exit_status_of_ctest_is_ours(self):
        self.fake("ctest", "exit 8\n")
        self.run_it("test", status=8)

    def test_jobs_are_bounded_by_cores_and_memory_unless_they_are_told(self):
        self.fake("nproc", "echo 64\n")
        for gibibytes, jobs in ((1, 1), (7, 3), (300, 64)):
            self.fake("awk", f"echo 'MemAvailable: {gibibytes * 2**20} kB' | "
                             '/usr/bin/awk "$1"\n')
            self.assertEqual(self.run_it("jobs").stdout, f"{jobs}\n")
        self.assertEqual(self.run_it("jobs", TETRION_JOBS="5").stdout, "5\n")
        self.assertEqual(self.run_it("jobs", TETRION_JOBS="").stdout, "64\n")
        for words in ("0", "many", "-1", "1.5"):
            for verb in ("jobs", "up"):
                said = self.run_it(verb, TETRION_JOBS=words, status=2)
                self.assertEqual(said.stderr, f"tetrion: TETRION_JOBS={words}: expected a number "
                                              "from 1\n")
                self.assertEqual(said.stdout, "")
        self.assertEqual((self.called("cmake"), self.builds()), ([], []))

    def test_a_checkout_that_another_user_has_built_says_what_to_do(self):
        self.run_it("up")
        owner = pathlib.Path(self.root).owner()
        if os.geteuid() == 0:
            for path in (self.base, self.root, self.root / ".deps"):
                path.chmod(0o755)
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        else:
            command = []
            (self.root / ".deps/lock").chmod(0o400)
        done = subprocess.run([*command, str(self.root / "tetrion"), "up"], cwd=self.root,
                              env=self.environment(), capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, f"tetrion: cannot write '{self.root}/.deps/lock' (owner: "
                                      f"{owner}): work in a checkout of your own, or start what "
                                      f"is built here: '{self.root}/build/cpu/bin/tetrion-up'\n")

    def test_a_failed_build_shows_the_end_of_its_log(self):
        self.write("broken", "")
        done = self.run_it("up", status=1)
        self.assertIn("expected a semicolon", done.stderr)
        self.assertIn("build/cpu/build.log", done.stderr)

    def test_a_rival_of_the_bench_that_was_installed_configures_again(self):
        packages = self.base / "packages"
        config = packages / "lib/cmake/iceoryx_posh/iceoryx_poshConfig.cmake"
        self.run_it("up", TETRION_PACKAGES_ROOT=str(packages))
        config.parent.mkdir(parents=True)
        config.touch()
        for _ in range(2):
            self.run_it("up", TETRION_PACKAGES_ROOT=str(packages))
            self.assertEqual(len(self.called("cmake")), 2)

    def test_a_new_module_configures_again(self):
        self.run_it("up")
        self.write("lib/new/CMakeLists.txt", "")
        self.run_it("up")
        self.assertEqual(len(self.called("cmake")), 2)

    def test_a_build_that_was_configured_by_hand_gets_the_tensor_library_when_it_is_there(self):
        self.run_it("up")
        cache = self.root / "build/cpu/CMakeCache.txt"
        cache.write_text(cache.read_text().replace("TORCH:BOOL=ON", "TORCH:BOOL=OFF"))
        self.run_it("up")
        self.assertEqual(len(self.called("cmake")), 2)
        self.assertIn("TORCH:BOOL=ON", cache.read_text())

    def test_other_processors_are_refused_before_anything_is_compiled(self):
        self.fake("uname", "echo aarch64\n")
        for verb in ("up", "test"):
            self.assertEqual(self.run_it(verb, status=2).stderr,
                             "tetrion: Tetrion is for x86_64; this machine is aarch64\n")
        self.assertEqual(self.called("cmake"), [])

    def test_older_processors_are_refused_before_anything_is_compiled(self):
        self.fake("lscpu", "echo 'Flags:   fpu sse4_2 avx bmi1 bmi2 f16c fma movbe abm'\n")
        for verb in ("up", "test"):
            said = self.run_it(verb, status=2).stderr
            self.assertIn("; this one lacks avx2. A virtual ", said)
        self.assertEqual(self.called("cmake"), [])
        self.fake("lscpu", "echo 'Architecture: x86_64'\n")  # it does not say
        self.run_it("up")

    def test_a_moved_folder_starts_from_a_fresh_build(self):
        self.run_it("up")
        self.root = self.root.rename(self.base / "elsewhere")
        self.run_it("up")
        self.assertEqual((len(self.called("cmake")), len(self.builds())), (2, 2))

    def test_it_works_through_a_symbolic_link(self):
        link = self.base / "link"
        link.symlink_to(self.root / "tetrion")
        self.assertIn(str(self.root / "build"), self.run_it("up", script=link).stdout)

    def test_programs_are_told_how_to_call_it_back(self):
        self.run_it("up")
        for program in ("tetrion-up", "tetrion-eval"):
            (self.root / "build/cpu/bin" / program).write_text(
                '#!/bin/bash\necho "$TETRION_SCRIPT"\n')
        for verb in ("up", "eval", "play", "dream"):
            self.assertEqual(self.run_it(verb, cwd="/").stdout, f"{self.root}/tetrion\n")
        # One that lacks the library all the same must not call without end.
        self.assertEqual(self.run_it("with-tensor-library", "tetrion-up",
                                     TETRION_SCRIPT="x").stdout, "\n")

    def test_calls_at_the_same_time_build_once(self):
        running = [subprocess.Popen([str(self.root / "tetrion"), "up"], env=self.environment(),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for _ in range(4)]
        for process in running:
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
            self.assertIn(b"tetrion-up]", out)
        self.assertEqual((len(self.called("cmake")), len(self.builds())), (1, 1))

    def test_the_started_program_does_not_hold_the_lock(self):
        self.run_it("up")
        (self.root / "build/cpu/bin/tetrion-up").write_text("#!/bin/bash\nls -l /proc/self/fd\n")
        self.assertNotIn(".deps/lock", self.run_it("up").stdout)

    def lack_a_package(self):
        self.fake("dpkg-query", 'printf "installed alpha\\nconfig-files beta-dev\\n"; exit 1\n')

    def assert_installed(self):
        update, install = self.called("apt-get")
        self.assertEqual(update, "apt-get update -q")
        self.assertRegex(install, r" install .*no-install-recommends .*Lock::Timeout=\d+ beta-dev$")

    def test_only_missing_packages_are_installed_or_asked_for(self):
        self.lack_a_package()
        self.fake_sudo(nothing=1, verify=1)
        done = self.run_as_user("up", status=1)
        self.assertIn("1 Debian packages are missing; as root run: apt-get update && apt-get "
                      "install -y --no-install-recommends beta-dev\n", done.stderr)
        self.assertEqual(self.called("sudo"), ["sudo -n true"])  # nobody to ask for a password
        self.assertEqual((self.called("apt-get"), self.called("cmake")), ([], []))
        if os.geteuid() == 0:
            self.run_it("up")
            self.assert_installed()

    def test_sudo_asks_for_a_password_only_where_it_needs_one_and_on_a_terminal(self):
        self.lack_a_package()
        self.fake_sudo(nothing=0, verify=1)  # as on cloud images: -v asks for all entries
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.close, end)
        self.run_as_user("up", stdin=end)
        self.assert_installed()
        self.calls.unlink()
        self.fake_sudo(nothing=1, verify=0)
        self.run_as_user("up", stdin=end)
        self.assert_installed()
        self.fake_sudo(nothing=1, verify=1)
        self.run_as_user("up", stdin=end, status=1)

    def test_an_update_of_packages_is_tried_again_while_another_has_its_lock(self):
        self.lack_a_package()
        self.fake_sudo(nothing=0, verify=0)
        self.fake("sleep", "exit 0\n")
        self.fake("apt-get", '[[ $1 != update || $(grep -c "^apt-get" "$CALLS") == 3 ]]\n')
        self.run_as_user("up")
        self.assertEqual(len(self.called("sleep")), 2)
        self.assertEqual([line.split()[1] for line in self.called("apt-get")], ["update"] * 3 +
                         ["install"])
        self.fake("apt-get", '[[ $1 != update ]]\n')  # never: the lists there are may do
        self.run_as_user("up")

    def test_wheels_are_unpacked_once_without_the_cuda_libraries(self):
        self.write("deploy/wheels.txt", "some-torch==1.2 --hash=sha256:0\n")
        wheel = self.base / "some_torch-1.2-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in ("torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so",
                         "torch/include/a.h", "some_torch-1.2.dist-info/RECORD"):
                archive.writestr(name, "x")
        self.fake_pip(f'mkdir -p "${{@: -1}}" && cp "{wheel}" "${{@: -1}}"\n')
        self.write(".deps/torch.new/half", "left by an interrupted call")
        self.run_it("up")  # which does without
        self.assertEqual(self.called("pip"), [])
        self.assertIn("-DTETRION_TORCH=OFF", self.called("cmake")[-1])
        # As a program calls it whose run needs the tensor library.
        done = self.run_it("with-tensor-library", "tetrion-up", "--algo", "a b", cwd="/")
        self.assertTrue(done.stdout.startswith(f"[runs: {self.root}/runs]"), done.stdout)
        self.assertTrue(done.stdout.endswith("/bin/tetrion-up][--algo][a b]"), done.stdout)
        self.assertIn("-DTETRION_TORCH=ON", self.called("cmake")[-1])
        self.run_it("up")
        self.run_it("test")
        self.assertEqual((len(self.called("pip")), len(self.called("cmake"))), (1, 2))
        self.assertIn("--require-hashes", self.called("pip")[0])
        torch = self.root / ".deps/torch"
        self.assertTrue((torch / "torch/lib/libtorch_cpu.so").exists())
        self.assertFalse((torch / "torch/lib/libtorch_cuda.so").exists())
        self.assertFalse((torch / "half").exists())

    def test_an_environment_that_was_made_elsewhere_is_made_anew(self):
        self.write("deploy/wheels.txt", "some-torch==1.2 --hash=sha256:0\n")
        self.fake_pip("echo 'of another place'\nexit 1\n", place="/moved/.deps/py/bin")
        self.run_it("install", "wheels", status=1)
        self.assertEqual(self.called("pip"), [])
        made = self.root / ".deps/py/bin/pip"
        self.assertIn(str(made.parent), made.read_text(encoding="utf-8"))

    def test_an_environment_of_another_checkout_that_deps_is_a_link_to_is_used_as_it_is(self):
        self.write("deploy/wheels.txt", "some-torch==1.2 --hash=sha256:0\n")
        self.fake_pip("exit 1\n")
        self.root.joinpath(".deps").rename(self.base / "theirs")
        pip = self.base / "theirs/py/bin/pip"
        pip.write_text(pip.read_text().replace(f"{self.root}/.deps", f"{self.base}/theirs"))
        self.root.joinpath(".deps").symlink_to("../theirs")
        before = pip.read_text()
        self.run_it("install", "wheels", status=1)
        self.assertEqual(len(self.called("pip")), 1)
        self.assertEqual(pip.read_text(), before)

    def test_a_failed_download_leaves_nothing_that_looks_finished(self):
        self.write("deploy/wheels.txt", "some-torch==1.2 --hash=sha256:0\n")
        self.fake_pip("echo 'hashes do not match'\nexit 1\n")
        done = self.run_it("test", status=1)
        self.assertIn("hashes do not match", done.stderr)
        self.assertFalse((self.root / ".deps/torch").exists())
        self.assertEqual(self.called("cmake"), [])


class CommandLine(unittest.TestCase):

    def run_it(self, *args):
        return subprocess.run([str(ROOT / "tetrion"), *args], capture_output=True, text=True,
                              timeout=60, check=False)

    def test_help_names_every_command(self):
        done = self.run_it("--help")
        self.assertEqual(done.returncode, 0)
        for command in ("up", "test", "eval", "play", "dream", "plot", "bench", "keygen", "load",
                        "stream", "doctor",
                        "jobs"):
            self.assertRegex(done.stdout, rf"(?m)^  {command} ")

    def test_unknown_and_missing_commands_are_usage_errors(self):
        self.assertEqual(self.run_it("fly").returncode, 2)
        self.assertIn('"fly"', self.run_it("fly").stderr)
        self.assertEqual(self.run_it().returncode, 2)

    def test_version_is_that_of_the_project(self):
        project = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        version = project.split("project(tetrion VERSION ")[1].split()[0]
        self.assertIn(f"tetrion {version} (", self.run_it("--version").stdout)


class Lists(unittest.TestCase):

    def entries(self, name):
        text = (ROOT / "deploy" / name).read_text(encoding="utf-8")
        return [line.split("#")[0].strip() for line in text.splitlines()
                if line.split("#")[0].strip()]

    def test_programs_that_documents_and_scripts_name_are_built_by_up(self):
        text = (ROOT / "tetrion").read_text()
        built = set(re.search(r"^programs=\((.*?)\)", text, re.DOTALL | re.MULTILINE)[1].split())
        places = [ROOT / "README.md", ROOT / "docker-compose.yml",
                  *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "tools").glob("*.sh")),
                  *sorted((ROOT / "deploy").rglob("*.sbatch"))]
        named = {name for place in places
                 for name in re.findall(r"(?:build/cpu/bin|\$bin)/(tetrion-[a-z-]+)",
                                        place.read_text())}
        self.assertIn("tetrion-kernels", named)
        self.assertLessEqual(named, built)

    def test_wheels_are_pinned_by_hash(self):
        for line in self.entries("wheels.txt"):
            self.assertRegex(line, r"^[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}$")

    def test_debian_packages_are_sorted_and_named_once(self):
        names = self.entries("packages.txt")
        self.assertEqual(names, sorted(set(names)))
        for name in names:
            self.assertRegex(name, r"^[a-z0-9][a-z0-9.+-]+$")


if __name__ == "__main__":
    unittest.main()
