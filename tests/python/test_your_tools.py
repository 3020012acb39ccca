"""python/examples/with_your_tools.py does what it says, with and without moviepy."""

import pathlib
import re
import subprocess
import sys

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "python" / "examples" / "with_your_tools.py"


def test_the_example_runs_to_its_end(tmp_path):
    done = subprocess.run(
        [sys.executable, "-B", str(EXAMPLE), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^tetrion/\S+: observations ", done.stdout, re.MULTILINE)) == 3
    assert len(re.findall(r": 4 rows as AsyncVectorEnv's", done.stdout)) == 3
    videos = list(tmp_path.rglob("*.mp4"))
    assert bool(videos) != ("no videos: moviepy is missing" in done.stdout)
    assert "states: a copy, a pickle and a state went on" in done.stdout
    placements, lines = map(int, re.search(r"search: (\d+) \w+, (\d+) lines", done.stdout).groups())
    assert placements == 60
    assert lines > 10, "one placement ahead is enough not to pile up"
