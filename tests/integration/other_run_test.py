"""A coordinator's address that another run takes over, as a service name does in a cluster.

Sessions were plain numbers from 1: the members of the old run went on as if they were the new
run's, which then accounted episodes that its own actor had never played.
"""

import re
import socket

import harness

OTHER_RUN = r"error: .*another run"
TRY_AGAIN = 75


class OtherRun(harness.Case):
    def free_address(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            return f"tcp://127.0.0.1:{free.getsockname()[1]}"

    def start_members(self, run, address):
        """As on another machine: they know nothing but the address."""
        run.start_process("learner", "tetrion-learner",
                          ["--coordinator", address, "--threads", "1"])
        run.start_process("actor-0", "tetrion-actor",
                          ["--coordinator", address, "--name", "actor-0", "--workers", "1"])

    def test_members_of_the_old_run_end_and_the_new_run_has_nothing_of_theirs(self):
        address = self.free_address()
        old = self.new_run("old", folder="a")
        old.start_coordinator(bind=address)
        old.wait_for("the old run", lambda _: True)
        self.start_members(old, address)
        old.expect_progress()
        old.kill("coordinator")

        new = self.new_run("new", folder="b")
        new.start_coordinator(bind=address, settings={"seed": 8})
        new.wait_for("the new run", lambda _: True)
        for name in ["actor-0", "learner"]:
            self.assertEqual(old.wait_exit(name), TRY_AGAIN, name)
            errors = re.findall(OTHER_RUN, old.log(name))
            self.assertEqual(len(errors), 1, old.log(name))
        status = new.status()
        self.assertEqual(status["tokens"]["issued"], 0, "nothing was given to them")
        self.assertEqual((status["actors"], status["learner_up"]), (0, False))
        self.assertEqual(status["env_steps"], 0)

        self.start_members(new, address)
        new.expect_progress()
        new.finish_and_check()
        own = {int(n) for n in re.findall(r"session (\d+) begun", new.log("actor-0"))}
        self.assertEqual({session >> 32 for session, _ in new.episodes()}, own)
        _, violations = harness.check_account.check(old.folder / "tetrion.db")
        self.assertEqual(violations, [])


if __name__ == "__main__":
    harness.main()
