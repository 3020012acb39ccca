"""CartPole trained by whole programs: ours, stable-baselines3's PPO and sample-factory's APPO.

training_rivals.py BIN_DIR [--quick]: environment steps trained a second, and seconds from the start
of training until the mean return of the last 100 episodes, as played, is 475. The rivals run in an
environment of their own (.deps/rl, which ./tetrion bench installs), alternate with ours and have
both cores; prints one JSON line a figure, or a remark where a rival is not there. Exit status 1
when a run of ours gave no figure.
Settings: ours the preset, for the rate with --lanes 64 --reuse 1 (500 greedy after 5 s, three
seeds); PPO those of RL Baselines3 Zoo for CartPole-v1 (hyperparams/ppo.yml); APPO the defaults of
sample-factory's train_gym_env, which brings no others. Ours counts from the start of its processes,
stable-baselines3 from that of learn(), sample-factory from its first report of a rate, so that no
import of a library is in it.
training_rivals.py --serve sb3: the rival's end: "rate SECONDS" or "solve SEED" a line of input.
"""

import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "replay"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import system
from check_account import RETURN_FIELD, episodes_of
from rivals import Ended, Served

VENV = pathlib.Path(__file__).resolve().parents[2] / ".deps" / "rl"
SOLVED, EPISODES = 475.0, 100
GIVE_UP_S, WARM_UP_S = 90, 2
SPEED = ["--env", "cartpole", "--lanes", "64", "--reuse", "1"]


class StableBaselines:
    """PPO with the zoo's settings on eight environments in its process."""

    def __init__(self):
        import torch

        torch.set_num_threads(1)  # two were slower: 64 units are too few to share
        self.returns = collections.deque(maxlen=EPISODES)
        self.model = self.new(seed=1)

    def new(self, seed):
        from stable_baselines3 import PPO
        from stable_baselines3.common.env_util import make_vec_env

        return PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=8, seed=seed), n_steps=32,
                   batch_size=256, n_epochs=20, gae_lambda=0.8, gamma=0.98, ent_coef=0.0,
                   learning_rate=lambda left: 1e-3 * left, clip_range=lambda left: 0.2 * left,
                   device="cpu", seed=seed)

    def learn(self, model, go_on):
        """Until go_on() says no, at most the zoo's 100,000 steps; the steps that it took."""
        self.returns.clear()

        def callback(local, _):
            self.returns.extend(info["episode"]["r"] for info in local["infos"]
                                if "episode" in info)
            return go_on()

        before = model.num_timesteps
        model.learn(100_000, callback=callback, reset_num_timesteps=False)
        return model.num_timesteps - before

    def rate(self, seconds):
        start, steps = time.perf_counter(), 0
        end = start + float(seconds)
        while time.perf_counter() < end:
            steps += self.learn(self.model, lambda: time.perf_counter() < end)
        return steps / (time.perf_counter() - start)

    def solve(self, seed):
        """Seconds, or nan."""
        model, start = self.new(int(seed)), time.perf_counter()
        end = start + GIVE_UP_S

        def go_on():
            full = len(self.returns) == EPISODES
            return time.perf_counter() < end and not (
                full and sum(self.returns) / EPISODES >= SOLVED)

        self.learn(model, go_on)
        solved = len(self.returns) == EPISODES and sum(self.returns) / EPISODES >= SOLVED
        return time.perf_counter() - start if solved else float("nan")


def serve():
    import importlib.metadata

    contestant = StableBaselines()
    print(f"stable-baselines3 {importlib.metadata.version('stable-baselines3')}", flush=True)
    for line in sys.stdin:
        what, argument = line.split()
        print(getattr(contestant, what)(argument), flush=True)


def training_rate(bin_dir, seconds):
    """Our steps a second over `seconds`, after WARM_UP_S; or nan."""
    _, _, rates = system.run(bin_dir, SPEED, WARM_UP_S, seconds, intervals=1)
    return rates[0] if rates else float("nan")


def last_returns(folder):
    """Returns of the run's last EPISODES episodes or fewer, as its store has them."""
    returns = []
    try:
        with contextlib.closing(sqlite3.connect(f"file:{folder / 'tetrion.db'}?mode=ro", uri=True,
                                                timeout=1)) as store:
            for report in store.execute("SELECT episodes, count FROM reports ORDER BY id DESC"):
                returns += [episode[RETURN_FIELD] for episode in episodes_of(*report)][::-1]
                if len(returns) >= EPISODES:
                    break
    except sqlite3.Error:  # not there yet, or busy: the next look will tell
        return []
    return returns[:EPISODES]


def seconds_to_solve(bin_dir, seed):
    """From the start of tetrion-up until the run's store, read every 20 ms, says it; or nan."""
    start = time.perf_counter()
    with system.training(bin_dir, ["--env", "cartpole", "--seed", str(seed)]) as (up, folder, _):
        while up.poll() is None and time.perf_counter() - start < GIVE_UP_S:
            returns = last_returns(folder)
            if len(returns) == EPISODES and sum(returns) / EPISODES >= SOLVED:
                return time.perf_counter() - start
            time.sleep(0.02)
    return float("nan")


def sample_factory_rate(python, seconds):
    """(name, steps a second): the median of its reports of ten seconds, or None."""
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            [python, "-m", "sf_examples.train_gym_env", "--algo=APPO", "--env=CartPole-v1",
             "--experiment=bench", f"--train_dir={folder}", "--device=cpu", "--use_rnn=False",
             f"--train_for_seconds={seconds}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True) as run:
        try:
            output, _ = run.communicate(timeout=seconds + 60)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            output, _ = run.communicate()
        except BaseException:  # told to end, which its session was not
            os.killpg(run.pid, signal.SIGKILL)
            raise
    rates = [float(rate) for rate in re.findall(r"Fps is \(10 sec: ([0-9.]+)", output)]
    version = subprocess.run(
        [python, "-c", "import importlib.metadata as m; print(m.version('sample-factory'))"],
        capture_output=True, text=True, check=False).stdout.strip()
    return (f"sample-factory {version}", rates[1:]) if len(rates) > 1 else (None, [])


def report(what, unit, ours, name, rival, target, ratios=None):
    """One figure, or a remark where a side did not finish a window. Whether ours did."""
    ratios = ratios or [a / b for a, b in zip(ours, rival, strict=True)]
    if any(value != value for value in (*ours, *rival)) or not ratios:  # nan
        failed = any(value != value for value in ours)
        print(f"no value: {what} beside {name}: ours {ours}, theirs {rival}",
              file=sys.stderr if failed else sys.stdout)
        return not failed
    print(json.dumps({"what": what, "unit": unit, "ours": system.spread(ours),
                      "rival": {"name": name, **system.spread(rival)},
                      "ratio": system.spread(ratios), "target": target}), flush=True)
    return True


def beside_stable_baselines(bin_dir, python, trained, windows, seconds):
    """Its figures, or a remark where it ended. Whether ours finished every window."""
    rival = Served([python, __file__, "--serve", "sb3"])
    try:
        name = rival.process.stdout.readline().strip()
        if not name.startswith("stable-baselines3"):
            raise Ended(rival)
        rival.ask("rate 1")
        our_rates, rates, our_times, times = [], [], [], []
        for seed in range(1, windows + 1):
            our_rates.append(training_rate(bin_dir, seconds))
            rates.append(rival.ask(f"rate {seconds}"))
            our_times.append(seconds_to_solve(bin_dir, seed))
            times.append(rival.ask(f"solve {seed}"))
    except Ended:
        print("skipped: stable-baselines3: it ended before it was measured to the end")
        return True
    finally:
        rival.end()
    good = report(trained, "steps/s", our_rates, name + " PPO", rates, ">= 50x")
    return report("cartpole solved as trained, preset", "s", our_times, name + " PPO", times,
                  "<= 0.1x") and good


def main():
    system.end_when_told()
    bin_dir, quick = pathlib.Path(sys.argv[1]), "--quick" in sys.argv
    python = str(VENV / "bin" / "python")
    if not pathlib.Path(python).exists():
        print("skipped: no .deps/rl, which ./tetrion bench installs")
        return 0
    windows, seconds = (1, 4) if quick else (3, 6)
    trained = "cartpole trained, " + " ".join(SPEED[2:])
    good = beside_stable_baselines(bin_dir, python, trained, windows, seconds)
    name, rates = sample_factory_rate(python, 20 if quick else 45)
    if name is None:
        print("no value: sample-factory reported no rate")
        return 0 if good else 1
    ours = [training_rate(bin_dir, seconds) for _ in range(windows)]
    middle = statistics.median(rates)
    good = report(trained, "steps/s", ours, name + " APPO", rates, None,
                  [rate / middle for rate in ours]) and good
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve()
    else:
        sys.exit(main())
