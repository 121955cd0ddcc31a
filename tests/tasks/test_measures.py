import maze_oracle
import numpy as np
import pytest

from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maps.texts import from_text
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.measures import SPL_RANGES, Scores, evaluate, one_start, start_states
from hvin_jax.tasks.mechanisms import MECHANISMS
from hvin_jax.tasks.shortest_paths import label_mazes


def _random_data(name, n=40, size=(7, 8), seed=0):
    mechanism = MECHANISMS[name]
    maze, goal = maze_oracle.random_maps(n, size, seed=seed)
    goal[:, 2] %= mechanism.num_orientations
    return label_mazes(maze, goal, np.random.default_rng(seed), mechanism=mechanism)


def _faulty(data, share=0.1):
    rng = np.random.default_rng(9)
    noise = rng.integers(0, data.mechanism.num_actions, data.label.shape)
    return np.where(rng.random(data.label.shape) < share, noise, data.label)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_labels_are_perfect(name):
    data = _random_data(name)
    scores = evaluate(data.label, data)
    assert scores.success_rate == scores.optimality_rate == 1
    assert scores.percent_optimal == 1
    assert scores.prediction_error == 0
    # What is cut off from the goal is a failure in the baseline's count.
    free = (data.maze != 0)[..., None] & np.ones_like(data.spl, dtype=bool)
    reachable = [(s[f] != UNREACHABLE).mean() for s, f in zip(data.spl, free, strict=True)]
    assert scores.percent_success == pytest.approx(np.mean(reachable))
    assert scores.percent_success < 1


def test_a_corridor_by_hand():
    """G.... with the policy "west", except that the fourth cell goes east and the last is odd."""
    own = from_text("G.....")
    mechanism = MECHANISMS["news"]
    data = label_mazes(
        own.maze[None], np.array([[0, 0, 0]]), np.random.default_rng(0), mechanism=mechanism
    )
    north, east, west = 0, 1, 2
    policy = np.array([west, west, west, east, west, north]).reshape(1, 1, 6, 1)
    scores = evaluate(policy, data)
    assert scores.starts.tolist() == [0, 1, 1, 1, 1, 1]
    assert scores.successes.tolist() == [0, 1, 1, 0, 0, 0]
    assert scores.in_range(0, 2).success_rate == 1
    assert scores.in_range(2, 5).success_rate == 0
    assert scores.in_range(1, 3).success_rate == 0.5
    assert scores.in_range(1, 3).count == 2
    assert scores.success_rate == scores.optimality_rate == 0.4
    assert scores.percent_optimal == scores.percent_success == 0.5  # the goal is included
    # At the goal, west, north and south stay: any of them may be the label.
    assert scores.errors == 2 + (data.label[0, 0, 0, 0] != west)
    assert np.isnan(scores.in_range(5, 9).success_rate)
    assert np.isnan(scores.curve()[0])
    assert scores.curve()[1:].tolist() == [1, 1, 0, 0, 0]


def test_detours_succeed_without_being_optimal():
    own = from_text("...\n..G")
    mechanism = MECHANISMS["news"]
    data = label_mazes(
        own.maze[None], np.array([[1, 2, 0]]), np.random.default_rng(0), mechanism=mechanism
    )
    north, east, _, south = range(4)
    # From (1, 1) north, east, south: 3 actions instead of 1.
    policy = np.array([[east, east, south], [north, north, north]]).reshape(1, 2, 3, 1)
    scores = evaluate(policy, data)
    assert scores.success_rate == 1
    assert scores.optimality_rate == 3 / 5  # (1, 0) takes 4 actions instead of 2
    limited = evaluate(policy, data, step_limit=3)
    assert limited.success_rate == 4 / 5
    assert limited.percent_success == 5 / 6
    assert evaluate(policy, data, step_limit=2).success_rate == 2 / 5


def test_scores_of_parts_add_up():
    data = _random_data("diffdrive", n=90)
    policy = _faulty(data)
    whole = evaluate(policy, data)
    parts = [evaluate(policy[i : i + 40], data[i : i + 40]) for i in range(0, 90, 40)]
    total = sum(parts, Scores.none())
    for name in ("starts", "successes", "optimal"):
        np.testing.assert_array_equal(getattr(total, name), getattr(whole, name))
    for name in ("percent_optimal", "percent_success", "prediction_error"):
        assert getattr(total, name) == pytest.approx(getattr(whole, name))
    assert total.mazes == 90
    assert np.isnan(Scores.none().success_rate)
    nothing = evaluate(policy[:0], data[:0], one_start_seed=0)
    assert nothing.mazes == nothing.starts.sum() == 0


def test_standard_errors_are_those_of_resampled_mazes():
    data = _random_data("diffdrive", n=300)
    policy = _faulty(data)
    whole = evaluate(policy, data)
    each = [evaluate(policy[[i]], data[[i]]) for i in range(len(data))]
    middle = int(np.flatnonzero(whole.starts)[-1]) // 2
    drawn = np.random.default_rng(0).integers(0, len(data), (2000, len(data)))
    for low, high in ((0, middle), (middle, 2 * middle)):
        row = whole.in_range(low, high)
        rows = [x.in_range(low, high) for x in each]
        starts = np.array([x.count for x in rows])
        assert row.mazes == (starts > 0).sum()
        for name in ("success", "optimality"):
            hits = np.nan_to_num([getattr(x, f"{name}_rate") for x in rows]) * starts
            again = hits[drawn].sum(1) / starts[drawn].sum(1)
            assert getattr(row, f"{name}_error") == pytest.approx(again.std(), rel=0.1)
    assert np.isnan(each[0].in_range(0, middle).success_error)


@pytest.mark.parametrize("name", MECHANISMS)
def test_against_counting_one_by_one(name):
    """SR, OR and the baseline's measures, start by start in plain Python."""
    data = _random_data(name, n=12, size=(5, 6))
    policy = _faulty(data)
    scores = evaluate(policy, data)
    starts = successes = optimal = wrong = 0
    percent_optimal, percent_success = [], []
    for index, maze in enumerate(data.maze):
        goal = tuple(data.goal[index].tolist())
        distance = maze_oracle.distances(name, maze, goal)
        opened = suc = opt = 0
        for state in maze_oracle.states(name, maze):
            wrong += policy[(index, *state)] != data.label[(index, *state)]
            if not maze[state[:2]]:
                continue
            length = maze_oracle.walk(name, maze, goal, policy[index], state)
            opened += 1
            suc += length != UNREACHABLE
            opt += length == distance[state]
            if 1 <= distance[state] < UNREACHABLE:
                starts += 1
                successes += length != UNREACHABLE
                optimal += length == distance[state]
        percent_optimal.append(opt / opened)
        percent_success.append(suc / opened)
    assert scores.success_rate == pytest.approx(successes / starts)
    assert scores.optimality_rate == pytest.approx(optimal / starts)
    assert scores.percent_optimal == pytest.approx(np.mean(percent_optimal))
    assert scores.percent_success == pytest.approx(np.mean(percent_success))
    assert scores.prediction_error == pytest.approx(wrong / policy.size)
    assert 0 < successes < starts


def test_one_start_per_maze():
    data = _random_data("diffdrive", n=50)
    scores = evaluate(_faulty(data), data, one_start_seed=3)
    assert scores.starts.sum() == 50
    np.testing.assert_array_equal(
        scores.starts, evaluate(data.label, data, one_start_seed=3).starts
    )
    assert scores.percent_optimal == evaluate(_faulty(data), data).percent_optimal
    starts = start_states(data.spl)
    chosen = one_start(starts, seed=3)
    assert (chosen <= starts).all()
    assert (chosen.sum(axis=(1, 2, 3)) == 1).all()
    assert (chosen != one_start(starts, seed=4)).any()
    # All starts are as likely, and a maze without any has none.
    three = np.zeros((9000, 1, 5, 1), dtype=bool)
    three[:-1, 0, [0, 2, 3]] = True
    counts = one_start(three, seed=0).sum(axis=(0, 1, 3))
    assert counts.sum() == 8999
    assert counts[[0, 2, 3]] / 8999 == pytest.approx(1 / 3, abs=0.025)


@pytest.mark.parametrize(("side", "n", "rate"), [(15, 5000, 0.0057), (25, 3000, 0.0025)])
def test_always_forward_scores_what_collapsed_networks_score(side, n, rate):
    """METHOD.md's check of a whole pipeline; the spread of so many mazes is about 0.0001."""
    mazes = make_mazes(
        law=MazeLaw((side, side)),
        mechanism=MECHANISMS["diffdrive"],
        train=0,
        valid=0,
        test=n,
        seed=1,
    )
    scores = evaluate(np.zeros_like(mazes.test.label), mazes.test)
    first, *others = scores.by_range(SPL_RANGES[side])
    assert first.success_rate == first.optimality_rate == pytest.approx(rate, abs=0.0004)
    assert first.count > 200 * n
    assert [score.success_rate for score in others] == [0, 0]
    # A random label is "forward" in a third of the cells that are walls.
    walls = mazes.test.label[mazes.test.maze == 0]
    assert np.bincount(walls.ravel()) / walls.size == pytest.approx(1 / 3, abs=0.005)


def test_impossible_limits_are_refused():
    data = _random_data("news", n=2)
    with pytest.raises(ValueError, match="step_limit is 0, expected 1 or more"):
        evaluate(data.label, data, step_limit=0)
