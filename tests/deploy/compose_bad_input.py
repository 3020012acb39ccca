"""Steps of compose_test.py: what a container says to bad input, beside a running project.

Each ends with the sentence that solves it and the exit status that a supervisor reads.
"""

import functools
import pathlib
import re
import tempfile

from engine import HARDENED, IMAGES, ROOT, Project, TestError, at_once, docker, run

USAGE, TRY_AGAIN, CONFIG = 2, 75, 78


def expect(what, answer, status, *parts):
    got, output = answer
    missing = [part for part in parts if part not in output]
    if got != status or missing:
        raise TestError(f"{what}: exit status {got}, expected {status}; not said: {missing}\n"
                        f"{output}")
    said = next(line for line in output.splitlines() if parts[0] in line)
    # What is expected must not read like a complaint where .ci/run has to cut this test short.
    said = re.sub(r"error: ?", "", said, flags=re.IGNORECASE)
    print(f"   {what}: {got}: {said}")


def member(project, service, variables, volumes=("regions:/shm", "runs:/runs"), image=None, **more):
    return project.run_by_hand(image or f"{IMAGES}/{service}:local", volumes=volumes, variables={
        "TETRION_COORDINATOR": "tcp://coordinator:9000", **variables}, **more)


def small_region_volume(project):
    """An actor whose rings do not fit the volume."""
    answer = member(project, "actor", {"TETRION_ROWS": "shm"}, volumes=(),
                    hardened=(*HARDENED, "--tmpfs=/shm:size=16k,uid=10001,mode=0700"))
    expect("small region volume", answer, TRY_AGAIN, "/shm/tetrion", "16384 bytes free")


def volume_not_writable(project):
    """Coordinator and learner whose runs cannot be written."""
    answer = project.run_by_hand(f"{IMAGES}/coordinator:local", "--run", "other",
                                 volumes=("regions:/shm", "runs:/runs:ro"))
    expect("volume not writable", answer, USAGE, "/runs/other", "make its parent writable")
    project("stop", "learner")  # it has the run's only place for one
    answer = member(project, "learner", {}, volumes=("regions:/shm", "runs:/runs:ro"))
    project("start", "learner")
    expect("the learner's volume not writable", answer, CONFIG, "cannot write to /runs/run",
           "mount the folder of the coordinator's runs")


def unreachable_coordinator(project):
    """An actor that is told a port, a name or a machine where there is no coordinator."""
    # 192.0.2.0/24 is nobody's (RFC 5737).
    addresses = ("tcp://coordinator:9999", "tcp://coordinater:9000", "tcp://192.0.2.1:9000")
    answers = at_once([functools.partial(member, project, "actor", {
        "TETRION_COORDINATOR": address, "TETRION_GIVE_UP": "6"}) for address in addresses])
    for address, answer in zip(addresses, answers, strict=True):
        expect("unreachable coordinator", answer, TRY_AGAIN,
               f"the coordinator at {address} does not answer")


def second_learner(project):
    """Another learner of the same run: it waits for the first one's place and says so."""
    refusal = "refused for now: run run has a learner"
    answer = member(project, "learner", {"TETRION_RESUME": "true"}, until=refusal)
    expect("second learner, which waits", answer, None, refusal)


def too_many_workers(project):
    """An actor with more workers than the run has places left."""
    # Of the same name as another it might be its successor, and would wait for its slots.
    answer = member(project, "actor", {"TETRION_WORKERS": "8", "TETRION_NAME": "large"})
    expect("too many workers", answer, TRY_AGAIN, "no replay slot for large: it has 8 workers",
           "the run has 8 slots (--max-workers)", "start a run with more --max-workers")


def another_release(project):
    """An actor's image of another protocol version."""
    program = ROOT / "build" / "cpu" / "tests" / "actor_of_another_release"
    if not program.exists():
        print(f"   not tried: no {program.relative_to(ROOT)}")
        return
    name = f"{IMAGES}/actor-of-another-release:local"
    with tempfile.TemporaryDirectory() as folder:
        context = pathlib.Path(folder)
        run("strip", "-o", str(context / "tetrion-actor"), str(program))
        (context / "Dockerfile").write_text(f"FROM {IMAGES}/actor:local\n"
                                            "COPY tetrion-actor /usr/local/bin/tetrion-actor\n",
                                            encoding="utf-8")
        run("docker", "build", "-q", "-t", name, folder, env=project.env)
    expect("another release", member(project, "actor", {}, image=name), CONFIG,
           "use the same Tetrion release")
    docker("rmi", name)


def device_without_one(project):
    """--device cuda in the image without CUDA, and the profile gpu on a machine without a GPU."""
    answer = member(project, "learner", {"TETRION_DEVICE": "cuda"})
    expect("--device cuda without CUDA", answer, USAGE, "cuda")
    if pathlib.Path("/dev/nvidiactl").exists():
        return
    # An image of the right name: the engine must be the one to refuse.
    docker("tag", f"{IMAGES}/learner:local", f"{IMAGES}/learner-cuda:local")
    gpu = Project(f"{project.name}gpu", {**project.env, "COMPOSE_PROFILES": "gpu",
                                         "COMPOSE_PROJECT_NAME": f"{project.name}gpu"})
    answer = gpu("up", "--no-build", "--no-deps", "learner-cuda", check=False)
    gpu("down", "-v", check=False)
    docker("rmi", f"{IMAGES}/learner-cuda:local")
    expect("profile gpu without a GPU", answer, 1, "could not select device driver", "gpu")


STEPS = (small_region_volume, volume_not_writable, unreachable_coordinator, second_learner,
         too_many_workers, another_release, device_without_one)
