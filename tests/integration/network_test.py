"""Actors on hosts of their own, encrypted, while their network delays, loses, cuts and moves: the
run goes on, and the account is exact at the end. Once with rows in a folder that all share, so that
the control channel alone is on the network, and once with rows on the network as well.
"""

import re
import time
import unittest

import harness
import keys
import networks

REASON = networks.problem()
PORT, ROWS_PORT = 9000, 9001
# Twice that of other tests: more processes share the processor here, and an actor that gets none of
# it for a whole lease of its last drain can tell no more steps.
SESSION_LEASE_S = 4
# Longer than a session's lease and than the silence after which a member reconnects.
CUT_S = 8
PATIENCE_S = 120  # to reconnect over a bad cable; never decides what is right
# Of an actor's last rows over it: at 5% loss a packet is sent again and again, ever later.
DRAIN_S = 90


@unittest.skipIf(REASON, REASON)
class Network(harness.Case):
    rows = "shm"

    def start(self, slow=None, **coordinator_options):
        """Coordinator and learner in the middle, an actor on each of two hosts; actor-1's cable is
        the one that a test spoils."""
        run = self.new_run()
        coordinator_options = {"session_lease": SESSION_LEASE_S, **coordinator_options}
        self.keys = keys.Keys(self, self.base)
        run.start_coordinator(bind=f"tcp://0.0.0.0:{PORT}", drain_timeout=2 * DRAIN_S,
                              **self.keys.server(), **coordinator_options)
        run.wait_for("the coordinator", lambda _: True)
        self.start_learner(run)
        self.hosts = [networks.Host(), networks.Host(slow)]
        for host in self.hosts:
            self.addCleanup(host.close)
        self.addCleanup(networks.heal)
        for i in range(len(self.hosts)):
            self.start_actor(run, f"actor-{i}", self.hosts[i])
        run.wait_for("both actors", lambda s: s["actors"] == 2, PATIENCE_S)
        return run

    def start_learner(self, run):
        run.start_learner(drain_timeout=2 * DRAIN_S, **self.keys.client("learner"))

    def start_actor(self, run, name, host):
        run.start_process(name, "tetrion-actor", [
            "--coordinator", f"tcp://{networks.MIDDLE}:{PORT}", "--name", name, "--workers", "1",
            "--rows", self.rows, "--drain-timeout", str(DRAIN_S),
            *harness.flags(self.keys.client("actor"))], before=host.enter)

    def episodes_of(self, run, name):
        """Stored episodes of the sessions that this actor has had."""
        begun = {int(n) for n in re.findall(r"session (\d+) begun", run.log(name))}
        return sum(session >> 32 in begun for session, _ in run.episodes())

    def expect_play(self, run, name):
        """It plays episodes that are accounted, also after all that has happened."""
        before = self.episodes_of(run, name)
        harness.wait_until(f"{name} plays", lambda: self.episodes_of(run, name) > before + 20,
                           PATIENCE_S)

    def finish(self, run):
        run.finish_and_check(3 * DRAIN_S)

    def cut(self, run, **directions):
        self.hosts[1].cut(**directions)
        run.cut_off.add("actor-1")

    def stay_cut(self, run):
        """The others go on while the cable is cut, for longer than the lease."""
        end = time.monotonic() + CUT_S
        while time.monotonic() < end:
            run.expect_progress(episodes=20, batches=2)

    def expect_healed(self, run, name="actor-1"):
        networks.heal()
        run.wait_for("both actors", lambda s: s["actors"] == 2, PATIENCE_S)
        self.expect_play(run, name)
        run.expect_progress()
        self.finish(run)

    def test_actors_of_other_hosts_play_encrypted(self):
        run = self.start()
        for name in ("actor-0", "actor-1"):
            self.expect_play(run, name)
        self.finish(run)

    def test_delay_loss_and_packets_that_overtake_each_other_only_slow_an_actor_down(self):
        cable = networks.Slow(delay_s=0.2, jitter_s=0.1, loss=0.05)
        run = self.start(cable, session_lease=20, heartbeat=1)
        self.expect_play(run, "actor-1")
        run.expect_progress()
        self.assertGreater(cable.overtaken, 0)
        self.assertGreater(cable.lost, 0)
        self.finish(run)

    def test_a_partition_costs_time_and_nothing_else(self):
        run = self.start()
        self.expect_play(run, "actor-1")
        self.cut(run)
        self.stay_cut(run)
        run.wait_for("it is missed", lambda s: s["actors"] == 1, PATIENCE_S)
        self.expect_healed(run)

    def test_an_actor_that_is_not_heard_comes_back(self):
        run = self.start()
        self.expect_play(run, "actor-1")
        self.cut(run, outgoing=False)
        self.stay_cut(run)
        self.expect_healed(run)

    def test_an_actor_that_hears_nothing_comes_back(self):
        run = self.start()
        self.expect_play(run, "actor-1")
        self.cut(run, incoming=False)
        self.stay_cut(run)
        self.expect_healed(run)

    def test_an_actor_whose_address_changes_comes_back(self):
        run = self.start()
        self.expect_play(run, "actor-1")
        self.hosts[1].move()
        run.cut_off.add("actor-1")
        harness.wait_until("it notices", lambda: "the coordinator is silent" in run.log("actor-1"),
                           PATIENCE_S)
        self.expect_healed(run)

    def test_connections_of_one_actor_that_overtake_each_other_do_no_harm(self):
        """Cut off again and again for as long as it takes to reconnect: old connections' packets
        come late, after those of their successors."""
        run = self.start(networks.Slow(delay_s=0.05, jitter_s=0.05, loss=0.02))
        self.expect_play(run, "actor-1")
        for seconds in (3.2, 0.5, 4, 1, 3.5):
            self.cut(run)
            time.sleep(seconds)
            networks.heal()
            time.sleep(0.3)
        self.expect_healed(run)


class NetworkOfRows(Network):
    """The same, and the actors see no file of the run."""
    rows = "tcp"

    def start_learner(self, run):
        run.start_learner(drain_timeout=2 * DRAIN_S, rows_bind=f"tcp://0.0.0.0:{ROWS_PORT}",
                          rows_advertise=f"{networks.MIDDLE}:{ROWS_PORT}",
                          curve_allow=self.keys.allowed, **self.keys.client("learner"))

    def finish(self, run):
        self.assertEqual(run.rings(), [], "rows of remote actors have no file")
        for name in ("actor-0", "actor-1"):
            self.assertRegex(run.log(name), r"rows go to the learner at \S+, encrypted")
        super().finish(run)


if __name__ == "__main__":
    harness.use_one_processor()
    harness.main()
