"""How a collector ends: close, Ctrl-C, exit, fork."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import pytest
from collecting import PATIENCE_S, collector, zeros
from tetrion import BatchedTetrisCollector


@pytest.mark.parametrize("workers", [0, 2])
def test_close_inside_the_policy_ends_the_request(workers):
    def policy(worker, observations):
        c.close()
        return zeros(worker, observations)

    c = collector(workers, 8, policy_fn=policy)
    with pytest.raises(RuntimeError, match="closed"):
        c.request_episodes(2)
    c.close()
    with pytest.raises(RuntimeError, match="the collector is closed; make a new one"):
        c.request_episodes(2)
    c.close()


def test_close_from_another_thread_ends_the_request():
    started = threading.Event()

    def policy(worker, observations):
        started.set()
        return zeros(worker, observations)

    c = collector(2, 64, env="cartpole", policy_fn=policy)
    closer = threading.Thread(target=lambda: (started.wait(PATIENCE_S), c.close()))
    closer.start()
    with pytest.raises(RuntimeError, match="closed"):
        c.request_episodes(1 << 16)
    closer.join(PATIENCE_S)
    assert not closer.is_alive()


def test_timeout_gives_up_while_the_policy_sleeps_and_the_next_request_works():
    release = threading.Event()

    def policy(worker, observations):
        release.wait(PATIENCE_S)
        return zeros(worker, observations)

    with BatchedTetrisCollector(1, 4, policy_fn=policy, timeout=0.05) as c:
        with pytest.raises(TimeoutError, match=r"not there after 0\.05 s; give a longer timeout"):
            c.request_episodes(1)
        release.set()
        assert c.request_episodes(2, timeout=PATIENCE_S).job_ids.tolist() == [1, 2]


def test_a_collector_is_not_copied_and_goes_on():
    with BatchedTetrisCollector(1, 8) as c:
        for through in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled: make another"):
                through(c)
        gc.collect()
        assert len(c.request_episodes(2).lengths) == 2


def test_close_gives_up_on_a_policy_that_sleeps():
    inside, release = threading.Event(), threading.Event()

    def policy(worker, observations):
        inside.set()
        release.wait(PATIENCE_S)
        return zeros(worker, observations)

    c = collector(1, 4, policy_fn=policy)
    request = threading.Thread(target=raised_by, args=(c,))
    request.start()
    assert inside.wait(PATIENCE_S)
    with pytest.raises(TimeoutError, match=r"has not returned within 0\.05 s: the collector is cl"):
        c.close(timeout=0.05)
    assert c.closed
    with pytest.raises(ValueError, match="timeout must be positive or None, not 0"):
        c.close(timeout=0)
    release.set()
    c.close(timeout=PATIENCE_S)
    request.join(PATIENCE_S)
    assert not request.is_alive()


def raised_by(c):
    """What a request of `c` raises."""
    try:
        c.request_episodes(1)
    except RuntimeError as error:
        return error
    return None


@pytest.mark.parametrize("first", ["LookupError", "TimeoutError"])
def test_a_with_statement_lets_the_first_error_out_though_a_policy_is_stuck(first):
    done = run_python(f"""
        import queue, threading, time, tetrion
        inside = threading.Event()
        def policy(worker, observations):
            if "{first}" == "LookupError" and inside.is_set():
                raise LookupError("on purpose")
            inside.set()
            queue.Queue().get()  # without end
        start = time.monotonic()
        try:
            with tetrion.BatchedTetrisCollector(2, 5, policy_fn=policy, timeout=60) as c:
                if "{first}" == "LookupError":
                    c.request_episodes(16)
                else:
                    c.request_episodes(16, timeout=0.5)
        except {first}:
            print(time.monotonic() - start)
    """)
    assert elapsed_of(done) < 2 + MARGIN_S


def test_ctrl_c_ends_a_request_whose_policy_sleeps():
    release = threading.Event()

    def policy(worker, observations):
        os.kill(os.getpid(), signal.SIGINT)
        release.wait(PATIENCE_S)
        return zeros(worker, observations)

    with collector(1, 4, policy_fn=policy) as c:
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            c.request_episodes(1)
        print(f"KeyboardInterrupt after {time.monotonic() - start:.3f} s")
        assert not release.is_set()  # no thread waited for the policy
        release.set()


def test_a_collector_in_a_cycle_with_its_policy_is_collected():
    class Trainer:
        def __init__(self):
            self.collector = collector(1, 4, policy_fn=self.act)

        def act(self, worker, observations):
            return zeros(worker, observations)

    trainer = Trainer()
    trainer.collector.request_episodes(2)
    gone = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert gone() is None


# For programs: makes requests that time out until one has reached a policy that sets `inside`.
REACH = """
def reach(c, inside):
    import time
    seconds, until = 0.01, time.monotonic() + 40
    while not inside.is_set():
        assert time.monotonic() < until, "no policy was called"
        try:
            c.request_episodes(4, timeout=seconds)
        except TimeoutError:
            seconds = min(2 * seconds, 5.0)
"""


def run_python(code):
    """Runs a program; its hang is the test's failure."""
    return subprocess.run(
        [sys.executable, "-c", REACH + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_the_interpreter_exits_with_collectors_open():
    done = run_python("""
        import threading, numpy as np, tetrion
        open_ones = [
            tetrion.BatchedTetrisCollector(
                2, 8, policy_fn=lambda w, o: np.zeros(len(o), int), env="cartpole"
            )
            for _ in range(3)
        ]
        for c in open_ones:
            c.request_episodes(2)
        busy = threading.Thread(target=lambda: open_ones[0].request_episodes(1 << 20), daemon=True)
        busy.start()
        while open_ones[0].stats()["rows"] < 100:
            pass
        print("bye")
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "bye\n"


def test_a_forked_child_is_told_and_exits():
    done = run_python("""
        import os, sys, tetrion
        c = tetrion.BatchedTetrisCollector(2, 8)
        c.request_episodes(2)
        child = os.fork()
        if child == 0:
            try:
                c.request_episodes(1)
            except RuntimeError as error:
                assert "forked" in str(error), error
                c.close()
                with tetrion.BatchedTetrisCollector(1, 4) as own:
                    assert own.request_episodes(1).lengths[0] == 4
                sys.exit(7)
            sys.exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert c.request_episodes(1).job_ids[0] == 2
    """)
    assert done.returncode == 0, done.stderr


MARGIN_S = 10.0  # of a busy machine, far below PATIENCE_S and below the sleepers' sleep


def elapsed_of(done):
    """Seconds that a program printed after what it did."""
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr
    return float(done.stdout.split()[-1])


@pytest.mark.parametrize("inside", ["request", "with"])
def test_ctrl_c_leaves_a_policy_that_never_returns(inside):
    done = run_python(f"""
        import os, queue, signal, time, tetrion
        def policy(worker, observations):
            os.kill(os.getpid(), signal.SIGINT)
            queue.Queue().get()  # without end
        c = tetrion.BatchedTetrisCollector(2, 4, policy_fn=policy)
        start = time.monotonic()
        try:
            if "{inside}" == "request":
                c.request_episodes(4)
            else:
                with c:
                    c.request_episodes(4)
        except KeyboardInterrupt:
            print(time.monotonic() - start)
    """)
    assert elapsed_of(done) < 0.2 + MARGIN_S


def test_ctrl_c_ends_a_close_that_waits():
    done = run_python("""
        import os, queue, signal, threading, time, tetrion
        inside = threading.Event()
        def policy(worker, observations):
            inside.set()
            queue.Queue().get()  # without end
        c = tetrion.BatchedTetrisCollector(1, 4, policy_fn=policy)
        reach(c, inside)
        start = time.monotonic()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            c.close(timeout=50)
        except KeyboardInterrupt:
            print(time.monotonic() - start)
    """)
    assert elapsed_of(done) < 0.3 + MARGIN_S


@pytest.mark.parametrize(
    "how", ["falls off", "sys.exit", "in a daemon thread", "dropped", "Ctrl-C"]
)
def test_the_interpreter_exits_while_a_policy_never_returns(how):
    start = time.monotonic()
    done = run_python(f"""
        import os, queue, signal, sys, threading, time, tetrion
        inside = threading.Event()
        def policy(worker, observations):
            inside.set()
            queue.Queue().get()  # without end
        c = tetrion.BatchedTetrisCollector(2, 4, policy_fn=policy)
        request = threading.Thread(target=c.request_episodes, args=(4,), daemon=True)
        if "{how}" == "in a daemon thread":
            request.start()
            assert inside.wait(40)
        else:
            reach(c, inside)
        if "{how}" == "dropped":
            del c, request
        if "{how}" == "Ctrl-C":
            def interrupt():
                while not c.closed:  # the exit hook has begun
                    time.sleep(0.001)
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=interrupt, daemon=True).start()
        print("0", flush=True)
        if "{how}" == "sys.exit":
            sys.exit(0)
    """)
    print(f"exit after {time.monotonic() - start:.2f} s")
    elapsed_of(done)
    assert time.monotonic() - start < 2 + MARGIN_S + 20


@pytest.mark.parametrize("how", ["idle", "dropped", "stuck", "made at exit"])
def test_the_interpreter_exits_with_workers_that_keep_something_for_their_thread(how):
    start = time.monotonic()
    done = run_python(f"""
        import atexit, threading, time, numpy as np
        here = threading.local()
        inside = threading.Event()
        class Kept:
            def __del__(self):
                threading.get_ident()
        def policy(worker, observations):
            here.kept = Kept()
            inside.set()
            if "{how}" in ("stuck", "dropped"):
                time.sleep(2.1)  # beyond the exit's patience
            return np.zeros(len(observations), np.int32)
        def play():
            global c
            c = tetrion.BatchedTetrisCollector(2, 4, policy_fn=policy)
            reach(c, inside)
        if "{how}" == "made at exit":
            atexit.register(play)  # hooks are called last in, first out
        import tetrion
        if "{how}" != "made at exit":
            play()
        if "{how}" == "dropped":
            del c
        print("0", flush=True)
    """)
    print(f"exit after {time.monotonic() - start:.2f} s")
    elapsed_of(done)


def test_a_forked_child_has_none_of_what_workers_keep():
    done = run_python("""
        import os, sys, threading, numpy as np, tetrion
        here = threading.local()
        class Kept(list):
            pass
        def policy(worker, observations):
            if not hasattr(here, "kept"):
                here.kept = Kept()
            return np.zeros(len(observations), np.int32)
        c = tetrion.BatchedTetrisCollector(2, 8, policy_fn=policy)
        c.request_episodes(4)
        child = os.fork()
        if child == 0:
            with tetrion.BatchedTetrisCollector(2, 4, policy_fn=policy) as own:
                assert own.request_episodes(4).lengths.tolist() == [4] * 4
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        c.request_episodes(4)
        print("0")
    """)
    elapsed_of(done)


def test_a_worker_that_holds_the_last_reference_to_its_collector_ends():
    """threading.local keeps the collector, which nobody else has: its worker drops it at its end,
    and must not join itself."""
    done = run_python("""
        import gc, threading, time, weakref, numpy as np, tetrion
        here = threading.local()
        inside, release = threading.Event(), threading.Event()
        def policy(worker, observations):
            here.collector = owner[0]
            inside.set()
            release.wait(40)
            return np.zeros(len(observations), np.int32)
        owner = [tetrion.BatchedTetrisCollector(1, 4, policy_fn=policy)]
        reach(owner[0], inside)
        gone = weakref.ref(owner[0])
        try:
            owner[0].close(timeout=0.05)
        except TimeoutError:
            pass
        owner.clear()
        assert gone() is not None
        release.set()
        until = time.monotonic() + 40
        while gone() is not None and time.monotonic() < until:
            time.sleep(0.01)
        assert gone() is None
        print("0")
    """)
    elapsed_of(done)


def test_a_policy_that_returns_during_the_exit_prints_nothing():
    for delay in (1.9, 2.0, 2.05, 2.1):  # around the exit's patience
        done = run_python(f"""
            import threading, time, tetrion
            inside = threading.Event()
            def policy(worker, observations):
                inside.set()
                time.sleep({delay})
                raise LookupError("nobody is there")
            c = tetrion.BatchedTetrisCollector(2, 4, policy_fn=policy)
            reach(c, inside)
            print("0")
        """)
        elapsed_of(done)


def test_a_forked_child_and_a_daemon_thread_print_nothing_at_exit():
    done = run_python("""
        import os, sys, threading, numpy as np, tetrion
        def policy(worker, observations):
            return np.zeros(len(observations), np.int32)
        c = tetrion.BatchedTetrisCollector(2, 8, policy_fn=policy, env="cartpole")
        kept = c.request_episodes(2)
        envs = tetrion.vector.make("tetris", 8, threads=2)
        envs.reset(seed=1)
        child = os.fork()
        if child == 0:
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        def steps():
            while True:
                envs.step(np.zeros(8, np.int32))
        threading.Thread(target=c.request_episodes, args=(1 << 20,), daemon=True).start()
        threading.Thread(target=steps, daemon=True).start()
        print("0", flush=True)
        sys.exit(0)
    """)
    elapsed_of(done)


@pytest.mark.parametrize(
    "make",
    [
        "4096, env='tetris-placement', obs='afterstates'",
        "4096, env='tetris', obs='flat'",
        "512, obs_flatten=operator.itemgetter('row')",
    ],
)
def test_ctrl_c_is_seen_between_lanes_of_the_callers_thread(make):
    """The handler notes the time; the request must have seen it long before it would have ended."""
    lanes, rest = make.split(", ", 1)
    done = run_python(f"""
        import operator, os, signal, threading, time, numpy as np, tetrion
        operator.itemgetter = lambda key: lambda o: o["board"][0]
        sent = []
        def send():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        c = tetrion.BatchedTetrisCollector(0, 1 << 12, lanes_per_worker={lanes}, {rest},
                                           order="job")
        threading.Timer(0.3, send).start()
        try:
            while True:
                c.request_episodes({lanes} // 16)
        except KeyboardInterrupt:
            print(time.monotonic() - sent[0])
    """)
    took = elapsed_of(done)
    print(f"seen after {took:.3f} s")
    assert took < 0.2 + MARGIN_S


@pytest.mark.parametrize("workers", [0, 1])
def test_close_in_a_policy_of_a_policy_only_tells(workers):
    """A's policy asks B, whose policy closes A: A's worker cannot be joined there."""
    with collector(workers, 3) as outer, collector(workers, 3) as inner:

        def closing(worker, observations):
            outer.close()
            return zeros(worker, observations)

        def asking(worker, observations):
            assert inner.request_episodes(1).lengths[0] == 3
            return zeros(worker, observations)

        outer.__init__(workers, 3, policy_fn=asking, timeout=PATIENCE_S)
        inner.__init__(workers, 3, policy_fn=closing, timeout=PATIENCE_S)
        with pytest.raises(RuntimeError, match="closed"):
            outer.request_episodes(1)
