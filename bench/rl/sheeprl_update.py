"""DreamerV3's update beside sheeprl's, which realises the same algorithm (its dreamer_v3_5).

sheeprl_update.py PROGRAM [--quick]: PROGRAM is bench_dreamer; updates of either side alternate. The
rival runs in an environment of its own (.deps/sheeprl, which ./tetrion bench installs) with the
same sizes, batch, horizon and threads; prints one JSON line a figure, or a remark where it is not
there.
Differences: its batch lies ready as tensors, ours is drawn from the replay and its latents are
written back; it is eager torch as installed, without its option to compile.
sheeprl_update.py --serve SIZE THREADS: the rival's end: one update a line of input, answered by its
wall and CPU milliseconds.
"""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "replay"))

DEPS = pathlib.Path(__file__).resolve().parents[2] / ".deps"
ACTIONS, FLOATS, EPISODE_ROWS = 2, 4, 50
# size: windows, rows of each, what differs from sheeprl's 1M model
SIZES = {
    "nano": (8, 32, ("algo.world_model.recurrent_model.recurrent_state_size=256",
                     "algo.world_model.stochastic_size=16", "algo.world_model.discrete_size=8")),
    "1m": (16, 64, ()),
}
UPDATES = 9


class Sheeprl:
    """Its agent and one batch of noise, with an end of an episode now and then."""

    def __init__(self, size, threads):
        import gymnasium
        import hydra
        import lightning
        import numpy
        import torch
        from sheeprl.algos.dreamer_v3_5 import dreamer_v3_5 as algorithm
        from sheeprl.algos.dreamer_v3_5.agent import build_agent
        from sheeprl.utils.utils import dotdict

        torch.set_num_threads(threads)
        torch.manual_seed(1)
        lanes, window, overrides = SIZES[size]
        with hydra.initialize_config_module("sheeprl.configs", version_base="1.3"):
            composed = hydra.compose("config", [
                "exp=dreamer_v3_5", "algo=dreamer_v3_5_1M", "env=gym", "algo.cnn_keys.encoder=[]",
                "algo.mlp_keys.encoder=[vector]", "metric.log_level=0",
                f"algo.per_rank_batch_size={lanes}", f"algo.per_rank_sequence_length={window}",
                *overrides])
            from omegaconf import OmegaConf
            config = dotdict(OmegaConf.to_container(composed, resolve=False))
            config.algo = dotdict(OmegaConf.to_container(composed.algo, resolve=True))
        fabric = lightning.fabric.Fabric(accelerator="cpu", devices=1, precision="32-true")
        space = gymnasium.spaces.Dict(
            {"vector": gymnasium.spaces.Box(-numpy.inf, numpy.inf, (FLOATS,), numpy.float32)})
        config.env.screen_size = 64
        world, actor, critic, slow, _ = build_agent(fabric, (ACTIONS,), False, config, space)
        parameters = [*world.parameters(), *actor.parameters(), *critic.parameters()]
        optimizer = fabric.setup_optimizers(
            hydra.utils.instantiate(config.algo.optimizer, params=parameters, _convert_="all"))
        moments = algorithm.Moments(0.99, 1.0, 0.05, 0.95)
        rows, model = window + 1, config.algo.world_model
        age = (torch.arange(rows).unsqueeze(1) + 7 * torch.arange(lanes)) % EPISODE_ROWS
        flag = (rows, lanes, 1)
        batch = {
            "vector": torch.rand(rows, lanes, FLOATS) * 2 - 1,
            "actions": torch.nn.functional.one_hot(
                torch.randint(ACTIONS, (rows, lanes)), ACTIONS).float(),
            "rewards": torch.ones(flag),
            "terminated": (age == EPISODE_ROWS - 1).float().reshape(flag),
            "truncated": torch.zeros(flag),
            "is_first": (age == 0).float().reshape(flag),
            "deter": torch.zeros(rows, lanes, model.recurrent_model.recurrent_state_size,
                                 dtype=torch.float16),
            "stoch": torch.zeros(rows, lanes, model.stochastic_size, dtype=torch.uint8),
        }

        def update():
            algorithm.train(fabric, config, world, actor, critic, slow, optimizer, moments, batch,
                            None, (ACTIONS,))
            algorithm.update_target_critic(critic, slow, config.algo.critic.tau)

        self.update = update
        self.parameters = sum(p.numel() for p in parameters)


def serve(size, threads):
    try:
        rival = Sheeprl(size, threads)
    except Exception as error:  # a wheel may be there and not fit this machine
        print(f"not measured: {error!r}".splitlines()[0][:300], flush=True)
        return
    import importlib.metadata

    version, torch = (importlib.metadata.version(name) for name in ("sheeprl", "torch"))
    print(f"sheeprl {version}, torch {torch}, {rival.parameters} parameters", flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        rival.update()
        print(1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu), flush=True)


def measure(program, size, threads, updates):
    """Prints the wall time of either side, and the CPU time."""
    from rivals import Ended, Served, spread

    python = DEPS / "sheeprl" / "bin" / "python"
    ours = Served([program, "--serve", size, str(threads)])
    rival = Served([str(python), __file__, "--serve", size, str(threads)])
    name = rival.process.stdout.readline().strip()
    if not name.startswith("sheeprl"):
        print(f"skipped: sheeprl: {name or 'not measured: it ended at its start'}")
    else:
        try:
            times = [(ours.ask_all(""), rival.ask_all("")) for _ in range(2 + updates)][2:]
        except Ended as ended:
            if ended.args[0] is ours:
                raise
            print("skipped: sheeprl: it ended while it was measured")
            times = []
        lanes, window, _ = SIZES[size]
        title = f"DreamerV3 update, {size} {lanes}x{window}, {threads} thread"
        for column, kind in ((0, ""), (1, ": CPU time")) if times else ():
            ratios = [a[column] / b[column] for a, b in times]
            print(json.dumps({
                "what": title + ("s" if threads > 1 else "") + kind, "unit": "ms",
                "ours": spread([a[column] for a, _ in times]),
                "rival": {"name": name, **spread([b[column] for _, b in times])},
                "ratio": spread(ratios),
                "target": "<= 0.333x" if (size, kind) == ("1m", "") else None}), flush=True)
    for side in (ours, rival):
        side.end()


def main():
    if not (DEPS / "sheeprl" / "bin" / "python").exists():
        print("skipped: sheeprl: not measured: .deps/sheeprl is not installed")
        return
    for size in SIZES:
        for threads in (1, 2):
            measure(sys.argv[1], size, threads, 3 if "--quick" in sys.argv else UPDATES)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        main()
