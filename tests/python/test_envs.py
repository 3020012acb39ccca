"""The single environments through Gymnasium's interface."""

import gymnasium
import numpy as np
import pytest
import tetrion
from gymnasium.utils.env_checker import check_env

IDS = ("tetrion/Tetris-v0", "tetrion/TetrisPlacement-v0", "tetrion/CartPole-v0")
TETRIS_OBS = ("flat", "dict", "planes", "compact", "packed2")
CASES = [(IDS[0], obs) for obs in TETRIS_OBS]
CASES += [(IDS[1], obs) for obs in (*TETRIS_OBS, "afterstates")]
CASES += [(IDS[2], obs) for obs in ("flat", "compact")]
HARD_DROP, SWAP, NOOP = 5, 6, 7


@pytest.mark.parametrize(("env_id", "obs"), CASES)
@pytest.mark.filterwarnings("ignore:.*infinity")
def test_gymnasiums_checker_is_content(env_id, obs):
    for render_mode in (None, "rgb_array"):
        env = gymnasium.make(env_id, obs=obs, render_mode=render_mode)
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize(("env_id", "obs"), CASES)
def test_observations_of_whole_episodes_lie_in_their_space(env_id, obs):
    env = gymnasium.make(env_id, obs=obs, max_steps=300)
    env.action_space.seed(1)
    observation, info = env.reset(seed=3)
    for _ in range(600):
        assert observation in env.observation_space
        mask = info.get("action_mask")
        action = env.action_space.sample(None if mask is None else mask.astype(np.int8))
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            observation, info = env.reset()


def episode(env, seed, actions):
    seen = [env.reset(seed=seed)[0]]
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append((observation.copy(), reward))
        if terminated or truncated:
            break
    return seen


def test_a_seed_decides_the_pieces_and_the_next_reset_plays_others():
    env = tetrion.TetrisEnv("compact")
    actions = [HARD_DROP] * 30
    first = episode(env, 5, actions)
    again = episode(env, 5, actions)
    assert len(first) == len(again) > 5
    for a, b in zip(first[1:], again[1:], strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        assert a[1] == b[1]
    start = env.reset(seed=5)[0]
    assert not np.array_equal(env.reset()[0], start), "episode 1 began with episode 0's pieces"
    assert not np.array_equal(env.reset(seed=6)[0], start)
    np.testing.assert_array_equal(env.reset(seed=5)[0], start)


def test_unseeded_environments_differ():
    starts = {tetrion.TetrisEnv("compact").reset()[0].tobytes() for _ in range(8)}
    assert len(starts) > 1


def test_pieces_are_those_that_are_played():
    env = tetrion.TetrisEnv("dict", queue_size=7)
    env.reset(seed=11)
    env.reset()  # episode 1
    ids = tetrion.pieces(11, 1, 8)
    for slot, piece in enumerate(ids[1:]):
        cells = env.unwrapped._observation()["queue"][:, 4 * slot : 4 * slot + 4]
        assert set(np.unique(cells)) == {0, piece + 2}
    assert sorted(ids[:7]) == list(range(7)), "the first seven are a bag"
    assert max(np.bincount(tetrion.pieces(11, 1, 70, iid=True), minlength=7)) != 10


def test_flatten_observation_equals_gymnasiums_and_the_flat_view():
    ours = tetrion.FlattenObservation(tetrion.TetrisEnv("dict", queue_size=3))
    theirs = gymnasium.wrappers.FlattenObservation(tetrion.TetrisEnv("dict", queue_size=3))
    flat = tetrion.TetrisEnv("flat", queue_size=3)
    rng = np.random.default_rng(0)
    observations = [env.reset(seed=1)[0] for env in (ours, theirs, flat)]
    assert ours.observation_space.shape == (928,)
    for _ in range(200):
        assert observations[0].dtype == np.float32
        assert observations[0] in ours.observation_space
        np.testing.assert_array_equal(observations[0], observations[1])
        np.testing.assert_array_equal(observations[0], observations[2])
        action = rng.integers(8)
        steps = [env.step(action) for env in (ours, theirs, flat)]
        observations = [step[0] for step in steps]
        if steps[0][2]:
            observations = [env.reset()[0] for env in (ours, theirs, flat)]


def test_flatten_observation_wants_a_dict():
    with pytest.raises(ValueError, match='obs="dict"'):
        tetrion.FlattenObservation(tetrion.TetrisEnv("flat"))


def test_an_episode_ends_once():
    env = tetrion.CartPoleEnv(max_steps=5)
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(0)
    env.reset(seed=0)
    for step in range(5):
        _, reward, terminated, truncated, info = env.step(step % 2)
        assert reward == 1.0
        assert info["episode_length"] == step + 1
        assert (terminated, truncated) == (False, step == 4)
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(0)
    env.reset()
    env.step(0)


def test_the_placement_mask_says_what_ends_the_episode():
    env = tetrion.TetrisPlacementEnv("compact")
    _, info = env.reset(seed=2)
    assert info["action_mask"].dtype == bool
    illegal = int(np.flatnonzero(~info["action_mask"])[0])
    _, reward, terminated, _, _ = env.step(illegal)
    assert terminated
    assert reward == pytest.approx(-0.1)
    lenient = tetrion.TetrisPlacementEnv("compact", illegal="noop")
    lenient.reset(seed=2)
    _, reward, terminated, _, _ = lenient.step(illegal)
    assert not terminated
    assert reward == pytest.approx(-0.1)


def test_pictures_show_the_game():
    env = tetrion.TetrisEnv(render_mode="rgb_array", render_scale=2)
    env.reset(seed=1)
    before = env.render()
    assert before.shape == (48, 68, 3)
    assert before.dtype == np.uint8
    env.step(HARD_DROP)
    assert (env.render() != before).any()
    cart = tetrion.CartPoleEnv(render_mode="rgb_array", render_scale=1)
    cart.reset(seed=1)
    assert cart.render().shape == (100, 150, 3)
    text = tetrion.TetrisEnv(render_mode="ansi")
    text.reset(seed=1)
    assert text.render().count("\n") == 21
    assert "lines  0" in text.render()


def test_rendering_needs_a_mode_and_a_game():
    silent = tetrion.TetrisEnv()
    silent.reset()
    with pytest.warns(UserWarning, match="render_mode"):
        assert silent.render() is None
    with pytest.raises(RuntimeError, match="reset"):
        tetrion.TetrisEnv(render_mode="ansi").render()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tetrion.TetrisEnv("pixels"), "choose one of flat, dict, planes, compact, packed2"),
        (lambda: tetrion.TetrisEnv("afterstates"), "tetris has no observation 'afterstates'"),
        (lambda: tetrion.TetrisEnv(queue_size=0), "queue_size must be 1 to 7, not 0"),
        (lambda: tetrion.TetrisEnv(max_steps=0), "max_steps must be 1 to 2\\*\\*30, not 0"),
        (lambda: tetrion.TetrisEnv(render_mode="human"), "not 'human'"),
        (lambda: tetrion.TetrisEnv(render_scale=0), "render_scale must be 1 to 64"),
        (lambda: tetrion.CartPoleEnv("dict"), "cartpole has no observation 'dict'"),
        (lambda: tetrion.TetrisPlacementEnv(illegal="skip"), "illegal must be"),
        (lambda: tetrion.TetrisEnv().reset(seed=-1), "[Ss]eed"),
        (lambda: tetrion.TetrisEnv().reset(options={"x": 1}), "takes no options, got \\['x'\\]"),
        (lambda: tetrion.pieces(-1, 0, 1), "seed must be 0 to"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises((ValueError, gymnasium.error.Error), match=message):
        make()


@pytest.mark.parametrize("name", ["queue_size", "max_steps", "render_scale"])
@pytest.mark.parametrize("value", [4.0, "4", None])
def test_arguments_that_are_no_integers_are_named(name, value):
    with pytest.raises(TypeError, match=f"{name} must be an integer, not {value!r}"):
        tetrion.TetrisEnv(**{name: value})


def test_actions_out_of_range_are_refused_and_change_nothing():
    env = tetrion.TetrisEnv("compact")
    before, _ = env.reset(seed=1)
    for action in (8, -1, 2**40):
        with pytest.raises(
            ValueError, match=f"action {action} is out of range: actions are 0 to 7"
        ):
            env.step(action)
    with pytest.raises(TypeError):
        env.step(1.5)
    np.testing.assert_array_equal(env._observation(), before)
    env.step(np.int64(NOOP))
    env.step(np.array(SWAP))


def test_a_closed_environment_says_so():
    env = tetrion.TetrisEnv()
    env.reset()
    env.close()
    env.close()
    with pytest.raises(RuntimeError, match="closed"):
        env.reset()
