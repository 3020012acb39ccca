"""stable-baselines3 over our vector environment. Skips where it is missing: torch is gigabytes."""

import gymnasium
import numpy as np
import pytest
import tetrion


@pytest.fixture
def sb3():
    """tetrion.sb3, where stable-baselines3 is installed."""
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    from tetrion import sb3

    return sb3


def test_arrays_that_the_next_step_overwrites_are_refused(sb3):
    with pytest.raises(ValueError, match="copy=False: stable-baselines3 stores"):
        sb3.VecEnv("tetris", 4, copy=False)


def test_a_seed_that_is_refused_changes_nothing(sb3):
    envs = sb3.VecEnv("tetris", 4)
    with pytest.raises(ValueError, match="seed must be 0 to"):
        envs.seed(-1)
    envs.reset()


@pytest.mark.parametrize("mode", ["NextStep", gymnasium.vector.AutoresetMode.DISABLED, 3])
def test_other_modes_than_the_one_that_it_needs_are_refused(sb3, mode):
    with pytest.raises(ValueError, match=r"autoreset_mode=.*stable-baselines3 needs .* SameStep"):
        sb3.VecEnv("tetris", 4, autoreset_mode=mode)
    sb3.VecEnv("tetris", 4, autoreset_mode="SameStep").close()


def test_steps_are_those_of_the_same_step_mode_with_its_final_observations(sb3):
    ours = sb3.VecEnv("tetris", 4, obs="compact", max_steps=20, threads=0)
    plain = tetrion.vector.make(
        "tetris", 4, obs="compact", max_steps=20, threads=0, autoreset_mode="SameStep"
    )
    ours.seed(5)
    assert np.array_equal(ours.reset(), plain.reset(seed=5)[0])
    ended = 0
    for step in range(50):
        actions = np.full(4, step % 8)
        observations, rewards, dones, infos = ours.step(actions)
        expected = plain.step(actions)
        assert np.array_equal(observations, expected[0])
        assert np.array_equal(rewards, expected[1])
        assert np.array_equal(dones, expected[2] | expected[3])
        for env in np.flatnonzero(dones):
            assert np.array_equal(infos[env]["terminal_observation"], expected[4]["final_obs"][env])
            assert infos[env]["TimeLimit.truncated"] == bool(expected[3][env])
            assert infos[env]["episode"]["l"] <= 20
            ended += 1
    assert ended >= 8
    ours.close()


def test_a_method_is_called_of_the_chosen_environments_alone(sb3):
    envs = sb3.VecEnv("tetris", 4, obs="compact", threads=0)
    envs.seed(5)
    envs.reset()
    start = envs.env_method("get_state", indices=[1])[0]
    for _ in range(5):
        envs.step(np.zeros(4, int))
    before = envs.get_attr("record")
    envs.env_method("set_state", start, indices=2)
    after = envs.get_attr("record")
    assert [one == other for one, other in zip(before, after, strict=True)] == [True] * 2 + [
        False,
        True,
    ]
    assert envs.get_attr("record", indices=[2, 0]) == [after[2], after[0]]
    envs.close()


def test_ppo_learns_something_of_cartpole(sb3):
    from stable_baselines3 import PPO

    envs = sb3.VecEnv("cartpole", 8, threads=0)
    model = PPO("MlpPolicy", envs, seed=1, n_steps=256, device="cpu")
    model.learn(20_000)
    assert np.mean([episode["r"] for episode in model.ep_info_buffer]) > 60


def test_maskable_ppo_never_plays_an_illegal_placement(sb3):
    contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    envs = sb3.VecEnv("tetris-placement", 8, obs="afterstates", threads=0)
    model = contrib.MaskablePPO("MlpPolicy", envs, seed=1, n_steps=64, device="cpu")
    model.learn(2048)
    observations = envs.reset()
    for _ in range(100):
        masks = np.stack(envs.env_method("action_masks"))
        actions, _ = model.predict(observations, action_masks=masks)
        assert masks[np.arange(8), actions].all()
        observations = envs.step(actions)[0]
    envs.close()


def test_an_attribute_may_be_a_list(sb3):
    envs = sb3.VecEnv("cartpole", 2)
    envs.set_attr("goal", [1, 2])
    assert envs.get_attr("goal") == [[1, 2], [1, 2]]
