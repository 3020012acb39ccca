"""A real Prometheus, with the configuration of deploy/, scrapes real runs: all targets are up, each
query of every dashboard has data, no alert fires while all is well or when the run has ended, and
one does when no actor or no learner is left or one is frozen.

Skipped where Prometheus is not installed. The dashboards' own files: tests/deploy.
"""

import json
import os
import pathlib
import re
import signal
import socket
import time
import unittest

import harness
import prometheus

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE_S = 90  # for what takes Prometheus several scrapes, on a loaded machine
RATE_WINDOW = "20s"
HOLD_S = 15  # instead of the minutes that alerts wait; its first look at targets takes 5 s
ON_SLOW_MACHINES = {"RingSaturated"}  # tells which side is slower, nothing is wrong
# Queries without data here: a part of the query -> the reason.
MAY_BE_EMPTY = {
    "tetrion_learner_resident_": "only of a learner that plays lanes itself",
    "tetrion_learner_remote_": "only of a learner that takes rows of other hosts",
    "tetrion_actor_answer_seconds": "only of streamed workers",
    "by (reason) (increase(tetrion_coordinator_refused_total": "only of messages refused",
}


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def dashboard_queries():
    """{query as Prometheus takes it: where it stands}."""
    found = {}
    for path in sorted((ROOT / "deploy/grafana/dashboards").glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"].replace("$__rate_interval", RATE_WINDOW)
                found[query.replace("$run", "x")] = f"{path.stem}: {panel['title']}"
    return found


@unittest.skipIf(prometheus.MISSING, prometheus.MISSING_TEXT)
class Monitoring(harness.Case):
    def watch(self, run, services):
        """Prometheus beside a run that has begun to learn, with every service as a target."""
        run.expect_progress()
        folder = prometheus.installed_config(run.folder, hold=f"{HOLD_S}s")
        server = prometheus.Prometheus(folder, free_port(), harness.die_with_parent)
        self.addCleanup(server.close)
        try:
            harness.wait_until("every target is up", lambda: server.targets() == dict.fromkeys(
                services, "up"), DEADLINE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {server.targets()}\n{server.said()}") from None
        return server

    def finish(self, run, server):
        server.close()  # its files are in the run's folder
        run.finish_and_check()

    def expect_data(self, server):
        """Of every query at least one number."""
        missing = {query: place for query, place in dashboard_queries().items()
                   if not any(part in query for part in MAY_BE_EMPTY)}
        self.assertGreater(len(missing), 50)

        def look():
            self.assertEqual(self.firing(server), set())
            for query in list(missing):
                values = [sample["value"][1] for sample in server.query(query)]
                if any(value != "NaN" for value in values):
                    del missing[query]
            return not missing
        try:
            harness.wait_until("every query has data", look, DEADLINE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; without data: {missing}") from None

    def expect_quiet(self, server, seconds, but=frozenset()):
        """Long enough for what was pending meanwhile to fire."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertEqual(self.firing(server) - but, set())
            time.sleep(1)

    def jobs(self, server):
        """{service: what Prometheus takes it for}."""
        return {sample["metric"]["service"]: sample["metric"]["job"]
                for sample in server.query("up")}

    def firing(self, server):
        return {alert for alert, states in server.alerts().items()
                if "firing" in states} - ON_SLOW_MACHINES

    def test_a_run_of_up_fills_every_panel_and_raises_no_alert(self):
        run = self.new_run()
        run.start_up(actors=2, settings={"env": "tetris-placement", "max_steps": 500})
        server = self.watch(run, ["coordinator", "learner", "actor-0", "actor-1"])
        self.expect_data(server)
        self.expect_quiet(server, 2 * HOLD_S)
        self.assertEqual({sample["metric"]["run"]
                          for sample in server.query("tetrion_coordinator_actors")}, {"x"})
        self.assertEqual(self.jobs(server), {"coordinator": "coordinator", "learner": "learner",
                                             "actor-0": "actor", "actor-1": "actor"})
        self.finish(run, server)

    def test_the_last_actor_s_death_is_an_alert_until_another_comes(self):
        run = self.new_run()
        run.learner_options = {"name": "gpu0"}
        run.start_by_hand(actors=1)
        server = self.watch(run, ["coordinator", "gpu0", "actor-0"])
        self.expect_data(server)
        self.assertEqual(self.jobs(server)["gpu0"], "learner", "whatever it is called")
        run.kill("actor-0")
        seen = set()

        def no_actors():
            seen.update(server.alerts().get("NoActors", ()))
            return "firing" in seen
        harness.wait_until("the alert fires", no_actors, DEADLINE_S)
        self.assertIn("pending", seen)
        self.assertNotIn("actor-0", server.targets(), "a dead actor is no target")
        run.start_actor("actor-1")
        harness.wait_until("the alert is over", lambda: "NoActors" not in server.alerts(),
                           DEADLINE_S)
        self.finish(run, server)

    def test_a_dead_learner_is_an_alert_and_the_run_s_end_is_none(self):
        run = self.new_run().start_by_hand(actors=1)
        server = self.watch(run, ["coordinator", "learner", "actor-0"])
        run.kill("learner")
        harness.wait_until("the alert fires", lambda: "LearnerDown" in self.firing(server),
                           DEADLINE_S)
        self.assertNotIn("learner", server.targets(), "a dead learner is no target")
        run.start_learner(resume=True)
        harness.wait_until("the alert is over", lambda: "LearnerDown" not in server.alerts(),
                           DEADLINE_S)
        run.expect_progress()
        run.drain()
        harness.wait_until("no target is left", lambda: not server.targets(), DEADLINE_S)
        self.expect_quiet(server, 2 * HOLD_S, but={"LeaseExpiries"})  # the killed learner's
        server.close()
        run.check_ended()

    def test_a_frozen_actor_s_lease_is_an_alert_of_its_own(self):
        run = self.new_run().start_by_hand(actors=2)
        server = self.watch(run, ["coordinator", "learner", "actor-0", "actor-1"])
        harness.wait_until("the count is there", lambda: server.query(
            "tetrion_coordinator_sessions_ended_total"), DEADLINE_S)
        pid = run.signal("actor-0", signal.SIGSTOP)
        harness.wait_until("the alert fires", lambda: "LeaseExpiries" in self.firing(server),
                           DEADLINE_S)
        os.kill(pid, signal.SIGCONT)
        run.wait_for("it is back", lambda s: s["actors"] == 2)
        self.assertNotIn("NoActors", server.alerts())
        self.finish(run, server)


class Queries(unittest.TestCase):
    def test_every_exception_is_of_a_query_that_exists(self):
        for part in MAY_BE_EMPTY:
            self.assertTrue(any(part in query for query in dashboard_queries()), part)
        self.assertFalse([q for q in dashboard_queries() if re.search(r"\$\w", q)])


if __name__ == "__main__":
    harness.use_one_processor()
    harness.main()
