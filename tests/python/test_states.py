"""States: saved, sent, restored, copied; what goes on from them is what the original does."""

import copy
import dataclasses
import pickle
import struct
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import tetrion

KINDS = [
    (tetrion.TetrisEnv, {"obs": "dict", "queue_size": 3}),
    (tetrion.TetrisEnv, {"obs": "packed2", "iid_pieces": True, "max_steps": 70, "board_rows": 10}),
    (tetrion.TetrisPlacementEnv, {"obs": "flat"}),
    (tetrion.TetrisEnv, {"obs": "drops", "queue_size": 0}),
    (tetrion.TetrisPlacementEnv, {"obs": "afterstates", "illegal": "noop"}),
    (tetrion.TetrisPlacementEnv, {"obs": "afterstates-dt", "iid_pieces": True}),
    (tetrion.TetrisPlacementEnv, {"obs": "afterstates-boards", "queue_size": 1}),
    (
        tetrion.TetrisPlacementEnv,
        {"obs": "flat", "queue_size": 0, "board_rows": 6, "spawn_above": True, "reward": "lines"},
    ),
    (tetrion.CartPoleEnv, {"max_steps": 20}),
    (tetrion.CatchEnv, {}),
]
NAMES = {f"{about.python_name}Env": name for name, about in tetrion._spaces.TABLE.items()}


def bytes_of(value):
    """Any observation, info or number, to the bit."""
    if isinstance(value, dict):
        return b"".join(key.encode() + bytes_of(value[key]) for key in sorted(value))
    return np.asarray(value).tobytes()


def play(env, rng, steps):
    """Everything that `steps` random steps show, resets included."""
    shown = []
    for _ in range(steps):
        *step, info = env.step(rng.integers(env.action_space.n))
        shown += [*map(bytes_of, step), bytes_of(info)]
        if step[2] or step[3]:
            observation, info = env.reset()
            shown += [bytes_of(observation), bytes_of(info)]
    return shown


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("before", [0, 1, 33, 150])
def test_a_restored_environment_goes_on_as_it_did(kind, options, before):
    env = kind(**options)
    env.reset(seed=3)
    play(env, np.random.default_rng(1), before)
    state = env.get_state()
    record = env.record
    first = play(env, np.random.default_rng(2), 300)
    observation, info = env.set_state(pickle.loads(pickle.dumps(state)))
    assert env.record == record
    assert env.get_state() == state
    assert observation in env.observation_space
    assert info["episode_length"] <= before
    assert play(env, np.random.default_rng(2), 300) == first
    other = kind(**options)
    shown, _ = other.set_state(state)
    assert bytes_of(shown) == bytes_of(observation)
    assert play(other, np.random.default_rng(2), 300) == first
    assert len(pickle.dumps(state)) < 600


def test_a_saved_state_of_tetris_has_the_size_that_its_documentation_tells():
    env = tetrion.TetrisEnv()
    env.reset(seed=1)
    assert f"`saved` is {len(env.get_state().saved)} bytes" in tetrion.EnvState.__doc__


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_an_ended_episode_stays_ended(kind, options):
    env = kind(**options)
    env.reset(seed=3)
    ended = False
    while not ended:
        observation, _, terminated, truncated, _ = env.step(0)
        ended = terminated or truncated
    other = copy.deepcopy(env)
    shown, _ = kind(**options).set_state(env.get_state())
    assert bytes_of(shown) == bytes_of(observation)
    with pytest.raises(RuntimeError, match="call reset"):
        other.step(0)
    assert bytes_of(other.reset()[0]) == bytes_of(env.reset()[0])


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("through", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_alike_and_apart(kind, options, through):
    env = kind(**options, render_mode="rgb_array")
    unstarted = through(env)
    assert bytes_of(unstarted.reset(seed=3)[0]) == bytes_of(env.reset(seed=3)[0])
    env.action_space.seed(5)
    play(env, np.random.default_rng(1), 40)
    other = through(env)
    np.testing.assert_array_equal(other.render(), env.render())
    assert other.action_space.sample() == env.action_space.sample()
    assert other.np_random.random() == env.np_random.random()
    record = env.record
    shown = play(other, np.random.default_rng(2), 100)
    assert env.record == record, "the copy moved the original"
    assert play(env, np.random.default_rng(2), 100) == shown


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_shallow_copy_has_a_game_and_buffers_of_its_own(kind, options):
    env = kind(**options)
    env.reset(seed=3)
    play(env, np.random.default_rng(1), 10)
    other = copy.copy(env)
    assert not np.shares_memory(other._action, env._action)
    record = env.record
    shown = play(other, np.random.default_rng(2), 30)
    assert env.record == record, "the copy moved the original"
    assert play(env, np.random.default_rng(2), 30) == shown


def test_environments_in_gymnasiums_wrappers_are_copied():
    env = gymnasium.make("tetrion/Tetris-v0", max_episode_steps=50)
    env.reset(seed=1)
    for _ in range(20):
        env.step(2)
    other = copy.deepcopy(env)
    assert play(other, np.random.default_rng(1), 60) == play(env, np.random.default_rng(1), 60)


def test_another_process_goes_on_with_a_state_and_with_an_environment(tmp_path):
    env = tetrion.TetrisEnv(queue_size=2)
    env.reset(seed=9)
    play(env, np.random.default_rng(1), 15)
    (tmp_path / "state").write_bytes(pickle.dumps((env.get_state(), env)))
    done = subprocess.run(
        [
            sys.executable,
            "-B",
            "-c",
            "import pickle, pathlib, sys, tetrion\n"
            "state, env = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
            "fresh = tetrion.TetrisEnv(queue_size=2)\n"
            "fresh.set_state(state)\n"
            "for one in (env, fresh):\n"
            "    for _ in range(4):\n"
            "        one.step(5)\n"
            "    print(one.record.hex())\n",
            str(tmp_path / "state"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    for _ in range(4):
        env.step(5)
    assert done.stdout.split() == [env.record.hex()] * 2, done.stderr


def rows_after(envs, seed, steps):
    """Everything that `steps` random steps of a vector environment show."""
    rng = np.random.default_rng(seed)
    shown = []
    for _ in range(steps):
        results = envs.step(rng.integers(envs.single_action_space.n, size=envs.num_envs))
        shown += [bytes_of(result) for result in results]
    return shown


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("threads", [0, 2])
def test_a_restored_vector_environment_goes_on_as_it_did(kind, options, threads):
    name = NAMES[kind.__name__]
    envs = tetrion.vector.make(name, 5, threads=threads, **{"obs": "flat", **options})
    envs.reset(seed=3)
    rows_after(envs, 1, 45)  # with max_steps 20 some rows are between two episodes
    states = pickle.loads(pickle.dumps(envs.get_state()))
    first = rows_after(envs, 2, 200)
    shown, _ = envs.set_state(states)
    assert shown in envs.observation_space
    assert envs.get_state() == states
    assert rows_after(envs, 2, 200) == first
    for other in (copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))):
        other.set_state(states)
        assert rows_after(other, 2, 200) == first
    one_by_one = tetrion.vector.make(name, 5, **{"obs": "flat", **options})
    one_by_one.reset(seed=77)
    for env in (4, 2, 0, 3, 1):
        one_by_one.set_state(states[env], [env])
    assert rows_after(one_by_one, 2, 200) == first
    by_call = tetrion.vector.make(name, 5, **{"obs": "flat", **options})
    by_call.set_state(envs.call("get_state"))
    assert rows_after(by_call, 4, 20) == rows_after(envs, 4, 20)


def test_copies_of_a_vector_environment_go_on_alike():
    envs = tetrion.vector.make("tetris", 4, seed=[1, 2, 3, 4])
    unstarted = copy.deepcopy(envs)
    np.testing.assert_array_equal(unstarted.reset()[0], envs.reset()[0])
    envs.set_attr("level", [1, 2, 3, 4])
    rows_after(envs, 1, 30)
    other = copy.deepcopy(envs)
    assert other.get_attr("level") == (1, 2, 3, 4)
    records = envs.records(range(4))
    shown = rows_after(other, 2, 30)
    assert envs.records(range(4)) == records, "the copy moved the original"
    assert rows_after(envs, 2, 30) == shown
    np.testing.assert_array_equal(other.reset()[0], envs.reset()[0])


@pytest.mark.parametrize("with_copies", [True, False])
def test_states_of_the_same_step_mode_go_on_with_the_next_episode(with_copies):
    options = {"max_steps": 5, "seed": 3, "copy": with_copies}
    envs = tetrion.vector.make("cartpole", 3, autoreset_mode="SameStep", **options)
    later = tetrion.vector.make("cartpole", 3, **options)
    envs.reset()
    later.reset()
    for _ in range(5):
        shown = envs.step(np.zeros(3, int))
        ended = later.step(np.zeros(3, int))
    assert shown[3].all()
    assert ended[3].all()
    assert (shown[1] == 1).all()
    at_the_end = later.get_state()
    later.step(np.zeros(3, int))
    assert envs.get_state() == later.get_state(), "the first row of the next episode"
    single = tetrion.CartPoleEnv(max_steps=5)
    single.set_state(envs.get_state([1])[0])
    follows = single.step(1)
    shown = envs.step(np.ones(3, int))
    np.testing.assert_array_equal(shown[0][1], follows[0])
    assert not (shown[2] | shown[3]).any()
    # A state that this mode never has: of an episode that is over.
    observations, infos = envs.set_state(at_the_end)
    assert envs.get_state() != at_the_end
    assert (infos["episode_length"] == 0).all()
    later.set_state(at_the_end)
    np.testing.assert_array_equal(observations, later.step(np.zeros(3, int))[0])
    assert (envs.step(np.zeros(3, int))[4]["episode_length"] == 1).all()


def test_a_shallow_copy_of_a_vector_environment_is_one_of_its_own():
    envs = tetrion.vector.make("tetris", 2, seed=1)
    envs.reset()
    envs.set_attr("level", [1, 2])
    other = copy.copy(envs)
    records = envs.call("record")
    rows_after(other, 1, 5)
    assert envs.call("record") == records
    assert other.call("record") == tuple(other.records(range(2))) != records
    assert other.get_attr("level") == (1, 2)
    other.set_attr("level", [3, 4])
    assert envs.get_attr("level") == (1, 2)


def test_one_state_branches_into_every_row_and_back_into_a_single_environment():
    env = tetrion.TetrisPlacementEnv("compact")
    env.reset(seed=4)
    env.step(16)
    envs = tetrion.vector.make("tetris-placement", 40, obs="compact")
    observations, infos = envs.set_state(env.get_state())
    assert (observations == observations[0]).all()
    np.testing.assert_array_equal(infos["action_mask"][0], env.action_masks())
    observations, rewards, terminations, _, _ = envs.step(np.arange(40))
    np.testing.assert_array_equal(terminations, ~env.action_masks())
    legal = int(np.flatnonzero(env.action_masks())[3])
    observation, reward, *_ = env.step(legal)
    np.testing.assert_array_equal(observation, observations[legal])
    assert reward == rewards[legal]
    with pytest.raises(ValueError, match="has no colours of locked cells"):
        env.set_state(envs.get_state([legal])[0])
    coloured = tetrion.vector.make("tetris-placement", 1, obs="compact", render_mode="ansi")
    coloured.set_state(env.get_state())
    env.set_state(coloured.get_state()[0])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (tetrion.TetrisPlacementEnv(), "env='tetris', this one has env='tetris-placement'"),
        (tetrion.CartPoleEnv(), "env='tetris', this one has env='cartpole'"),
        (tetrion.TetrisEnv(queue_size=3), "queue_size=4, this one has queue_size=3"),
        (tetrion.TetrisEnv(iid_pieces=True), "iid_pieces=False, this one has iid_pieces=True"),
        (tetrion.TetrisEnv(max_steps=5), "max_steps=10000, this one has max_steps=5"),
        (tetrion.TetrisEnv(board_rows=10), "board_rows=20, this one has board_rows=10"),
    ],
)
def test_a_state_of_other_settings_is_refused(other, message):
    env = tetrion.TetrisEnv()
    env.reset(seed=1)
    other.reset(seed=1)
    record = other.record
    with pytest.raises(ValueError, match=message):
        other.set_state(env.get_state())
    assert other.record == record
    other.step(0)


def test_damaged_and_foreign_states_are_refused_and_nothing_changes():
    envs = tetrion.vector.make("tetris", 3, obs="flat", seed=1)
    with pytest.raises(RuntimeError, match="environment 0 was never reset"):
        envs.get_state()
    with pytest.raises(RuntimeError, match="never reset"):
        tetrion.TetrisEnv().get_state()
    envs.reset()
    states = envs.get_state()
    rows_after(envs, 1, 9)
    records = envs.records(range(3))
    damaged = copy.copy(states[2])
    object.__setattr__(damaged, "saved", damaged.saved[:-1])
    newer = copy.copy(states[2])
    object.__setattr__(newer, "version", 5)
    text = dataclasses.replace(states[2], saved="text")
    for bad, error, message in (
        ([*states[:2], damaged], ValueError, "the state for environment 2 is damaged"),
        ([*states[:2], newer], ValueError, "of version 5; this tetrion reads 4"),
        ([*states[:2], text], TypeError, "saved of a state must be bytes, not str"),
        (states[:2], ValueError, "2 states for 3 environments"),
        ([b"", *states[:2]], TypeError, "a state is an EnvState of get_state\\(\\), not bytes"),
    ):
        with pytest.raises(error, match=message):
            envs.set_state(bad)
    with pytest.raises(ValueError, match="environment 3 does not exist"):
        envs.set_state(states[0], [3])
    assert envs.records(range(3)) == records


def with_number(state, at, kind, value):
    """The state with another number in its bytes, where that begins at `at`."""
    saved = bytearray(state.saved)
    struct.pack_into(kind, saved, at, value)
    return dataclasses.replace(state, saved=bytes(saved))


REWARD = (24, "f")  # of the head
RETURN = (56, "d")  # behind 32 bytes of head, 16 of token, steps and lines


@pytest.mark.parametrize(
    ("place", "number"),
    [
        *[(place, number) for place in (REWARD, RETURN) for number in (np.nan, np.inf, -np.inf)],
        (RETURN, 1e39),  # no float
    ],
)
def test_a_state_whose_reward_or_return_is_no_number_is_refused(place, number):
    env = tetrion.CartPoleEnv()
    env.reset(seed=3)
    env.step(0)
    state = env.get_state()
    with pytest.raises(ValueError, match="is damaged"):
        env.set_state(with_number(state, *place, number))
    assert env.get_state() == state


def test_a_return_that_floats_cannot_count_up_goes_on_to_the_unit():
    env = tetrion.CartPoleEnv()
    env.reset(seed=3)
    env.set_state(with_number(env.get_state(), *RETURN, 2.0**24))
    for step in range(1, 9):
        *_, info = env.step(step % 2)
        env.set_state(env.get_state())
        if step % 2 == 0:
            assert info["episode_return"] == 2**24 + step


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_state_with_a_wrong_bit_is_refused_or_shows_what_the_space_holds(kind, options):
    env = kind(**options)
    env.reset(seed=3)
    for number in range(15):
        if any(env.step(number % 2 * 5 % env.action_space.n)[2:4]):
            env.reset()
    state = env.get_state()
    refused = 0
    for bit in range(8 * len(state.saved)):
        saved = bytearray(state.saved)
        saved[bit // 8] ^= 1 << bit % 8
        try:
            observation, info = env.set_state(dataclasses.replace(state, saved=bytes(saved)))
        except ValueError:
            refused += 1
            continue
        assert observation in env.observation_space, bit
        assert info.get("lines", 0) >= 0, bit
        assert info.get("lines_cleared", 0) >= 0, bit
    assert refused > 64


def test_an_environment_that_is_stepping_has_no_state():
    envs = tetrion.vector.make("tetris", 4, threads=1, batch_size=2, seed=1)
    envs.async_reset()
    for use in (envs.get_state, lambda: copy.deepcopy(envs)):
        with pytest.raises(ValueError, match="still stepping: recv its result, or reset"):
            use()
    ids = [*envs.recv()[4]["env_id"], *envs.recv()[4]["env_id"]]
    other = copy.deepcopy(envs)
    for one in (envs, other):
        one.send(np.full(4, 5, np.int32), np.array(ids, np.int32))
        one.recv()
        one.recv()
    assert other.get_state() == envs.get_state()


@pytest.mark.parametrize("env", ["cartpole", "catch"])
def test_games_without_colours_go_on_with_a_picture_and_without(env):
    plain = tetrion.vector.make(env, 2, seed=3)
    drawn = tetrion.vector.make(env, 2, seed=4, render_mode="rgb_array")
    plain.reset()
    drawn.reset()
    drawn.set_state(plain.get_state())
    assert drawn.records(range(2)) == plain.records(range(2))
    drawn.step(np.zeros(2, int))
    plain.set_state(drawn.get_state())
    assert plain.records(range(2)) == drawn.records(range(2))
