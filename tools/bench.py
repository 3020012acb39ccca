"""Measures this machine: ./tetrion bench [--quick] [--only TEXT] [--compare [FILE]]
                        [--picture FILE] [--stored].

Runs every program in build/release/bench, then the scripts beside their sources that need Python:
rivals (bench/replay/rivals.py, bench/rl/sheeprl_update.py), rows over a network
(bench/services/remote_rows.py), the Python package (bench/python), the whole system
(bench/services/system.py, training_rivals.py), idle sessions (bench/services/sessions.py) and
streamed inference (bench/stream/stream.py). Each prints JSON lines, one a figure:
  {"what", "unit", "ours": {median, min, max}, "rival": {"name", median, min, max} | null,
   "ratio": {median, min, max} | null, "target": ">= 1.2x" | "<= 0.75x" | ">= 25M" | null}
A target ending in x is about the ratio, any other about our own figure; a "note" is printed below.
Prints one table and writes bench/results/<date>-<machine>.json. With --compare it says which ratios
are worse by 10 % or more than in FILE, or than their newest in bench/results from a machine of the
same kind (cpu, cores, flags, --quick or not), and ends with exit status 1 if any is, or if FILE has
none of them. A worse one is marked "worse" in its result, and no later run is compared with it.
With --picture it draws the ratios as bars. With --stored it measures nothing: it prints, or with
--picture draws, the newest figures of each program in bench/results from a machine of this kind.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile

from bench_program import run

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
RESULTS = ROOT / "bench" / "results"
WORSE = 0.10
_TARGET = re.compile(r"\s*(>=|<=|≥|≤)?\s*([0-9.]+(?:e[0-9]+)?)\s*([kMG]?)\s*(x?)\s*$")
_SCALE = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


def programs(folder, only):
    """Executable files of the folder, sorted; only those whose name holds `only`."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and os.access(p, os.X_OK)
                  and p.suffix == "" and only in p.name)


def scripts(folder, only):
    """[(name, command)]: what runs in Python and finds its programs built."""
    venv = ROOT / ".deps" / "py" / "bin" / "python"
    python = str(venv) if venv.exists() else sys.executable
    found = []
    replay = folder / "bench_replay"
    if replay.exists():
        found.append(("replay-rivals", [python, str(ROOT / "bench/replay/rivals.py"), str(replay)]))
    dreamer = folder / "bench_dreamer"
    if dreamer.exists():
        script = ROOT / "bench/rl/sheeprl_update.py"
        found.append(("dreamer-rival", [python, str(script), str(dreamer)]))
    remote = folder / "bench_remote_rows"
    if remote.exists():
        script = ROOT / "bench/services/remote_rows.py"
        found.append(("remote-rows", [python, str(script), str(remote)]))
    package = folder.parent / "python"
    if (package / "tetrion").is_dir():
        for name in ("vector", "collector"):
            script = ROOT / "bench/python" / f"{name}.py"
            found.append((f"python-{name}", [python, str(script), str(package)]))
    bin_dir = folder.parent / "bin"  # the same build's services: one set of flags for all figures
    if (bin_dir / "tetrion-up").exists() and (bin_dir / "tetrion-learner").exists():
        found.append(("system", [python, str(ROOT / "bench/services/system.py"), str(bin_dir)]))
        rivals = ROOT / "bench/services/training_rivals.py"
        found.append(("training-rivals", [python, str(rivals), str(bin_dir)]))
    if (bin_dir / "tetrion-load").exists():
        found.append(("sessions", [python, str(ROOT / "bench/services/sessions.py"), str(bin_dir)]))
    if (bin_dir / "tetrion-stream").exists():
        found.append(("stream", [python, str(ROOT / "bench/stream/stream.py"), str(bin_dir)]))
    return [(name, command) for name, command in found if only in name]


def none_chosen(folder, only, known):
    """Why there is nothing to run, of programs and scripts `known`."""
    if not known:
        return f"no program in {folder}; ./tetrion bench builds them"
    return f"no program is named like {only!r}; choose a part of: {', '.join(known)}"


def verdict(figure):
    """met, MISSED, or - when there is no target or nothing to hold it against."""
    match = _TARGET.match(str(figure.get("target") or ""))
    if not match:
        return "-"
    sign, number, scale, times = match.groups()
    measured = figure.get("ratio") if times else figure["ours"]
    if not measured:
        return "-"
    wanted = float(number) * _SCALE[scale]
    below = sign in ("<=", "≤")
    met = measured["median"] <= wanted if below else measured["median"] >= wanted
    return "met" if met else "MISSED"


def short(number):
    """25300000 as 25.3M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"


def spread(measured, suffix=""):
    """median (min-max) of a measurement."""
    if not measured:
        return "-"
    text = short(measured["median"]) + suffix
    if "min" in measured and "max" in measured:
        text += f" ({short(measured['min'])}-{short(measured['max'])})"
    return text


def table(figures):
    """The figures as aligned text."""
    rows = [("what", "unit", "ours", "rival", "ratio", "target", "verdict")]
    for figure in figures:
        rival = figure.get("rival")
        name = f" {rival['name']}" if rival and rival.get("name") else ""
        rows.append((figure["what"], figure.get("unit", ""), spread(figure["ours"]),
                     spread(rival) + name, spread(figure.get("ratio"), "x"),
                     str(figure.get("target") or "-"), verdict(figure)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def cpu_model():
    """As /proc/cpuinfo names it; family and model tell generations apart that share a name."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    said = dict(re.findall(r"^(model name|cpu family|model)\s*: (.+)$", text, re.MULTILINE))
    if "model name" not in said:
        return platform.machine()
    number = "".join(f", {word} {said[key]}" for word, key in
                     (("family", "cpu family"), ("model", "model")) if key in said)
    return said["model name"] + number


def output_of(*command):
    """First line a command prints; empty when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    except OSError:
        return ""
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout else ""


def cached(build, name):
    """A value of a build folder's CMake cache."""
    cache = build / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8") if cache.exists() else ""
    match = re.search(rf"^{name}:[A-Z]+=(.*)$", text, re.MULTILINE)
    return match.group(1) if match else ""


def machine(build):
    """Where the figures of programs in a build folder come from."""
    native = cached(build, "TETRION_NATIVE") in ("ON", "1", "TRUE")
    march = "-march=native" if native else "-march=x86-64-v3"
    # As cmake/TetrionToolchain.cmake has them.
    optimised = {"Release": "-O3 -DNDEBUG", "RelWithDebInfo": "-O2 -g1 -DNDEBUG"}.get(
        cached(build, "CMAKE_BUILD_TYPE"), "flags unknown")
    return {"cpu": cpu_model(), "cores": os.cpu_count(), "kernel": platform.release(),
            "compiler": output_of(cached(build, "CMAKE_CXX_COMPILER") or "c++", "--version"),
            "flags": f"{optimised} {march}",
            "revision": output_of("git", "describe", "--always", "--dirty") or "unknown"}


def kind(result):
    """What two results must share before their ratios may be held against each other."""
    where = result.get("machine", {})
    return where.get("cpu"), where.get("cores"), where.get("flags"), bool(result.get("quick"))


def names(figure):
    """What tells a figure from others of a result."""
    return figure.get("program"), figure["what"], (figure.get("rival") or {}).get("name")


def less_is_better(figure):
    """Whether a figure is a time or a size: its target says so, or its unit."""
    target = str(figure.get("target") or "").lstrip()
    return target[:1] in ("<", "≤") or bool(re.match(r"(ns|us|ms|s|MB)\b", figure.get("unit", "")))


def ratios(result):
    """{(program, what, rival): (median of the ratio, whether less is better)}."""
    found = {}
    for f in result["figures"]:
        if f.get("ratio") and f["ratio"].get("median"):
            found[names(f)] = (f["ratio"]["median"], less_is_better(f))
    return found


def results_like(result, folder):
    """The folder's results of the same kind, oldest first."""
    for path in sorted(folder.glob("*.json")):  # named by date
        try:
            old = json.loads(path.read_text(encoding="utf-8"))
            if kind(old) == kind(result) and ratios(old) is not None:
                yield old
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            print(f"{path}: left out, no result: {error}", file=sys.stderr)


def stored(result, folder):
    """The newest ratio of each name among the folder's results of the same kind, as ratios(), less
    those that were worse than the one before."""
    newest = {}
    for old in results_like(result, folder):
        newest.update(ratios({"figures": [f for f in old["figures"] if not f.get("worse")]}))
    return newest


def newest_stored(where, quick, only):
    """{program: its newest stored result from machines of this kind}, with that program's figures
    only. A figure that only older results have is left out."""
    newest = {}
    for old in results_like({"machine": where, "quick": quick}, RESULTS):
        for program in {str(f.get("program")) for f in old["figures"]}:
            if only in program:
                mine = [f for f in old["figures"] if f.get("program") == program]
                newest[program] = {**old, "figures": mine}
    return dict(sorted(newest.items()))


def show_stored(where, quick, only, out):
    """Draws the newest stored figures of machines of this kind, or prints them where `out` is None;
    returns the exit status."""
    newest = newest_stored(where, quick, only)
    figures = [f for result in newest.values() for f in result["figures"]]
    if out is not None:
        days = sorted(str(r.get("date", ""))[:10] for r in newest.values() if ratios(r))
        when = " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "nothing stored"
        return picture(figures, where, when, out)
    of_kind = (f"{where['cpu']}, {where['cores']} cores, {where['flags']}"
               f"{', quick' if quick else ''}")
    if not newest:
        print(f"tetrion bench: {RESULTS} has no figure of {only or 'any program'} on this kind of "
              f"machine: {of_kind}; leave out --stored to measure", file=sys.stderr)
        return 2
    print(f"{of_kind}\n")
    print(table(figures))
    print()
    for program, result in newest.items():
        revision = result["machine"].get("revision", "unknown")
        print(f"{program}: measured {str(result.get('date', 'unknown'))[:16]}, revision {revision}")
    return 0


def can_write(flag, path):
    """Whether a file can be written there, whose folder is made; says so where not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        print(f"tetrion bench: {flag} {path} cannot be written: {error.strerror}", file=sys.stderr)
        return False
    return True


def write_whole(out, text):
    """Writes a file whole or not at all; whether it could, and says so where not."""
    new = out.with_name(out.name + ".new")
    try:
        if not out.is_file() and out.exists():  # a pipe or a device
            out.write_text(text, encoding="utf-8")
            return True
        new.write_text(text, encoding="utf-8")
        new.replace(out)
    except OSError as error:
        new.unlink(missing_ok=True)
        print(f"tetrion bench: {out} cannot be written: {error.strerror}", file=sys.stderr)
        return False
    return True


def can_draw(out):
    """Whether a picture can be drawn there; says so where not."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        print(f"tetrion bench: no picture: {error}; ./tetrion bench installs what it needs",
              file=sys.stderr)
        return False
    known = FigureCanvasBase.get_supported_filetypes()
    if out.suffix[1:].lower() not in known:
        print(f"tetrion bench: --picture {out} is of no known kind: end it with .png, or one of "
              f"{', '.join(sorted(known))}", file=sys.stderr)
        return False
    return can_write("--picture", out)


def picture(figures, where, when, out):
    """Draws the ratios among the figures; returns the exit status."""
    import bench_picture
    title = f"{where['cpu']}, {where['cores']} cores, {where['flags']}; {when}"
    if bench_picture.draw(figures, verdict, title, out) == 0:
        print(f"tetrion bench: no ratio to draw for {out}", file=sys.stderr)
        return 2
    print(f"drawn: {out}")
    return 0


def fallen(before, now):
    """{name: sentence} of each ratio that is worse in `now` than in `before` by WORSE or more."""
    found = {}
    for name in before.keys() & now.keys():
        (was, _), (value, less_is_better) = before[name], now[name]
        loss = value / was - 1 if less_is_better else 1 - value / was
        if loss >= WORSE - 1e-9:
            found[name] = (f"{name[1]}: the ratio was {was:.3g}x, it is {value:.3g}x "
                           f"({100 * loss:.0f} % worse)")
    return found


def read_result(file):
    """A result that others can be compared with, or None and a sentence."""
    try:
        old = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
        kind(old), ratios(old)
        return old
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        print(f"tetrion bench: {file} is no result to compare with: {error}", file=sys.stderr)
        return None


def compare(result, old):
    """Prints what is worse than in result `old`, or than in bench/results where that is None, and
    marks it in `result`; returns the exit status."""
    like = old is None or kind(old) == kind(result)
    if not like:
        print(f"compare: the file is of another kind of machine: {kind(old)}")
    before = stored(result, RESULTS) if old is None else ratios(old)
    now = ratios(result)
    worse = fallen(before, now)
    for f in result["figures"] if like else ():
        f.update({"worse": True} if names(f) in worse else {})
    ran = {f.get("program") for f in result["figures"]}
    gone = [f"{what}, beside {rival or 'no rival'}" for program, what, rival in before.keys() - now
            if program in ran]
    for line in [*(f"not measured now: {name}" for name in sorted(gone)),
                 *(f"worse: {sentence}" for sentence in sorted(worse.values()))]:
        print(line)
    shared = len(before.keys() & now.keys())
    print(f"compare: {shared} of {len(now)} ratios were measured before, "
          f"{len(worse)} are worse by {100 * WORSE:.0f} % or more")
    return 1 if worse or (old is not None and shared == 0) else 0


def measure(chosen, quick):
    """(figures, error sentences) of programs, one after the other."""
    figures, errors = [], []
    for name, command in chosen:
        print(f"running {name}", file=sys.stderr, flush=True)
        found, error = run(name, command, quick)
        figures += found
        errors += [error] if error else []
    return figures, errors


def main():
    parser = argparse.ArgumentParser(prog="./tetrion bench", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="shorter windows, at most 3 minutes")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose name holds TEXT")
    parser.add_argument("--folder", type=pathlib.Path, default=BUILD / "bench",
                        help="the folder with the programs")
    parser.add_argument("--compare", nargs="?", const="", metavar="FILE",
                        help="exit status 1 when a ratio is 10 %% worse than in FILE, or than "
                             "the newest one stored for this kind of machine that was not worse")
    parser.add_argument("--out", type=pathlib.Path, help="the result file")
    parser.add_argument("--picture", type=pathlib.Path, metavar="FILE",
                        help="draw the ratios to rivals as bars (PNG)")
    parser.add_argument("--stored", action="store_true",
                        help="measure nothing; print, or with --picture draw, what bench/results "
                             "has of this kind of machine")
    args = parser.parse_args()
    if args.picture and not can_draw(args.picture):
        return 2
    if args.stored:
        return show_stored(machine(BUILD), args.quick, args.only, args.picture)
    args.folder = args.folder.resolve()  # programs run in the root
    chosen = []
    if args.folder.is_dir():
        chosen = [(p.name, [str(p)]) for p in programs(args.folder, args.only)]
        chosen += scripts(args.folder, args.only)
    if not chosen:
        known = [p.name for p in programs(args.folder, "")]
        known += [name for name, _ in scripts(args.folder, "")]
        print(f"tetrion bench: {none_chosen(args.folder, args.only, known)}", file=sys.stderr)
        return 2
    old = read_result(args.compare) if args.compare else None
    if (args.compare and old is None) or not can_write("--out", args.out or RESULTS / "new.json"):
        return 2
    where = machine(args.folder.parent)  # before, since the tree may change meanwhile
    figures, errors = measure(chosen, args.quick)
    print(f"{where['cpu']}, {where['cores']} cores, {where['flags']}, {where['revision']}"
          f"{', quick' if args.quick else ''}\n")
    print(table(figures))
    print(*(f"note: {f['what']}: {f['note']}" for f in figures if f.get("note")), sep="\n")
    print(*(f"failed: {error}" for error in errors), sep="\n")
    if not figures:
        print("nothing was measured: no result is written")
        return 1 if errors else 0
    now = datetime.datetime.now()
    out = args.out or (RESULTS / f"{now:%Y%m%d-%H%M%S}-{platform.node() or 'machine'}.json")
    result = {"date": f"{now:%Y-%m-%d %H:%M:%S}", "quick": args.quick, "machine": where,
              "figures": [{**f, "verdict": verdict(f)} for f in figures], "errors": errors}
    compared = 0 if args.compare is None else compare(result, old)
    if not write_whole(out, json.dumps(result, indent=1) + "\n"):
        return 2
    print(f"written: {out}")
    drawn = picture(figures, where, result["date"], args.picture) if args.picture else 0
    return 1 if errors else compared or drawn


if __name__ == "__main__":
    for told in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: programs hear of neither themselves
        if signal.getsignal(told) == signal.SIG_DFL:  # not below nohup
            signal.signal(told, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("tetrion bench: ended; no result is written", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
