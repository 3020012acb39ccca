"""The single environments through Gymnasium's interface."""

import copy
import inspect
import typing

import gymnasium
import numpy as np
import pytest
import tetrion
from gymnasium.utils.env_checker import check_env

TETRIS, PLACEMENT, CARTPOLE = (f"tetrion/{x}-v0" for x in ("Tetris", "TetrisPlacement", "CartPole"))
CASES = [
    (env_id, obs)
    for env_id, name in tetrion.envs.IDS.items()
    for obs in tetrion._spaces.OBSERVATIONS[name]
]
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
        action = env.action_space.sample(mask)
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
    assert ours.observation_space == theirs.observation_space
    flat = tetrion.TetrisEnv("flat", queue_size=3)
    rng = np.random.default_rng(0)
    observations = [env.reset(seed=1)[0] for env in (ours, theirs, flat)]
    assert ours.observation_space.shape == (928,)
    for _ in range(200):
        assert observations[0].dtype == observations[1].dtype == np.uint8
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
    assert info["action_mask"].dtype == np.int8
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"] == 1)
    assert env.action_masks().dtype == bool
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    _, reward, terminated, _, _ = env.step(illegal)
    assert terminated
    assert reward == pytest.approx(-0.1)
    lenient = tetrion.TetrisPlacementEnv("compact", illegal="noop")
    lenient.reset(seed=2)
    _, reward, terminated, _, _ = lenient.step(illegal)
    assert not terminated
    assert reward == pytest.approx(-0.1)


def test_illegal_actions_as_none_let_pieces_fall_until_the_game_ends():
    env = tetrion.TetrisPlacementEnv("compact", illegal="noop")
    _, info = env.reset(seed=2)
    terminated = truncated = False
    while not terminated:
        assert not truncated
        _, reward, terminated, truncated, info = env.step(int(info["action_mask"].argmin()))
        assert reward == pytest.approx(-0.1)
    assert info["episode_length"] > 20, "the first piece alone falls 19 rows"
    above = tetrion.TetrisPlacementEnv("compact", illegal="noop", spawn_above=True)
    _, info = above.reset(seed=2)
    record = above.record
    for _ in range(50):
        _, reward, terminated, _, info = above.step(int(info["action_mask"].argmin()))
        assert reward == pytest.approx(-0.1)
        assert not terminated
    assert above.record == record


def test_pictures_show_the_game():
    env = tetrion.TetrisEnv(render_mode="rgb_array", render_scale=2)
    env.reset(seed=1)
    before = env.render()
    assert before.shape == (48, 68, 3)
    assert before.dtype == np.uint8
    env.step(HARD_DROP)
    assert (env.render() != before).any()
    without_queue = tetrion.TetrisEnv(queue_size=0, render_mode="rgb_array", render_scale=2)
    without_queue.reset(seed=1)
    assert without_queue.render().shape == (48, 44, 3), "the holder is drawn all the same"
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
        (lambda: tetrion.TetrisEnv("rgb"), "of flat, dict, planes, pixels, compact, packed2"),
        (lambda: tetrion.TetrisEnv("afterstates"), "tetris has no observation 'afterstates'"),
        (lambda: tetrion.TetrisEnv(queue_size=-1), "queue_size must be 0 to 7, not -1"),
        (lambda: tetrion.TetrisEnv(max_steps=0), "max_steps must be 1 to 2\\*\\*30, not 0"),
        (lambda: tetrion.TetrisEnv(render_mode="human"), "not 'human'"),
        (lambda: tetrion.TetrisEnv(render_scale=0), "render_scale must be 1 to 64"),
        (lambda: tetrion.CartPoleEnv("dict"), "cartpole has no observation 'dict'"),
        (lambda: tetrion.TetrisPlacementEnv(illegal="skip"), "illegal must be"),
        (lambda: tetrion.TetrisEnv().reset(seed=-1), "seed must be 0 to 2\\*\\*64 - 1, not -1"),
        (lambda: tetrion.TetrisEnv().reset(options={"x": 1}), "takes no options, got \\['x'\\]"),
        (lambda: tetrion.pieces(-1, 0, 1), "seed must be 0 to"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", ["queue_size", "max_steps", "render_scale"])
@pytest.mark.parametrize("value", [4.0, "4", True])
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
    for action in (True, np.True_, "0", 1.0, None, np.array([1])):
        with pytest.raises(TypeError, match="action must be an integer of 0 to 7, not "):
            env.step(action)
    np.testing.assert_array_equal(env._observation(), before)
    env.step(np.int64(NOOP))
    env.step(np.array(SWAP))


def test_a_closed_environment_says_so():
    env = tetrion.TetrisEnv()
    env.reset()
    env.close()
    env.close()
    uses = (env.reset, lambda: env.step(0), env.render, lambda: env.record, env.get_state)
    for use in (*uses, lambda: copy.deepcopy(env)):
        with pytest.raises(RuntimeError, match="the environment is closed"):
            use()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tetrion.TetrisEnv(que_size=3),
            "TetrisEnv has no keyword 'que_size': did you mean 'queue_size'",
        ),
        (lambda: tetrion.TetrisEnv(width=12), "TetrisEnv has no keyword 'width': there are obs, "),
        (
            lambda: tetrion.TetrisPlacementEnv(illegal_is_noop=True),
            "TetrisPlacementEnv has no keyword 'illegal_is_noop'",
        ),
        (lambda: tetrion.TetrisEnv(colours=True), "TetrisEnv has no keyword 'colours'"),
        (lambda: tetrion.CartPoleEnv(queue_size=3), "CartPoleEnv has no keyword 'queue_size'"),
        (lambda: tetrion.TetrisEnv(iid_pieces=1), "iid_pieces must be True or False, not 1"),
        (lambda: tetrion.pieces(1, 0, 3, iid="no"), "iid must be True or False, not 'no'"),
        (lambda: tetrion.TetrisEnv().reset(seed=1.5), "seed must be an integer, not 1.5"),
    ],
)
def test_wrong_keywords_are_named_in_one_sentence(make, message):
    with pytest.raises(TypeError, match=message) as raised:
        make()
    assert "\n" not in str(raised.value)


def test_truth_values_of_numpy_are_truth_values():
    assert tetrion.TetrisEnv(iid_pieces=np.True_).reset(seed=np.int64(1))


def test_a_smaller_board_has_bedrock_above_it_and_ends_sooner():
    env = tetrion.TetrisEnv(board_rows=10)
    observation, _ = env.reset(seed=1)
    board = observation["board"]
    assert board.shape == (24, 18)
    assert (board[:10] == 1).all()
    assert not board[12:20, 4:14].any()
    hard_drop, pieces, terminated = 5, 0, False
    while not terminated:
        _, _, terminated, _, _ = env.step(hard_drop)
        pieces += 1
    assert pieces <= 10
    for rows in (4, 21):
        with pytest.raises(ValueError, match=f"board_rows must be 5 to 20, not {rows}"):
            tetrion.TetrisEnv(board_rows=rows)


@pytest.mark.parametrize(
    ("env_id", "steps"), [(TETRIS, 10_000), (PLACEMENT, 5_000), (CARTPOLE, 500)]
)
def test_the_spec_has_the_real_limit(env_id, steps):
    env = gymnasium.make(env_id)
    assert env.spec.max_episode_steps == env.unwrapped.max_steps == steps
    assert gymnasium.make(env_id, max_steps=None).unwrapped.max_steps == steps
    short = gymnasium.wrappers.TimeAwareObservation(gymnasium.make(env_id, max_steps=7))
    assert short.spec.max_episode_steps == short.max_timesteps == 7
    wrapped = gymnasium.make(env_id, max_episode_steps=5)
    assert wrapped.spec.max_episode_steps == 5
    assert wrapped.unwrapped.spec.max_episode_steps == steps, "the wrapper's limit is not its own"
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(short.env.spec.to_json()))
    assert again.unwrapped.max_steps == again.spec.max_episode_steps == 7


def test_dicts_and_infos_are_those_of_tetris_gymnasium():
    env = tetrion.TetrisEnv(max_steps=3000)
    observation, info = env.reset(seed=1)
    assert list(observation) == ["board", "active_tetromino_mask", "holder", "queue"]
    assert info["lines_cleared"] == 0
    placement = tetrion.TetrisPlacementEnv("compact", max_steps=3000)
    rng = np.random.default_rng(4)
    total = cleared = 0
    for _ in range(60):
        _, info = placement.reset(seed=int(rng.integers(1000)))
        terminated = truncated = False
        while not (terminated or truncated):
            before = info["lines"]
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            *_, terminated, truncated, info = placement.step(action)
            assert info["lines_cleared"] == info["lines"] - before
            total += info["lines_cleared"]
        cleared += info["lines"]
    assert total == cleared > 0


def test_cartpole_has_text_too():
    env = tetrion.CartPoleEnv(render_mode="ansi")
    env.reset(seed=1)
    lines = env.render().splitlines()
    assert len(lines) == 7
    assert lines[5].count("#") == 1
    assert len(lines[5]) == 49
    cart = lines[5].index("#")
    for _ in range(7):
        env.step(1)
    lines = env.render().splitlines()
    assert lines[5].index("#") >= cart
    assert lines[0].index("|") < lines[5].index("#"), "the pole leans to the left"


def test_no_record_of_cartpole_is_too_odd_to_draw():
    for odd in (np.nan, np.inf, -np.inf, 3e38):
        text = tetrion._core.render_text("cartpole", np.full(4, odd, np.float32).tobytes())
        assert text.splitlines()[5].count("#") == 1


def test_catch_pays_when_the_ball_is_on_the_lowest_row():
    env = tetrion.CatchEnv(render_mode="ansi")
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        board = observation.reshape(10, 9)
        ball, paddle = int(board[0].argmax()), 4
        assert board[9, paddle] == 1
        assert (board == 1).sum() == 2
        for step in range(9):
            action = 1 + np.sign(ball - paddle) if seed else 1
            paddle += action - 1
            *_, reward, terminated, truncated, _ = env.step(int(action))
            assert terminated == (step == 8)
            assert not truncated
            assert reward == (0 if step < 8 else 1 if ball == paddle else -1)
        assert ("@" in env.render()) == (ball == paddle)


def test_keys_for_play_are_actions():
    for env in (tetrion.TetrisEnv(), tetrion.CartPoleEnv(), tetrion.CatchEnv()):
        keys = env.get_keys_to_action()
        assert sorted(keys.values()) == list(range(env.action_space.n))
        assert all(len(key) == 1 for key in keys), "play refuses the empty combination"


def test_there_is_no_mask_before_the_first_game():
    env = tetrion.TetrisPlacementEnv()
    with pytest.raises(RuntimeError, match=r"no game yet: call reset\(\) first"):
        env.action_masks()
    env.reset(seed=1)
    assert env.action_masks().any()


def test_masks_are_found_the_way_sb3_contrib_looks_for_them():
    env = gymnasium.make(PLACEMENT)
    env.reset(seed=1)
    masks = env.get_wrapper_attr("action_masks")()
    assert (masks.shape, masks.dtype) == ((40,), bool)
    assert not gymnasium.make(TETRIS).has_wrapper_attr("action_masks")
    envs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make(PLACEMENT)] * 2)
    envs.reset(seed=1)
    np.testing.assert_array_equal(np.stack(envs.call("action_masks"))[0], masks)


def test_type_checkers_are_told_the_names_of_the_table():
    table = tetrion._spaces.TABLE
    assert set(typing.get_args(tetrion._spaces.EnvName)) == set(table)
    for kind, env in (
        (tetrion._spaces.TetrisObs, "tetris"),
        (tetrion._spaces.PlacementObs, "tetris-placement"),
        (tetrion._spaces.CartPoleObs, "cartpole"),
        (tetrion._spaces.CatchObs, "catch"),
    ):
        assert set(typing.get_args(kind)) == set(table[env].observations)
        single = getattr(tetrion, f"{table[env].python_name}Env")
        assert inspect.signature(single).parameters["obs"].default == table[env].default_obs


@pytest.mark.parametrize("env", tetrion.envs.IDS.values())
def test_an_environment_of_the_table_needs_no_class_of_its_own(env):
    about = tetrion._spaces.TABLE[env]
    written = getattr(tetrion.envs, f"{about.python_name}Env")(render_mode="rgb_array")
    made = tetrion.envs.class_of(about)(render_mode="rgb_array")
    assert made.observation_space == written.observation_space
    assert made.metadata == written.metadata
    for one in (made, written):
        one.reset(seed=3)
        one.step(1)
    assert made.record[:16] == written.record[:16]
    np.testing.assert_array_equal(made.render(), written.render())
    with pytest.raises(TypeError, match="has no keyword 'queue'"):
        tetrion.envs.class_of(about)(queue=3)
