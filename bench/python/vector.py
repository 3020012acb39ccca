"""Our vector environments against Gymnasium's, envpool's and tetris-gymnasium: random actions.

vector.py FOLDER [--quick]: FOLDER holds the built package (build/release/python). Actions are drawn
beforehand; every pair is measured in turns, window by window, so that a busy machine slows both.
Prints one JSON line a figure; the threads that it names are both sides' unless the rival's name
says another number. A rival that is not installed is left out with a remark; envpool, whose
dependencies are large, lives in an environment of its own: ./tetrion bench makes it in
.deps/envpool, and TETRION_ENVPOOL_PYTHON names another one's interpreter.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

try:
    import gymnasium
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)

ENVPOOL_PYTHON = pathlib.Path(__file__).resolve().parents[2] / ".deps/envpool/bin/python"
ACTION_SETS = 16
ENVS, MANY = 1024, 16384
WINDOWS = 7


class Stepper:
    """Steps one vector environment with actions drawn beforehand."""

    def __init__(self, envs, num_envs):
        rng = np.random.default_rng(1)
        count = int(envs.single_action_space.n)
        self.envs, self.num_envs, self.at = envs, num_envs, 0
        self.actions = [rng.integers(count, size=num_envs) for _ in range(ACTION_SETS)]
        envs.reset(seed=1)

    def rate(self, seconds):
        """Environment steps a second over one window."""
        start = time.perf_counter()
        steps = 0
        while time.perf_counter() - start < seconds:
            for _ in range(4):
                self.at = (self.at + 1) % ACTION_SETS
                self.envs.step(self.actions[self.at])
                steps += self.num_envs
        return steps / (time.perf_counter() - start)


class Envpool:
    """A task of envpool's in this interpreter."""

    def __init__(self, task, num_envs, threads):
        import envpool

        rng = np.random.default_rng(1)
        self.envs = envpool.make_gymnasium(task, num_envs=num_envs, seed=1, num_threads=threads)
        space = self.envs.action_space
        least, beyond = (0, space.n) if hasattr(space, "n") else (space.low, space.high + 1)
        shape = (num_envs, *space.shape)
        self.num_envs, self.at = num_envs, 0
        self.actions = [
            rng.integers(least, beyond, size=shape).astype(np.int32) for _ in range(ACTION_SETS)
        ]
        self.envs.reset()

    rate = Stepper.rate


class RivalEnded(Exception):
    """Envpool behind a pipe is no longer there."""


class Elsewhere:
    """Envpool behind another interpreter's pipe: one window a line."""

    def __init__(self, python, task, num_envs, threads):
        command = [python, __file__, "--serve-envpool", task, str(num_envs), str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self.process.stdout.readline().strip() != "ready":
            raise ImportError(f"{python} has no usable envpool")

    def rate(self, seconds):
        try:
            self.process.stdin.write(f"{seconds}\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())
        except (OSError, ValueError) as error:  # an empty line is no number
            raise RivalEnded from error


def serve_envpool(task, num_envs, threads):
    """The other end of Elsewhere."""
    stepper = Envpool(task, num_envs, threads)
    print("ready", flush=True)
    for line in sys.stdin:
        print(stepper.rate(float(line)), flush=True)


def envpool_rival(task, threads):
    """envpool here or elsewhere; None with a remark."""
    try:
        return Envpool(task, ENVS, threads)
    except Exception as here:  # its import also fails for want of its assets
        python = os.environ.get("TETRION_ENVPOOL_PYTHON") or (
            str(ENVPOOL_PYTHON) if ENVPOOL_PYTHON.exists() else None
        )
        try:
            if python:
                return Elsewhere(python, task, ENVS, threads)
            print(f"no envpool: {here}")
        except (ImportError, OSError) as elsewhere:
            print(f"no envpool: {elsewhere}")
    return None


def spread(values):
    """median, min, max."""
    ordered = sorted(values)
    return {"median": ordered[len(ordered) // 2], "min": ordered[0], "max": ordered[-1]}


def report(what, ours, rival, rival_name, seconds, target=None, note=None):
    """Measures in turns and prints one figure; that of ours alone where the rival ended."""
    our_rates, rival_rates = [], []
    try:
        for _ in range(1 + WINDOWS):  # the first warms up
            our_rates.append(ours.rate(seconds))
            if rival is not None:
                rival_rates.append(rival.rate(seconds))
        our_rates, rival_rates = our_rates[1:], rival_rates[1:]
    except RivalEnded:
        print(f"skipped: {rival_name}: it ended while it was measured")
        report(what, ours, None, rival_name, seconds, target, note)
        return
    figure = {"what": what, "unit": "steps/s", "ours": spread(our_rates), "target": target}
    figure["rival"] = {"name": rival_name, **spread(rival_rates)} if rival is not None else None
    ratios = [a / b for a, b in zip(our_rates, rival_rates, strict=False)]
    figure["ratio"] = spread(ratios) if ratios else None
    if note:
        figure["note"] = note
    print(json.dumps(figure), flush=True)


def ours(tetrion, env, num_envs=ENVS, **options):
    """`threads` among the options are beside the caller's own."""
    return Stepper(tetrion.vector.make(env, num_envs, seed=1, **options), num_envs)


def tetris_package():
    """tetris-gymnasium's environment, one at a time, with gymnasium's autoreset; None without."""
    try:
        from tetris_gymnasium.envs import Tetris
    except ImportError as error:
        print(f"no tetris-gymnasium: {error}")
        return None
    return Stepper(gymnasium.vector.SyncVectorEnv([Tetris] * 4), 4)


def cartpoles(tetrion, seconds):
    """The figures of CartPole. Gymnasium has one thread whatever ours have."""
    title = "gymnasium CartPoleVectorEnv"
    for threads in (1, 2):
        beside = {"threads": threads - 1}
        end = ", 1 thread" if threads == 1 else f", {threads} threads"
        mine = ours(tetrion, "cartpole", **beside)
        name = f"python cartpole x{ENVS}{end}"
        report(
            name,
            mine,
            envpool_rival("CartPole-v1", threads),
            "envpool",
            seconds,
            ">= 40x" if threads == 1 else None,
        )
        for count in (ENVS, MANY):
            vector = gymnasium.make_vec(
                "CartPole-v1", num_envs=count, vectorization_mode="vector_entry_point"
            )
            report(
                f"python cartpole x{count}{end}",
                mine if count == ENVS else ours(tetrion, "cartpole", count, **beside),
                Stepper(vector, count),
                title if threads == 1 else f"{title}, 1 thread",
                seconds,
                ">= 3x" if (count, threads) == (MANY, 1) else None,
            )
    single = gymnasium.make_vec("CartPole-v1", num_envs=64, vectorization_mode="sync")
    report(
        "python cartpole x64, 1 thread",
        ours(tetrion, "cartpole", 64, threads=0),
        Stepper(single, 64),
        "gymnasium SyncVectorEnv",
        seconds,
    )


def main():
    if sys.argv[1] == "--serve-envpool":
        serve_envpool(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]).resolve()))
    import tetrion

    seconds = 0.1 if "--quick" in sys.argv else 0.4
    cartpoles(tetrion, seconds)
    package = tetris_package()
    for obs in ("compact", "dict", "flat", "planes", "packed2"):
        report(
            f"python tetris x{ENVS} {obs}",
            ours(tetrion, "tetris", obs=obs),
            package if obs in ("dict", "flat") else None,
            "tetris-gymnasium",
            seconds,
            ">= 3M" if obs in ("compact", "flat") else None,
        )
    report(
        f"python tetris x{ENVS} flat, no copy",
        ours(tetrion, "tetris", obs="flat", copy=False),
        None,
        "",
        seconds,
    )
    # Its rules are Jumanji's: a rotation and a column on a 10x10 grid, at most 400 steps.
    report(
        f"python tetris-placement x{ENVS} compact, 10x10, 1 thread",
        ours(tetrion, "tetris-placement", obs="compact", board_rows=10, illegal="noop", threads=0),
        envpool_rival("Jumanji/Tetris-v0", 1),
        "envpool Jumanji/Tetris-v0",
        seconds,
    )
    report(
        f"python tetris-placement x{ENVS} afterstates",
        ours(tetrion, "tetris-placement", obs="afterstates"),
        None,
        "",
        seconds,
    )


if __name__ == "__main__":
    main()
