"""Looks for good settings of a run: ./tetrion sweep [options] [-- options of up]

    ./tetrion sweep --seconds 180 --trials 20 --eval "--deaths 100 --max-steps 0" \\
        -- --env tetris-placement --iid-pieces --queue-size 1 --view afterstates-dt

A trial is one choice of settings, trained with each of --seeds seeds and scored by greedy play with
the newest checkpoint: the median over the seeds counts. Every trial trains for a part of --seconds;
the best third of what has been tried so far goes on three times as long, up to the whole
(asynchronous successive halving, Li et al. 2018, arXiv 1810.05934). Where to look next is Optuna's
TPE sampler's choice. Runs follow one another: each has the machine for itself.

What has been tried is kept below --dir, in sweep.json: a sweep that was ended (Ctrl-C) goes on when
it is started again with the same options; more --trials may be asked for.
"""

import argparse
import contextlib
import fcntl
import json
import math
import os
import pathlib
import shlex
import shutil
import signal
import statistics
import subprocess
import sys

from sweep_space import DEFAULT_SPACE, SweepError, space_of
from sweep_table import best_of, flags_of, spread, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = pathlib.Path(os.environ.get("TETRION_RUNS_DIR") or ROOT / "runs")  # as of ./tetrion up
FACTOR = 3  # a rung trains so many times as long as the one before, and so many fewer reach it
RUNGS = 3
GRACE_S = 300  # of a run or an evaluation beyond what it was given
REFUSED = 2  # exit status of a program that does not take its options; 78 may be one trial's fault
END_S = 45  # from SIGTERM to the end of a program, which may take 30 to stop what it has started


class OutOfTime(SweepError):
    """An evaluation had not ended in its time: no fault of the settings, good play is longest."""


class Refused(SweepError):
    """What a program refuses of every trial: the sweep ends."""


def rung_seconds(seconds):
    """Seconds of training in all after each rung, the last of them `seconds`."""
    return [seconds / FACTOR ** (RUNGS - 1 - rung) for rung in range(RUNGS)]


def score_of(summary):
    """What an evaluation's JSON counts for: lines a death where games are played to the death or
    cut while some still run, else mean lines, else the mean return."""
    for group, name in (("lines", "mean"), ("return", "mean"), ("lines_per_death", "estimate"),
                        ("steps_per_death", "estimate")):
        found = summary.get(group)
        if not found:
            continue
        if found[name] is None:  # nobody died: at least so much
            name = "low95"
        return float(found[name])
    raise SweepError(f"the evaluation has no score: {sorted(summary)}")


def path_of_run(run):
    """RUN, RUN/best or RUN/newest in the folder of runs as a path; what is one already as it is."""
    name, slash, which = run.partition("/")
    if which not in ("", "best", "newest") or name in ("", ".", ".."):
        return run
    if name == "latest":
        raise SweepError("--init-from latest after --: a sweep goes on for long, name the run")
    return f"{(RUNS / name).resolve()}{slash}{which}"


def with_start(options):
    """Options of ./tetrion up, the run of --init-from by its path: a sweep's runs have a folder of
    their own, in which no name of others is found."""
    found = []
    for option in options:
        if found and found[-1] == "--init-from":
            option = path_of_run(option)
        elif option.startswith("--init-from="):
            option = "--init-from=" + path_of_run(option.partition("=")[2])
        found.append(option)
    return found


def without_start(options):
    """Options of ./tetrion up, less the one that only a new run may have."""
    kept, skip = [], False
    for option in options:
        if not skip and option != "--init-from" and not option.startswith("--init-from="):
            kept.append(option)
        skip = option == "--init-from"
    return kept


def stop(program):
    """Asks a program once to end, and waits; kills it after END_S, or when interrupted again: a
    second signal ends a run without its last checkpoint."""
    program.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.communicate(timeout=END_S)
    finally:
        program.kill()


class Runs:
    """Trains and scores. `folder` holds the runs; `up_options` are every trial's. Programs hold
    `held`, the folder's lock, too: it stays until they have ended, also after a kill -9 of ours."""

    def __init__(self, folder, up_options, eval_options, bin_dir=ROOT / "build/cpu/bin", held=()):
        self.folder, self.up_options, self.eval_options = folder, up_options, eval_options
        self.bin_dir, self.held = bin_dir, held

    def call(self, words, log, seconds, late_error=SweepError):
        """Standard output of a program, which is asked to end after `seconds` and a grace: an
        evaluation with --deaths then tells what it has. SweepError when it fails, with the end of
        its log; `late_error` when it has been asked."""
        with open(log, "ab") as errors, subprocess.Popen(
                [str(word) for word in words], stdout=subprocess.PIPE, stderr=errors,
                stdin=subprocess.DEVNULL, start_new_session=True,
                pass_fds=[file.fileno() for file in self.held]) as program:
            late = False
            for limit, end in ((seconds + GRACE_S, program.terminate), (END_S, program.kill),
                               (None, None)):
                try:
                    printed = program.communicate(timeout=limit)[0]
                    break
                except subprocess.TimeoutExpired:
                    late = True
                    end()
                except BaseException:  # an interrupt, which the program's own session does not see
                    stop(program)
                    raise
            errors.write(printed)
        if program.returncode != 0:
            last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"]
            error = (late_error if late else SweepError)(
                f"{shlex.join(str(word) for word in words)} "
                + (f"did not end in {seconds + GRACE_S:.0f} s" if late else
                   f"ended with status {program.returncode}")
                + f": {last[0]}; its log is {log}")
            error.status = program.returncode
            raise error
        return printed.decode()

    def train(self, name, seed, values, seconds):
        """Trains run `name` for `seconds` more."""
        log = self.folder / f"{name}.log"
        words = [self.bin_dir / "tetrion-up", "--runs-dir", self.folder,
                 "--stop-after", f"{max(1, round(seconds))}s"]
        options = [*self.up_options, *flags_of(values)]
        if (self.folder / name / "config.toml").exists():
            words += ["--resume", name, *without_start(options)]
        else:
            words += ["--run", name, "--seed", seed, *options]
        self.call(words, log, seconds)

    def score(self, name):
        """Greedy play with the newest checkpoint of `name`."""
        words = [self.bin_dir / "tetrion-eval", "eval", name, "--runs-dir", self.folder, "--json",
                 *self.eval_options]
        try:
            printed = self.call(words, self.folder / f"{name}.log", 0, OutOfTime)
        except SweepError as error:
            if error.status == REFUSED:
                raise Refused(f"--eval: {error}") from error
            if not isinstance(error, OutOfTime):
                raise
            raise OutOfTime(f"{error}; start a sweep in another --dir whose --eval has fewer "
                            "--episodes, a cap of --max-steps, or --deaths, which tells what was "
                            "reached until then") from error
        return score_of(json.loads(printed))

    def remove(self, trial):
        """The runs of a trial that goes no further: their logs stay."""
        for run in self.folder.glob(f"trial{trial.number}-seed*/"):
            shutil.rmtree(run, ignore_errors=True)


def play_trial(trial, ranges, runs, seeds, seconds, say):
    """One trial up the rungs. Returns {trial, values, seconds, scores}."""
    values = {one.key: one.suggest(trial) for one in ranges}
    names = [f"trial{trial.number}-seed{seed}" for seed in range(1, seeds + 1)]
    result, before = None, 0.0
    for rung, total in enumerate(rung_seconds(seconds)):
        for seed, name in enumerate(names, 1):
            runs.train(name, seed, values, total - before)
        before = total
        scores = [runs.score(name) for name in names]
        result = {"trial": trial.number, "values": values, "seconds": total, "scores": scores}
        say(f"trial {trial.number}, {total:.0f} s: {spread(scores)}  "
            f"{' '.join(flags_of(values))}")
        trial.report(statistics.median(scores), FACTOR ** rung)
        if rung + 1 < RUNGS and trial.should_prune():
            runs.remove(trial)
            break
    return result


def end_as_worst(study, trial):
    """Ends a trial whose settings do not train, worse than any other to the sampler. What it has
    reported cannot be taken back: a trial of the same settings stands in its place."""
    from optuna.trial import TrialState, create_trial
    study.add_trial(create_trial(state=TrialState.PRUNED, params=trial.params,
                                 distributions=trial.distributions,
                                 intermediate_values={1: -math.inf}))
    study.tell(trial, state=TrialState.FAIL)


def make_study(folder):
    """Optuna's, kept in the folder."""
    import optuna  # not at the top: the tests of the rest run without it
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        study_name="sweep", direction="maximize", load_if_exists=True,
        storage=JournalStorage(JournalFileBackend(str(folder / "study.log"))),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=FACTOR))
    # Another seed in a study that goes on: the same would draw the first trials' settings again.
    study.sampler = optuna.samplers.TPESampler(seed=1 + len(study.trials), n_startup_trials=8)
    return study


def sweep(study, ranges, runs, options, say):
    """Trials up to the number asked for, earlier calls included. Returns all that scored."""
    from optuna.trial import TrialState
    path = runs.folder / "sweep.json"
    asked = {"up": runs.up_options, "eval": runs.eval_options, "seeds": options.seeds,
             "seconds": options.seconds, "tune": [one.text for one in ranges]}
    def keep(tried):
        new = path.with_suffix(".new")
        new.write_text(json.dumps({**asked, "tried": tried}, indent=1) + "\n")
        new.replace(path)

    tried, failed = [], 0
    if path.exists():
        try:
            tried = (before := json.loads(path.read_text())).pop("tried")
        except (ValueError, KeyError, AttributeError) as error:
            raise SweepError(f"{path} is no sweep's ({error}); give another --dir") from error
        if before != asked:
            raise SweepError(f"{path} is of a sweep with other options; give another --dir")
    keep(tried)  # before the study has a trial of these options
    for trial in study.get_trials(states=[TrialState.RUNNING]):
        runs.remove(trial)  # of a sweep that was killed
    while len(tried) < options.trials:
        trial = study.ask()
        try:
            result = play_trial(trial, ranges, runs, options.seeds, options.seconds, say)
        except SweepError as error:
            say(f"trial {trial.number} failed: {error}")
            if isinstance(error, Refused) or (error.status == REFUSED and not tried):
                runs.remove(trial)
                raise SweepError(f"{error}; when it is corrected, give another --dir") from error
            if isinstance(error, OutOfTime):
                study.tell(trial, state=TrialState.FAIL)  # the sampler learns nothing from it
            else:
                end_as_worst(study, trial)
                runs.remove(trial)
            failed += 1
            if failed > options.trials:
                raise SweepError(f"{failed} trials failed, the last one with: {error}") from error
            continue
        except KeyboardInterrupt:
            runs.remove(trial)  # the sweep goes on with another
            raise
        if result["seconds"] < options.seconds:
            study.tell(trial, state=TrialState.PRUNED)
        else:
            study.tell(trial, statistics.median(result["scores"]))
        tried.append(result)
        keep(tried)
    return tried


def parse(arguments):
    """Our options, and after "--" those of up."""
    words, up_options = arguments, []
    if "--" in arguments:
        cut = arguments.index("--")
        words, up_options = arguments[:cut], arguments[cut + 1:]
    if "--eval" in words[:-1]:  # argparse takes one word with dashes for an option of its own
        at = words.index("--eval")
        words = [*words[:at], f"--eval={words[at + 1]}", *words[at + 2:]]
    parser = argparse.ArgumentParser(
        prog="./tetrion sweep", description=__doc__.split("\n\n")[0],
        epilog="What stands after -- is given to every run as to ./tetrion up.")
    parser.add_argument("--tune", action="append", metavar="KEY=RANGE",
                        help='a setting of the run and its values, "0.0001..0.01" or "1|2|4"; '
                             "again for another; default, less what stands after --: "
                             + ", ".join(DEFAULT_SPACE))
    parser.add_argument("--seconds", type=float, default=90, help="of training, at most, a seed")
    parser.add_argument("--trials", type=int, default=12, help="choices of settings to try")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each choice")
    parser.add_argument("--eval", default="", metavar="FLAGS",
                        help='of ./tetrion eval, such as "--deaths 100 --max-steps 0"')
    parser.add_argument("--dir", type=pathlib.Path, default=RUNS / "sweep",
                        help="folder of its runs and results; default: sweep, among the runs")
    options = parser.parse_args(words)
    try:
        options.eval = shlex.split(options.eval)
    except ValueError as error:
        raise SweepError(f"--eval {options.eval}: {error}") from error
    if (not RUNGS * FACTOR <= options.seconds < math.inf  # nor nan
            or options.trials < 1 or options.seeds < 1):
        raise SweepError(f"--seconds is at least {RUNGS * FACTOR}, --trials and --seeds at least 1")
    for flag in ("--seed", "--run", "--resume", "--stop-after", "--runs-dir"):
        if any(word == flag or word.startswith(flag + "=") for word in up_options):
            raise SweepError(f"{flag} after -- is what the sweep chooses itself: leave it out")
    return options, with_start(up_options)


def lock(folder):
    """A file that holds the folder until it is closed. SweepError while another sweep does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / "lock", "w")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise SweepError(f"--dir {folder} cannot be written: {error.strerror}; give another "
                         "--dir") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise SweepError(f"another sweep is at work in {folder}, or the run of one that was "
                         "killed; wait for it, or give another --dir") from error
    return file


def main(arguments):
    """Sweeps and prints what it found."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: runs hear of neither themselves
        if signal.getsignal(number) == signal.SIG_DFL:  # not below nohup
            signal.signal(number, signal.default_int_handler)
    try:
        options, up_options = parse(arguments)
        ranges = space_of(options.tune, up_options)
        with lock(options.dir) as held:
            runs = Runs(options.dir, up_options, options.eval, held=[held])
            longest = options.seconds * options.seeds * options.trials
            print(f"sweep in {options.dir}: {options.trials} trials, {options.seeds} seeds each, "
                  f"at most {longest / 60:.1f} minutes of training", flush=True)
            tried = sweep(make_study(options.dir), ranges, runs, options,
                          lambda text: print(text, flush=True))
    except SweepError as error:
        print(f"sweep: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sweep: ended; the same command goes on with it", file=sys.stderr)
        return 130
    print("\n" + "\n".join(table(tried)))
    best = best_of(tried)
    print("\n./tetrion up " + shlex.join([*up_options, *flags_of(best["values"])]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
