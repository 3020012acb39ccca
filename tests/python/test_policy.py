"""The numpy policies against the outputs that C++ computes for the same weights and states."""

import dataclasses
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import tetrion
from tetrion.networks import read_safetensors

CASES = (
    "scorer",
    "scorer-dt",
    "scorer-drops",
    "columns",
    "mlp-vector",
    "mlp-planes",
    "mlp-placement",
    "conv",
)
RECORD_BYTES = {"cartpole": 16, "tetris": 64, "tetris-placement": 64}


@pytest.fixture(scope="session")
def references(tmp_path_factory):
    """Run folders written by tests/python/policy_reference.cc."""
    program = os.environ.get("TETRION_POLICY_REFERENCE", "")
    if not program:
        pytest.skip("no policy_reference program: this build is without libtorch")
    folder = tmp_path_factory.mktemp("references")
    subprocess.run([program, str(folder)], check=True, timeout=120)
    return folder


class Reference:
    def __init__(self, folder):
        self.run = tetrion.Run(folder)
        env = self.run.config["env"]
        self.records = np.fromfile(folder / "records.u8", np.uint8).reshape(-1, RECORD_BYTES[env])
        n = len(self.records)
        self.logits = np.fromfile(folder / "logits.f32", np.float32).reshape(n, -1)
        self.values = np.fromfile(folder / "values.f32", np.float32)
        self.actions = np.fromfile(folder / "actions.i32", np.int32)


@pytest.fixture(params=CASES)
def reference(request, references):
    return Reference(references / request.param)


def test_logits_values_and_actions_equal_those_of_cpp(reference):
    policy = tetrion.load_policy(reference.run)
    logits, values = policy.evaluate(reference.records)
    assert logits.dtype == values.dtype == np.float32
    assert reference.logits[reference.logits > -1e8].std() > 0.01, "the reference prefers nothing"
    np.testing.assert_allclose(logits, reference.logits, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(values, reference.values, rtol=2e-5, atol=2e-5)
    # Where C++ is not in doubt the actions are the same; symmetric pieces have equal placements.
    best = np.sort(reference.logits, axis=1)
    clear = best[:, -1] - best[:, -2] > 1e-4
    assert clear.mean() > 0.25
    np.testing.assert_array_equal(policy(reference.records)[clear], reference.actions[clear])


def test_no_observations_give_no_actions(reference):
    policy = tetrion.load_policy(reference.run)
    records = reference.records[:0]
    actions = policy.num_actions
    logits, values = policy.evaluate(records)
    assert (logits.shape, values.shape) == ((0, actions), (0,))
    assert logits.dtype == values.dtype == np.float32
    view = np.zeros((0, policy.view_floats), np.float32)
    logits, values = policy.evaluate(view, np.zeros((0, actions), bool))
    assert (logits.shape, values.shape) == ((0, actions), (0,))
    assert policy(records).shape == (0,)
    chosen = policy.for_collector()(0, records)
    assert [column.shape for column in chosen] == [(0,)] * 3


def test_views_and_records_give_the_same(reference):
    policy = tetrion.load_policy(reference.run)
    records = reference.records
    if policy.env == "tetris-placement":  # a placement that ended the game shows its piece turned
        records = records[records[:, 48] >> 3 & 3 == 0]
    view = tetrion._core.expand(policy.env, policy.obs, policy.queue_size, records)
    mask = None
    if reference.run.config["view"] == "planes" and policy.env == "tetris-placement":
        with pytest.raises(ValueError, match="does not say which placements are legal"):
            policy(view)
        mask = tetrion._core.action_masks(policy.env, records)
    np.testing.assert_array_equal(policy(view, mask), policy(records))
    one = policy(view[3], None if mask is None else mask[3])
    assert isinstance(one, int)
    assert one == policy(records)[3]
    assert policy(records[3]) == one


@pytest.mark.parametrize("case", ["scorer", "scorer-dt", "columns"])
def test_views_say_what_is_legal_also_of_pieces_that_have_fallen(references, case):
    policy = tetrion.load_policy(references / case)
    seen = tetrion._core.observation(policy.env, policy.obs, policy.queue_size)
    envs = tetrion.vector.make(policy.env, 512, obs="compact", illegal="noop", seed=1)
    envs.reset()
    rng = np.random.default_rng(1)
    blocked = []  # a legal placement's row is all zeros
    for _ in range(150):
        records, _, terminations, truncations, _ = envs.step(rng.integers(40, size=512))
        records = records[~(terminations | truncations)]
        view = tetrion._core.expand(policy.env, policy.obs, policy.queue_size, records)
        rows = view[:, : 40 * seen.action_floats].reshape(len(view), 40, -1)
        legal = tetrion._core.action_masks(policy.env, records)
        blocked.append(records[(legal & ~rows.any(axis=2)).any(axis=1)])
    records = np.concatenate([*blocked, records])
    assert sum(map(len, blocked)) > 0
    view = tetrion._core.expand(policy.env, policy.obs, policy.queue_size, records)
    for mine, theirs in zip(policy.evaluate(view), policy.evaluate(records), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_draws_follow_the_softmax(references):
    reference = Reference(references / "mlp-planes")
    policy = tetrion.load_policy(reference.run, greedy=False, seed=1)
    draws = 4000
    actions = policy(np.repeat(reference.records[:1], draws, axis=0))
    z = reference.logits[0] - reference.logits[0].max()
    expected = np.exp(z) / np.exp(z).sum()
    found = np.bincount(actions, minlength=8) / draws
    # Five standard deviations; the seed is fixed, so this is no matter of luck.
    assert (np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / draws) + 1e-9).all()


def test_draws_are_legal(references):
    reference = Reference(references / "scorer")
    policy = tetrion.load_policy(reference.run, greedy=False, seed=2)
    legal = reference.logits > -1e8
    for _ in range(20):
        assert legal[np.arange(len(legal)), policy(reference.records)].all()


def test_a_policy_plays_in_an_environment(references):
    policy = tetrion.load_policy(references / "scorer")
    env = tetrion.TetrisPlacementEnv("afterstates", max_steps=20)
    observation, _ = env.reset(seed=1)
    for _ in range(20):
        observation, reward, terminated, truncated, _ = env.step(policy(observation))
        assert reward >= 0, "an illegal placement was chosen"
        if terminated or truncated:
            break
    envs = tetrion.vector.make("tetris-placement", 8, obs="compact", seed=1)
    observations, _ = envs.reset()
    *_, infos = envs.step(policy(observations))
    np.testing.assert_array_equal(infos["episode_length"], 1)


def test_a_policy_plays_for_a_collector(reference):
    """From its view and from records: the same episodes, with what evaluate says of them.

    Placements of symmetric pieces that leave the same field have the same logit but for rounding,
    which depends on how many lanes are evaluated together: either may be chosen, to the same end.
    """
    policy = tetrion.load_policy(reference.run)
    batches = []
    for obs in (policy.obs, "compact"):
        with tetrion.BatchedTetrisCollector(
            2,
            12,
            policy_fn=policy.for_collector(),
            env=policy.env,
            queue_size=policy.queue_size,
            obs=obs,
            lanes_per_worker=3,
            seed=7,
            timeout=60,
        ) as c:
            batch = c.request_episodes(6)
        batches.append(batch)
        real = np.arange(12) < batch.lengths[:, None]
        masks = None if batch.action_masks is None else batch.action_masks[real]
        logits, values = policy.evaluate(batch.observations[real], masks)
        actions = batch.actions[real]
        chosen = logits[np.arange(len(actions)), actions]
        clear = chosen >= logits.max(axis=1) - 1e-4
        assert clear.all(), "not the greedy action"
        expected = chosen - np.log(np.exp(logits.astype(np.float64)).sum(axis=1))
        np.testing.assert_allclose(batch.log_probs[real], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(batch.values[real], values, rtol=1e-4, atol=1e-5)
        best = np.sort(logits, axis=1)
        alike = np.zeros(real.shape, bool)
        alike[real] = best[:, -1] - best[:, -2] < 1e-4
    same = (batches[0].actions == batches[-1].actions) | alike
    assert same.all(), np.argwhere(~same)
    np.testing.assert_array_equal(batches[0].lengths, batches[-1].lengths)
    np.testing.assert_array_equal(batches[0].returns, batches[-1].returns)


def test_records_of_another_preview_are_refused(references):
    policy = tetrion.load_policy(references / "scorer")
    shown = policy.queue_size - 1
    envs = tetrion.vector.make("tetris-placement", 2, obs="compact", queue_size=shown)
    observations, _ = envs.reset(seed=1)
    own, _ = tetrion.vector.make("tetris-placement", 2, obs="compact").reset(seed=1)
    for records in (observations, np.stack([own[0], observations[1]])):
        with pytest.raises(ValueError, match=f"show {shown} pieces in advance, not queue_size="):
            policy(records)


def test_a_policy_in_a_collector_of_another_view_says_what_it_takes(references):
    policy = tetrion.load_policy(references / "conv")
    c = tetrion.BatchedTetrisCollector(1, 4, policy_fn=policy.for_collector())
    said = r"takes observations 'planes' .*not float32 \[1, 944\]: .*obs=policy.obs"
    with c, pytest.raises(ValueError, match=said):
        c.request_episodes(1)


def test_a_policy_itself_is_no_policy_of_a_collector(references):
    policy = tetrion.load_policy(references / "conv")
    with pytest.raises(TypeError, match=r"policy_fn is a Policy, .*policy\.for_collector\(\)"):
        tetrion.BatchedTetrisCollector(1, 4, policy_fn=policy)


def test_observations_of_another_kind_are_refused(references):
    policy = tetrion.load_policy(references / "conv")
    for wrong in (np.zeros((2, 447), np.float32), np.zeros((2, 63), np.uint8), np.zeros((2, 64))):
        with pytest.raises(
            ValueError,
            match=r"takes observations 'planes' .*or records of its run \(uint8 \[n, 64\]",
        ):
            policy(wrong)
    with pytest.raises(ValueError, match=r"mask must be of shape \(1, 8\)"):
        policy(np.zeros(448, np.float32), np.ones(3, bool))


def copied(references, tmp_path, case="mlp-vector"):
    shutil.copytree(references / case, tmp_path / case)
    return tetrion.Run(tmp_path / case)


def damaged(data, how):
    """A checkpoint's bytes with something wrong, and what is said of it."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])

    def with_header(changed):
        text = json.dumps(changed).encode()
        return len(text).to_bytes(8, "little") + text + data[8 + length :]

    name = "policy.policy.1.weight"
    if how == "truncated":
        return data[:-5]
    if how == "foreign":
        return b"PK\x03\x04" + data
    if how == "type":
        return with_header({**header, name: {**header[name], "dtype": "F64"}})
    if how == "shape":
        return with_header({**header, name: {**header[name], "shape": [3, 3]}})
    if how == "transposed":
        return with_header({**header, name: {**header[name], "shape": [4, 64]}})
    if how == "missing":
        return with_header({k: v for k, v in header.items() if k != name})
    return with_header({**header, "__metadata__": {**header["__metadata__"], "network": "resnet"}})


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("truncated", "may be truncated"),
        ("foreign", "header length is impossible"),
        ("type", "is of type F64, not F32"),
        ("shape", "shape and data_offsets .* disagree"),
        ("transposed", "does not fit view 'vector' of cartpole"),
        ("missing", "that this package does not know"),
        ("network", "a network 'resnet' that this package does not know"),
    ],
)
def test_damaged_checkpoints_are_refused_with_a_reason(references, tmp_path, how, message):
    run = copied(references, tmp_path)
    file = run.checkpoint().path
    file.write_bytes(damaged(file.read_bytes(), how))
    with pytest.raises(tetrion.RunError, match=message):
        tetrion.load_policy(run)
    file.unlink()
    with pytest.raises(tetrion.RunError, match="cannot be read: No such file"):
        tetrion.load_policy(run)


def test_a_checkpoint_that_is_replaced_meanwhile_is_looked_up_again(
    references, tmp_path, monkeypatch
):
    run = copied(references, tmp_path)
    there = run.checkpoint()
    gone = dataclasses.replace(there, path=there.path.with_name("000000000000.safetensors"))
    answers = [gone, there]
    monkeypatch.setattr(run, "checkpoint", lambda _: answers.pop(0))
    assert tetrion.load_policy(run).checkpoint == there.path
    assert not answers


def test_weights_of_another_environment_do_not_fit(references, tmp_path):
    run = copied(references, tmp_path)
    other = tetrion.Run(references / "mlp-planes").checkpoint().path
    with pytest.raises(tetrion.RunError, match="does not fit view 'vector'"):
        tetrion.load_policy(run, other)


def test_runs_of_another_algorithm_are_refused(references, tmp_path):
    run = copied(references, tmp_path)
    config = run.path / "config.toml"
    text = config.read_text()
    assert 'algo = "vtrace"' in text
    config.write_text(text.replace('algo = "vtrace"', 'algo = "dreamer"'))
    with pytest.raises(tetrion.RunError, match=r"with algo 'dreamer'.*V-trace only.*tetrion eval"):
        tetrion.load_policy(tetrion.Run(run.path))


def test_metadata_is_read(references):
    tensors, metadata = read_safetensors(tetrion.Run(references / "conv").checkpoint("best").path)
    assert metadata["network"] == "conv"
    assert tensors["policy.conv.1.weight"].shape == (32, 2, 3, 3)
    assert not tensors["policy.conv.1.weight"].flags.writeable
