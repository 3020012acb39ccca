"""What the collector says of wrong arguments and of what its callables return."""

import gc

import collecting
import numpy as np
import pytest
from tetrion import BatchedTetrisCollector, policies


def collector(workers=1, steps=6, obs_flatten=None, **options):
    return collecting.collector(workers, steps, obs_flatten, **options)


BAD_VALUES = [
    ({"num_workers": -1}, "num_workers must be 0 to 1024, not -1"),
    ({"max_steps": 0}, "max_steps must be 1 to"),
    ({"lanes_per_worker": 0}, "lanes_per_worker must be 1 to"),
    ({"seed": -3}, "seed must be 0 to"),
    ({"queue_size": 8}, "queue_size must be 0 to 7, not 8"),
    ({"env": "pong"}, "env must be one of tetris, tetris-placement, .*, not 'pong'"),
    ({"order": "random"}, "order must be one of job, completion"),
    ({"illegal": "ignore"}, "illegal must be one of terminate, noop, not 'ignore'"),
    ({"obs": "picture"}, "obs must be one of flat, planes, pixels, compact"),
    ({"timeout": 0}, "timeout must be positive"),
    ({"obs_flatten": lambda o: o["board"]}, r"returned uint8 of shape \(24, 18\)"),
    ({"obs_flatten": lambda o: o["board"], "obs": "flat"}, "obs or obs_flatten, not both"),
    ({"policy_fn": policies.Scripted([9])}, "scripted action 0 is 9: choose 0 to 7"),
    ({"timeout": float("nan")}, "timeout must be positive or None, not nan"),
    ({"timeout": -1}, "timeout must be positive or None, not -1"),
    ({"max_steps": 1 << 31}, r"max_steps must be 1 to 2\*\*24, not 2147483648"),
    ({"obs": "dict"}, "obs must be one of flat, planes, .*, drops, not 'dict'"),
    ({"obs": "planes", "env": "cartpole"}, "obs must be one of flat, compact, not 'planes'"),
    ({"obs_flatten": lambda o: [[1, 2], [3]]}, "returned what is no array: .*inhomogeneous"),
]

BAD_TYPES = [
    ({"num_workers": 1.5}, "num_workers must be an integer, not 1.5"),
    ({"policy_fn": 3}, "policy_fn must be callable or None, not int"),
    ({"obs_flatten": 3}, "obs_flatten must be callable or None, not int"),
    ({"max_steps": "4"}, "max_steps must be an integer, not '4'"),
    ({"lanes_per_worker": True}, "lanes_per_worker must be an integer, not True"),
    ({"seed": None}, "seed must be an integer, not None"),
    ({"env": 3}, "env must be one of tetris, tetris-placement, .*, not 3"),
    ({"timeout": "1"}, "timeout must be a number of seconds or None, not '1'"),
    ({"timeout": True}, "timeout must be a number of seconds or None, not True"),
    ({"on_episode": 3}, "on_episode must be callable or None, not int"),
    ({"copy": "no"}, "copy must be True or False, not 'no'"),
    ({"copy": 1}, "copy must be True or False, not 1"),
    ({"iid_pieces": 1}, "iid_pieces must be True or False, not 1"),
    ({"policy_fn": policies.Random}, r"not its class policies.Random: make one, policies.Random\("),
    ({"policy_fn": policies.Scripted}, "not its class policies.Scripted: make one"),
    (
        {"num_worker": 3},
        "BatchedTetrisCollector has no keyword 'num_worker': did you mean 'num_wor",
    ),
    ({"lanes": 3}, "BatchedTetrisCollector has no keyword 'lanes'"),
]


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [(ValueError, *case) for case in BAD_VALUES] + [(TypeError, *case) for case in BAD_TYPES],
)
def test_bad_arguments_are_named(error, options, message):
    arguments = {"num_workers": 1, "max_steps": 4} | options
    with pytest.raises(error, match=message):
        BatchedTetrisCollector(**arguments)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3, 4, 5), ("a", "b")])
def test_a_collector_that_was_never_made_makes_no_noise(arguments):
    with pytest.raises(TypeError):
        BatchedTetrisCollector(*arguments)
    gc.collect()


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 10**400, np.float32(60), 60])
def test_any_positive_timeout_is_one(timeout):
    with collector(timeout=timeout) as c:
        assert c.request_episodes(2).lengths.tolist() == [6, 6]


def test_scripts_that_are_no_lists_of_integers_are_refused():
    for bad in ([], [0.5], [[1]]):
        with pytest.raises(ValueError, match="1-D list of integers"):
            policies.Scripted(bad)


@pytest.mark.parametrize(
    ("actions", "said"), [([0, 2**32 + 1], "1 is 4294967297"), ([0, -1], "1 is -1"), ([2**63], "0")]
)
def test_scripted_actions_are_not_narrowed_into_legal_ones(actions, said):
    with pytest.raises(ValueError, match=f"scripted action {said}"):
        policies.Scripted(actions)


def test_bad_requests_are_named():
    with collector(1, 4) as c:
        for episodes, error in ((0, ValueError), (-1, ValueError), (2.0, TypeError)):
            with pytest.raises(error, match="num_episodes must be"):
                c.request_episodes(episodes)
        cases = [
            (np.zeros((2, 3), int), r"shape \(1, 4\), not \(2, 3\)"),
            (np.zeros(4, int), r"must be \[B, K\] integers"),
            (np.zeros((1, 4)), r"must be \[B, K\] integers, not float64"),
            (np.full((1, 4), 8), r"actions\[0, 0\] is 8: choose 0 to 7"),
            (np.array([[0, -2, 0, 0]]), r"actions\[0, 1\] is -2"),
            (np.array([[-1, 0, 0, 0]]), r"actions\[0, 0\] is -1: an episode takes at least one"),
        ]
        for actions, message in cases:
            with pytest.raises(ValueError, match=message):
                c.request_episodes(1, actions=actions)
        assert c.request_episodes(1).job_ids[0] == 0  # none of them moved the stream


BAD_RESULTS = [
    (lambda n: np.zeros(n + 1, np.int32), r"returned actions of shape \(2,\): return \(1,\)"),
    (lambda n: np.zeros((n, 1), np.int32), r"returned actions of shape \(1, 1\)"),
    (lambda n: np.zeros(n), r"returned actions of dtype float64: return integers"),
    (lambda n: None, r"returned actions of dtype object"),
    (lambda n: np.full(n, 8), r"returned action 8: choose 0 to 7"),
    (lambda n: np.full(n, -1), r"returned action -1: choose 0 to 7"),
    (lambda n: np.full(n, 2**40), r"returned action 1099511627776"),
    (lambda n: (), r"returned a tuple of 0"),
    (lambda n: (np.zeros(n, int),) * 2, r"returned log_probs of dtype int64: return floats"),
    (lambda n: (np.zeros(n, int), np.zeros(n), np.zeros(n + 1)), r"returned values of shape"),
    (lambda n: np.full(n, 2**64 - 1, np.uint64), r"returned action 18446744073709551615: choose"),
    (lambda n: [[1, 2], [3]], r"returned actions that are no array: .*inhomogeneous"),
    (lambda n: (np.zeros(n, int), [[1.0], [2.0, 3.0]]), r"returned log_probs that are no array"),
    (lambda n: np.full(n, 2**70), r"returned actions of dtype object"),
    (lambda n: (np.zeros(n, int), np.full(n, np.nan)), r"returned NaN in log_probs: return finite"),
    (lambda n: (np.zeros(n, int), np.full(n, 1e300)), r"returned infinity in log_probs"),
    (
        lambda n: (np.zeros(n, int), np.zeros(n), np.full(n, -np.inf)),
        r"returned infinity in values",
    ),
]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # numpy's, to float32
@pytest.mark.parametrize(("result", "message"), BAD_RESULTS)
def test_bad_results_name_worker_job_and_step(result, message):
    calls = []

    def policy(worker, observations):
        calls.append(worker)
        n = len(observations)
        return result(n) if len(calls) == 3 else np.zeros(n, np.int32)

    with collector(1, 6, policy_fn=policy) as c:
        with pytest.raises(ValueError, match=r"policy_fn \(worker 0, job 0, step 2\) " + message):
            c.request_episodes(1)
        assert c.request_episodes(2).lengths.tolist() == [6, 6]


def test_another_number_of_arrays_names_worker_job_and_step():
    calls = []

    def policy(worker, observations):
        calls.append(worker)
        n = len(observations)
        actions = np.zeros(n, np.int32)
        return actions if len(calls) == 3 else (actions, np.zeros(n, np.float32))

    said = r"policy_fn \(worker 0, job 0, step 2\) returned 1 arrays after having returned 2 before"
    with collector(1, 6, policy_fn=policy) as c:
        with pytest.raises(ValueError, match=said):
            c.request_episodes(1)
        assert c.request_episodes(2).log_probs.shape == (2, 6)


def test_unsigned_and_narrow_actions_are_taken():
    for dtype in (np.uint64, np.uint8, np.int8, ">i4"):
        with collector(policy_fn=lambda w, o, d=dtype: np.full(len(o), 5, d)) as c:
            assert (c.request_episodes(1).actions == 5).all()


def flatten_once_wrong(wrong):
    """obs_flatten that returns zeros [5] of float32, and `wrong` at step 3 of job 0."""
    calls = []

    def flatten(observation):
        calls.append(None)  # the first is the constructor's
        return wrong if len(calls) == 5 else np.zeros(5, np.float32)

    return flatten


def test_a_function_that_fails_on_the_constructors_observation_is_told_of_it():
    with pytest.raises(ZeroDivisionError) as raised:
        collector(1, 4, lambda o: [1 // int(o["board"].sum())])
    assert "called by the constructor with an observation of zeros" in raised.value.__notes__[0]
    with pytest.raises(ValueError, match="called by the constructor with an observation of zeros"):
        collector(1, 4, lambda o: o["board"])


def test_the_last_wrong_action_of_many_is_found():
    with collector(2, 500) as c:
        actions = np.full((300, 500), 5, np.int32)
        actions[299, 499] = 8
        with pytest.raises(ValueError, match=r"actions\[299, 499\] is 8: choose 0 to 7, or -1"):
            c.request_episodes(300, actions=actions)


BAD_OBSERVATIONS = [
    (np.zeros(6, np.float32), r"returned shape \(6,\), but \(5,\) the first time"),
    (np.zeros((1, 5), np.float32), r"returned shape \(1, 5\), but"),
    (np.float32(3), r"returned shape \(\), but"),
    (np.zeros(5), r"returned float64, but float32 the first time"),
    (np.zeros(5, np.int32), r"returned int32, but float32"),
    (np.zeros(5, complex), r"returned complex128, but float32"),
    ([[1, 2], [3]], r"returned what is no array: .*inhomogeneous"),
    (None, r"returned shape \(\)"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD_OBSERVATIONS)
def test_bad_observations_name_worker_job_and_step(wrong, message):
    with collector(1, 12, flatten_once_wrong(wrong)) as c:
        with pytest.raises(ValueError, match=r"obs_flatten \(worker 0, job 0, step 3\) " + message):
            c.request_episodes(1)
        assert c.request_episodes(1).lengths[0] == 12


def test_foreign_byte_order_is_turned():
    def flatten(observation, order):
        return np.arange(5, dtype=order) + observation["board"].sum()

    batches = []
    for order in ("<f8", ">f8"):
        with collector(1, 8, lambda o, order=order: flatten(o, order)) as c:
            batches.append(c.request_episodes(2).observations)
    assert batches[1].dtype == np.float64
    assert batches[1].dtype.isnative
    np.testing.assert_array_equal(*batches)


def test_more_episodes_than_memory_is_a_memory_error():
    with collector(1, 1 << 20) as c:
        with pytest.raises(MemoryError, match="ask for fewer or shorter episodes"):
            c.request_episodes(1 << 20)
        assert c.request_episodes(1).job_ids[0] == 0


def test_workers_that_no_memory_holds_are_a_memory_error():
    # 2,000,000 GB of episodes that workers may hold back.
    with pytest.raises(MemoryError):
        collector(1, 1 << 24, lanes_per_worker=4096, order="completion", obs="flat")
