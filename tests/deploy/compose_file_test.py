"""docker-compose.yml, .env and the Dockerfile, read as files: what every container must have."""

import contextlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "up"))

import compose_bad_input  # noqa: E402
import options_doc  # noqa: E402

OURS = ("coordinator", "learner", "learner-cuda", "actor")
OTHERS = ("prometheus", "grafana")
PROGRAMS = ("coordinator", "learner", "actor")
# Defaults that are other ones in containers.
OTHER_DEFAULTS = {"TETRION_RUN": "run", "TETRION_INSECURE": "true"}


def documented_options():
    """{section: {variable: default}} of docs/options.md."""
    doc = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    return {section: {options_doc.variable(name): option[2] for name, option in options.items()}
            for section, options in options_doc.options_in(doc).items()}


def read_compose():
    """Texts of docker-compose.yml and of the files that are read beside it on several hosts."""
    return [path.read_text(encoding="utf-8") for path in (
        ROOT / "docker-compose.yml", ROOT / "deploy" / "docker" / "remote.yml",
        ROOT / "deploy" / "docker" / "remote-actor.yml")]


class ComposeTest(unittest.TestCase):

    def test_refusals_that_it_expects_are_no_complaints_to_a_run_that_is_cut_short(self):
        with tempfile.TemporaryDirectory() as folder:
            complaint = subprocess.run(
                ["bash", "-c", '. "$0"; echo "$complaint"', ROOT / ".ci" / "stages.sh"], cwd=folder,
                capture_output=True, text=True, check=True).stdout.strip()
        for refusal in ("tetrion-actor: error: no room", "ERROR: for gpu: no room"):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                compose_bad_input.expect("a refusal", (78, refusal + "\n"), 78, "no room")
            self.assertIn("no room", printed.getvalue())
            self.assertIsNone(re.search(complaint, printed.getvalue(), re.IGNORECASE))


class ComposeFile(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        texts = read_compose()
        cls.text = "".join(texts)
        cls.file = yaml.safe_load(texts[0])
        cls.services = cls.file["services"]
        cls.env = {}
        for line in (ROOT / ".env").read_text(encoding="utf-8").splitlines():
            found = re.fullmatch(r"#?((?:TETRION|COMPOSE)_[A-Z0-9_]+)=(.*)", line)
            if found:
                cls.env[found[1]] = found[2]

    def test_the_services_are_these(self):
        self.assertEqual(sorted(self.services), sorted(OURS + OTHERS))

    def test_every_container_is_hardened_and_bounded(self):
        for name, service in self.services.items():
            with self.subTest(service=name):
                self.assertIs(service["read_only"], True)
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertEqual(service["security_opt"], ["no-new-privileges:true"])
                self.assertLessEqual(service["pids_limit"], 512)
                self.assertIn("mem_limit", service)
                self.assertNotIn("privileged", service)
                self.assertNotIn("network_mode", service)
                self.assertEqual(service["logging"]["options"]["max-size"], "10m")

    def test_ours_run_as_their_user_under_an_init_and_have_time_to_drain(self):
        for name in OURS:
            with self.subTest(service=name):
                service = self.services[name]
                self.assertEqual(service["user"], "10001:10001")
                self.assertIs(service["init"], True)
                self.assertEqual(service["stop_signal"], "SIGTERM")
                self.assertEqual(service["stop_grace_period"], "${TETRION_STOP_GRACE:-60s}")
                self.assertRegex(service["tmpfs"][0], "^/tmp:size=")

    def test_grace_is_above_every_drain_time_out(self):
        sections = documented_options()
        for name in PROGRAMS:
            drain_s = float(sections[f"tetrion-{name}"]["TETRION_DRAIN_TIMEOUT"])
            self.assertLess(drain_s, 60, name)

    def test_restarts_are_bounded_where_settings_can_be_refused(self):
        for name, service in self.services.items():
            self.assertRegex(service["restart"], r"^on-failure:\d+$", name)

    def test_ports_are_open_to_this_machine_alone(self):
        for name, service in self.services.items():
            for port in service.get("ports", []):
                self.assertRegex(port, r"^127\.0\.0\.1:", name)

    def test_regions_are_one_tmpfs_of_the_user_that_all_of_ours_share(self):
        options = self.file["volumes"]["regions"]["driver_opts"]
        self.assertEqual((options["type"], options["device"]), ("tmpfs", "tmpfs"))
        self.assertIn("uid=10001", options["o"])
        self.assertIn("mode=0700", options["o"])
        for name in OURS:
            self.assertIn("regions:/shm", self.services[name]["volumes"], name)

    def test_configuration_of_others_is_read_only(self):
        for name in OTHERS:
            for volume in self.services[name]["volumes"]:
                if volume.startswith("./"):
                    self.assertTrue(volume.endswith(":ro"), volume)

    def test_a_gpu_is_reserved_under_its_profile(self):
        service = self.services["learner-cuda"]
        self.assertEqual((service["profiles"], self.services["learner"]["profiles"]),
                         (["gpu"], ["cpu"]))
        devices = service["deploy"]["resources"]["reservations"]["devices"]
        self.assertEqual(devices, [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}])
        self.assertEqual(service["environment"]["TETRION_DEVICE"], "cuda")

    def test_the_coordinator_takes_every_setting_of_a_run(self):
        doc = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
        settings = options_doc.run_settings(doc)
        self.assertGreater(len(settings), 60)
        self.assertEqual(set(settings) - set(self.services["coordinator"]["environment"]), set())
        compose = read_compose()[0]
        self.assertEqual(compose, options_doc.with_settings(compose, doc),
                         "run tools/up/options_doc.py --bin build/cpu/bin")

    def test_a_new_setting_is_written_into_the_compose_file_and_env(self):
        doc = re.sub(r"(\n\| `--value-coef` .*)", r"\1\n| `--new` | 0 to 9 | | `2` | so and so |",
                     (ROOT / "docs" / "options.md").read_text(encoding="utf-8"), count=1)
        compose = options_doc.with_settings(read_compose()[0], doc)
        self.assertIn("  TETRION_VALUE_COEF:\n  TETRION_NEW:\n  TETRION_ENTROPY_COEF:\n", compose)
        self.assertEqual(compose.replace("  TETRION_NEW:\n", ""), read_compose()[0])
        old = (ROOT / ".env").read_text(encoding="utf-8")
        env = options_doc.with_comments(options_doc.with_knobs(old, doc), doc)
        new = "# So and so.\n#TETRION_NEW=2\n"
        self.assertIn(f"#TETRION_VALUE_COEF=0.5\n{new}# Weight of the entropy", env)
        self.assertEqual(env.replace(new, ""), old)

    def test_env_holds_every_knob_and_no_other(self):
        read = set(re.findall(r"\$\{((?:TETRION|COMPOSE)_[A-Z0-9_]+)", self.text))
        for service in self.services.values():
            read |= {name for name, value in service.get("environment", {}).items()
                     if value is None}
        self.assertEqual(set(self.env) - {"COMPOSE_PROFILES"}, read)

    def test_env_says_what_the_options_mean(self):
        env = (ROOT / ".env").read_text(encoding="utf-8")
        doc = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
        self.assertEqual(env, options_doc.with_comments(env, doc),
                         "run tools/up/options_doc.py --bin build/cpu/bin")

    def test_env_shows_the_defaults(self):
        defaults = dict(re.findall(r"\$\{([A-Z0-9_]+):-([^}]*)\}", self.text))
        # What has no default must be given.
        defaults |= dict.fromkeys(re.findall(r"\$\{([A-Z0-9_]+):\?", self.text), "")
        sections = documented_options()
        for section in (*options_doc.RUN, *(f"tetrion-{name}" for name in PROGRAMS)):
            for name, default in sections[section].items():
                defaults.setdefault(name, default)
        for name in set(self.env) - {"COMPOSE_PROFILES"}:
            expected = OTHER_DEFAULTS.get(name, defaults[name])
            self.assertEqual(self.env[name], expected, name)


class OtherHosts(unittest.TestCase):
    """remote.yml and remote-actor.yml, which are read beside docker-compose.yml."""

    @classmethod
    def setUpClass(cls):
        _, *others = read_compose()
        cls.head, cls.far = (yaml.safe_load(text)["services"] for text in others)

    def test_every_variable_is_an_option(self):
        known = set().union(*documented_options().values())
        for services in (self.head, self.far):
            for name, service in services.items():
                self.assertEqual(set(service["environment"]) - known, set(), name)

    def test_every_service_has_its_own_secret_and_nothing_of_keys_that_it_has_no_use_for(self):
        self.assertEqual(sorted(self.head), sorted(OURS))
        self.assertEqual(list(self.far), ["actor"])
        for services in (self.head, self.far):
            for name, service in services.items():
                used = [service["environment"].get(f"TETRION_CURVE_{option}")
                        for option in ("KEY", "SERVER", "ALLOW")]
                self.assertEqual(used[0], f"/keys/{name.removesuffix('-cuda')}.secret")
                self.assertIn(used[2], (None, "/keys/allowed"), "a folder without secrets")
                self.assertEqual(service["volumes"], [
                    {"type": "bind", "target": path, "read_only": True,
                     "source": "${TETRION_KEYS:-./keys}" + path.removeprefix("/keys")}
                    for path in used if path], name)
        self.assertEqual(self.head["coordinator"]["environment"]["TETRION_INSECURE"], "false")

    def test_the_other_host_calls_the_ports_that_the_first_one_opens(self):
        port = "${TETRION_CONTROL_PORT:-9000}"
        self.assertEqual(self.head["coordinator"]["ports"], [f"{port}:9000"])
        called = self.far["actor"]["environment"]
        self.assertTrue(called["TETRION_COORDINATOR"].endswith(f"}}:{port}"))
        self.assertEqual(called["TETRION_ROWS"], "tcp")


class Dockerfile(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.text = (ROOT / "deploy" / "docker" / "Dockerfile").read_text(encoding="utf-8")
        stages = re.split(r"^FROM ", cls.text, flags=re.M)[1:]
        cls.stages = {}
        for stage in stages:
            named = re.match(r"(\S+) AS (\S+)\n", stage)
            if named:
                cls.stages[named[2]] = (named[1], stage)

    def test_every_argument_is_given_by_the_compose_file_under_a_name_of_ours(self):
        known = set(re.findall(r"^ARG (\w+)", self.text, flags=re.M))
        services = yaml.safe_load(read_compose()[0])["services"]
        given = {}
        for name in OURS:
            given |= services[name]["build"]["args"]
        self.assertEqual(set(given), known)
        for name, value in given.items():
            self.assertRegex(value, r"^\$\{TETRION_\w+:-", name)

    def test_images_compile_with_as_many_jobs_as_memory_bears(self):
        for name in ("compiled", "compiled-cuda"):
            stage = self.ancestry(name)
            self.assertRegex(stage, r'&& jobs=\$\(\./tetrion jobs\) \\\n    && cmake --build '
                                    r'--preset \w+ --parallel "\$jobs" ', "ends where it fails")
            self.assertIn("\nARG TETRION_JOBS\n", stage)
            self.assertNotIn("nproc", stage)

    def ancestry(self, name):
        """The text of a stage and of those that it begins with."""
        text = ""
        while name in self.stages:
            parent, stage = self.stages[name]
            text, name = stage + text, parent
        return text

    def test_each_image_has_user_health_check_and_entry_without_a_shell(self):
        for name in (*OURS, "actor-torch"):
            with self.subTest(image=name):
                program = re.match("coordinator|learner|actor", name)[0]
                _, stage = self.stages[name]
                self.assertIn("USER 10001:10001\n", stage)
                self.assertIn(f'\nENTRYPOINT ["/usr/local/bin/tetrion-{program}"]\n', stage)
                self.assertIn(f'CMD ["/usr/local/bin/tetrion-{program}", "healthcheck"]\n', stage)
                self.assertIn("STOPSIGNAL SIGTERM\n", self.ancestry(name))

    def test_coordinator_and_actor_hold_no_tensor_library(self):
        for name in ("coordinator", "actor"):
            self.assertNotIn("/images/lib", self.ancestry(name))

    def test_packages_of_images_are_those_of_the_list(self):
        text = (ROOT / "deploy" / "packages.txt").read_text(encoding="utf-8")
        named = re.findall(r"^\S+ +# image: (\S+)$", text, flags=re.M)
        self.assertGreater(len(named), 5)
        self.assertIn("s/.*# image: //p", self.ancestry("base"))


if __name__ == "__main__":
    unittest.main()
