"""What a user can get wrong: one clear sentence and the documented exit code, for each."""

import json
import os
import socket

import harness
import zmtp

USAGE, TRY_AGAIN, CONFIG = 2, 75, 78


class BadOptions(harness.Case):
    def expect(self, code, words, program, *arguments):
        got, said = self.call(program, *arguments)
        self.assertEqual(got, code, said)
        for word in words:
            self.assertIn(str(word), said)

    def test_an_unknown_option_is_refused_with_the_nearest_known_one(self):
        for program in ["tetrion-up", "tetrion-coordinator", "tetrion-learner", "tetrion-actor"]:
            self.expect(USAGE, ["--lanez", "--lanes"], program, "--lanez", "4")

    def test_a_value_out_of_range_is_refused_with_the_range(self):
        self.expect(USAGE, ["workers", "99", "64"], "tetrion-actor", "--workers", "99")
        self.expect(USAGE, ["lanes", "0", "4096"], "tetrion-up", "--lanes", "0")

    def test_an_unknown_key_of_the_config_file_is_refused(self):
        file = self.base / "c.toml"
        file.write_text("[run]\nlanez = 4\n")
        self.expect(USAGE, ["lanez", file], "tetrion-up", "--config", file,
                    "--runs-dir", self.base)

    def test_what_only_a_service_could_judge_is_refused_before_anything_is_made(self):
        runs, shm = self.base / "runs", self.base / "shm"
        known = "choose one of tetris, tetris-placement, cartpole"
        for words, settings in [(["chess", known], ["--env=chess", "--max-steps=40"]),
                                (["view", "planes"], ["--env=cartpole", "--view=planes"]),
                                (["conv", "planes"], ["--network=conv"]),
                                (["minibatches", "64"], ["--minibatches=3"]),
                                (["--stop-after", "3d"], ["--stop-after=3d"])]:
            for program in ["tetrion-up", "tetrion-coordinator"]:
                self.expect(USAGE, words, program, "--runs-dir", runs, "--shm-dir", shm, *settings)
                self.assertFalse(runs.exists() or shm.exists(), settings)

    def test_a_folder_for_shared_memory_that_cannot_be_used_is_refused_before_a_run_is_made(self):
        runs, open_to_all, file = self.base / "runs", self.base / "open", self.base / "file"
        open_to_all.mkdir()
        open_to_all.chmod(0o755)
        file.write_text("")
        for shm, words in [(open_to_all, ["open to other users"]), (file, ["is no folder"])]:
            self.expect(USAGE, [shm, "--shm-dir", *words], "tetrion-up", "--run", "x",
                        "--runs-dir", runs, "--shm-dir", shm)
            self.assertFalse((runs / "x").exists())

    def test_a_run_whose_service_cannot_start_does_not_end_like_a_success(self):
        file = self.base / "c.toml"
        file.write_text("[learner]\nthreadz = 4\n")
        code, said = self.call("tetrion-up", "--run", "x", "--runs-dir", self.base,
                               "--shm-dir", self.base / "shm", "--config", file, "--workers", "1")
        self.assertEqual(code, USAGE, said)
        self.assertRegex(said, rf"run x FAILED .*learner ended; see {self.base}/x/logs/learner.log")
        self.assertNotIn("env steps", said)
        self.assertIn("threadz", (self.base / "x" / "logs" / "learner.log").read_text())

    def test_a_folder_that_cannot_be_written_is_refused(self):
        (self.base / "file").write_text("")
        self.expect(USAGE, [self.base / "file"], "tetrion-coordinator", "--run", "x",
                    "--runs-dir", self.base / "file", "--shm-dir", self.base / "shm")

    def test_something_that_is_no_run_cannot_be_resumed(self):
        for program in ["tetrion-up", "tetrion-coordinator"]:
            self.expect(USAGE, ["nothing", self.base], program, "--resume", "nothing",
                        "--runs-dir", self.base)

    def test_an_existing_run_is_not_started_again(self):
        (self.base / "x").mkdir()
        (self.base / "x" / "config.toml").write_text("[run]\n")
        for program in ["tetrion-up", "tetrion-coordinator"]:
            self.expect(USAGE, ["x", "--resume x"], program, "--run", "x",
                        "--runs-dir", self.base)


    def test_a_healthcheck_needs_its_name_and_a_fixed_port(self):
        for program in ["tetrion-coordinator", "tetrion-learner", "tetrion-actor"]:
            self.expect(1, ["--http-bind 127.0.0.1:0", "TETRION_HTTP_BIND"], program, "healthcheck")
            self.expect(USAGE, ["helthcheck", "healthcheck"], program, "helthcheck")


class BadPeers(harness.Case):
    def test_a_port_in_use_is_refused_with_the_address(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for option, value in [("--bind", f"tcp://127.0.0.1:{port}"),
                                  ("--http-bind", f"127.0.0.1:{port}")]:
                code, said = self.call(
                    "tetrion-coordinator", "--run", f"x{option}", "--runs-dir", self.base,
                    "--shm-dir", self.base / "shm", option, value)
                self.assertEqual(code, USAGE, said)
                self.assertIn(f"127.0.0.1:{port}", said)

    def test_contradicting_settings_are_refused_with_both_values(self):
        run = self.new_run()
        run.start_coordinator()
        run.wait_for("the run", lambda _: True)
        for program in ["tetrion-actor", "tetrion-learner"]:
            code, said = self.call(program, "--run-folder", run.folder, "--lanes", "5")
            self.assertEqual(code, CONFIG, said)
            self.assertRegex(said, r"lanes.*5.*8|lanes.*8.*5")
            code, said = self.call(program, "--run-folder", run.folder, "--window", "3",
                                   environment={"TETRION_LANES": "5", "TETRION_WINDOW": "2"})
            self.assertEqual(code, CONFIG, said)
            self.assertRegex(said, r"lanes: here 5, the run has 8.*\(lanes is from TETRION_LANES\)")
            self.assertIn("window: here 3", said)
        run.drain()

    def test_an_actor_without_a_coordinator_says_so_and_gives_up(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:  # no server answers there
            port = taken.getsockname()[1]
            with socket.create_server(("127.0.0.1", 0)) as free:
                http = free.getsockname()[1]
            run = self.new_run()
            run.start_process("actor-0", "tetrion-actor",
                              ["--coordinator", f"tcp://127.0.0.1:{port}", "--give-up", "15",
                               "--http-bind", f"127.0.0.1:{http}"])
            code, reason = harness.wait_until("not ready, for a reason that names the coordinator",
                                              lambda: self.not_ready(http, port))
            self.assertEqual(code, 503)
            self.assertIn("does not answer", reason)
            self.assertEqual(harness.get(f"127.0.0.1:{http}", "/livez")[0], 200)
            where = {"TETRION_HTTP_BIND": f"0.0.0.0:{http}"}
            code, said = self.call("tetrion-actor", "healthcheck", environment=where)
            self.assertEqual(code, 1)
            self.assertIn("does not answer", said)
            self.assertEqual(self.call("tetrion-actor", "healthcheck", "--live",
                                       environment=where), (0, ""))
            self.assertEqual(run.wait_exit("actor-0"), TRY_AGAIN)
            self.assertIn("no coordinator for 15 s", run.log("actor-0"))

    def not_ready(self, http, port):
        code, reason = harness.get(f"127.0.0.1:{http}", "/readyz")
        return (code, reason) if str(port) in reason and "does not answer" in reason else None

    def test_garbage_on_the_control_port_disturbs_no_member(self):
        run = self.new_run().start_by_hand(bind="tcp://127.0.0.1:0")
        run.expect_progress()
        endpoints = json.loads((run.folder / "endpoints.json").read_text())
        control = endpoints["control"]
        for _ in range(8):
            self.send(zmtp.connect(control), os.urandom(4096))
        run.expect_progress()
        before = self.malformed(endpoints)
        # Closing a socket with unread bytes resets it, which may swallow what was sent: again.
        def counted():
            messages = [b"no flatbuffer", b"", os.urandom(500)]
            self.send(zmtp.dealer(control), b"".join(map(zmtp.frame, messages)))
            return self.malformed(endpoints) > before
        harness.wait_until("it is counted", counted)
        for _ in range(4):
            flood = b"".join(zmtp.frame(os.urandom(200)) for _ in range(5000))
            self.send(zmtp.dealer(control), flood)
        run.expect_progress()
        self.assertNotIn("fenced;", run.log("actor-0"))
        run.finish_and_check()

    def send(self, peer, data):
        """Says all of it and listens until nothing comes any more."""
        with peer:
            try:
                peer.sendall(data)
                zmtp.hung_up(peer, timeout_s=0.5)
            except OSError:
                pass  # hung up on, as it should be

    def malformed(self, endpoints):
        text = harness.get(endpoints["http"]["coordinator"], "/metrics")[1]
        return sum(float(line.split()[-1]) for line in text.splitlines()
                   if "malformed" in line and not line.startswith("#"))


class BadCheckpoints(harness.Case):
    def test_a_corrupt_newest_one_is_passed_over_and_none_usable_is_an_error(self):
        run = self.new_run().start_up()
        run.wait_for("three checkpoints", lambda s: s["learner"].get("checkpoints", 0) >= 3)
        run.finish_and_check()
        files = sorted((run.folder / "checkpoints").glob("*.safetensors"))
        self.assertGreaterEqual(len(files), 2)
        files[-1].write_bytes(files[-1].read_bytes()[:1000])
        run.start_up(resume=True)
        run.expect_progress()
        run.drain()
        self.assertIn(f"{files[-1].name} is missing or has another length", run.log("up"))
        said = run.log("learner")
        self.assertIn(files[-1].name, said.split(" W [learner")[1].splitlines()[0])
        self.assertIn(f"resumed from {files[-2]}", said)

        newest = sorted((run.folder / "checkpoints").glob("*.safetensors"))[-1]
        damaged = bytearray(newest.read_bytes())
        damaged[-1] ^= 1  # its length says nothing
        newest.write_bytes(damaged)
        run.start_up(resume=True)
        status = run.wait_for("an update", lambda s: s["learner"].get("updates", 0) > 0)
        self.assertEqual(status["learner"]["older_checkpoint"], 1)
        run.drain()
        self.assertIn("the newest checkpoint could not be used", run.log("up"))

        for file in (run.folder / "checkpoints").glob("*.safetensors"):
            file.write_bytes(b"garbage" * 100)
        run.start_up(resume=True)
        self.assertEqual(run.wait_exit("up"), CONFIG)
        errors = [line for line in run.log("learner").splitlines() if "error:" in line]
        self.assertEqual(len(errors), 1, errors)
        self.assertIn("checkpoint", errors[0])
        self.assertEqual(harness.wait_until_gone(run.base), [])


if __name__ == "__main__":
    harness.main()
