"""What crosses between stages is checked where it is made."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect import Feedback
from fedelect.errors import BudgetError, ConfigurationError, FeedbackError
from fedelect.vocabulary import UPDATE_SIZE, as_cohort, as_int, check_budget, exact_sum, mean_present

NAN = float("nan")


@pytest.mark.parametrize(
    ("opinions", "says"),
    [
        ([0.5, 1.01], "client 1 has"),
        ([-0.1, 0.5], "client 0 has"),
        ([NAN, NAN, 2.0], "client 2 has"),
        ([0.5, float("inf")], "client 1 has"),
        ([[0.5, 0.5]], "one dimension"),
        (["good", "bad"], "one number for each client"),
    ],
)
def test_opinions_outside_the_unit_interval_are_refused_by_client(opinions: list[float], says: str) -> None:
    with pytest.raises(FeedbackError, match=says):
        Feedback(opinions=opinions)


@pytest.mark.parametrize("beliefs", [[-1.0], [float("inf")]])
def test_beliefs_must_lie_in_a_sensible_range(beliefs: list[float]) -> None:
    with pytest.raises(FeedbackError, match="beliefs must be in"):
        Feedback(beliefs=beliefs)


@pytest.mark.parametrize("noise", [-0.1, NAN, float("inf")])
def test_reward_noise_must_be_a_standard_deviation(noise: float) -> None:
    with pytest.raises(FeedbackError, match="reward_noise"):
        Feedback(reward=0.5, reward_noise=noise)


def test_a_reward_that_is_no_number_is_refused() -> None:
    with pytest.raises(FeedbackError, match="reward must be a number within"):
        Feedback(reward=NAN)


@pytest.mark.parametrize("name", ["reward", "reward_noise"])
@pytest.mark.parametrize("value", ["much", 1e300, [0.5]])
def test_what_is_no_sensible_number_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(FeedbackError, match=name):
        Feedback(**{name: value})  # type: ignore[arg-type]


def test_whole_numbers_are_plain_and_nothing_else_counts_as_one() -> None:
    assert type(as_int("seed", np.int64(7))) is int
    for value in (1.5, "3", None, True):
        with pytest.raises(ConfigurationError, match="seed must be a whole number"):
            as_int("seed", value)


def test_a_noisy_reward_may_leave_the_unit_interval() -> None:
    assert Feedback(reward=1.3, reward_noise=0.2).reward == 1.3


def test_missing_opinions_count_neither_as_zero_nor_at_all() -> None:
    assert Feedback(opinions=[0.5, NAN, 0.7]).reward == pytest.approx(0.6, abs=1e-16)
    assert Feedback(opinions=[NAN, NAN]).reward is None
    assert Feedback(opinions=[]).reward is None


def test_a_given_reward_wins_over_the_mean() -> None:
    assert Feedback(opinions=[0.0, 0.0], reward=0.25).reward == 0.25


def test_feedback_is_a_copy_that_cannot_be_changed() -> None:
    opinions = np.array([0.1, 0.2])
    feedback = Feedback(opinions=opinions)
    opinions[0] = 0.9
    assert feedback.opinions is not None and feedback.opinions[0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        feedback.opinions[0] = 0.9


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60))
def test_the_mean_is_the_exact_sum_rounded_once_over_the_count(values: list[float]) -> None:
    assert mean_present(np.array(values)) == float(sum(map(Fraction, values))) / len(values)


@given(st.lists(st.floats(2**-9, 1.0), min_size=1, max_size=40))
def test_many_values_are_summed_as_exactly_as_few(values: list[float]) -> None:
    many = np.resize(np.array(values), 5000)
    assert exact_sum(many) == math.fsum(many.tolist())


def test_a_missing_value_among_many_is_noticed() -> None:
    many = np.full(5000, 0.25)
    many[4321] = NAN
    assert math.isnan(exact_sum(many))
    assert mean_present(many) == 0.25


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_mean_does_not_depend_on_the_order(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert mean_present(np.array(values)) == mean_present(np.array(shuffled))


def test_the_mean_of_many_blocks_is_exact_too() -> None:
    values = np.random.default_rng(3).random(50_000)
    assert mean_present(values) == float(sum(map(Fraction, values.tolist()))) / values.size


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([0, 0, 1], "twice"),
        ([0, 5], "outside 0..4"),
        ([-1], "outside"),
        (["x"], "client numbers"),
        ([0.9], "client numbers"),
        ("01", "client numbers"),
        (3, "client numbers"),
    ],
)
def test_a_cohort_is_made_of_distinct_clients(members: list[int], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        as_cohort(members, clients=5)


def test_a_cohort_is_sorted() -> None:
    assert as_cohort([3, 1, 2], clients=5) == (1, 2, 3)


@pytest.mark.parametrize(("clients", "budget"), [(5, 6), (5, 0), (0, 0), (5, -1)])
def test_a_budget_must_fit_the_clients(clients: int, budget: int) -> None:
    with pytest.raises(BudgetError):
        check_budget(clients, budget)


def test_extra_signals_are_checked_copied_and_listed() -> None:
    seconds = np.array([1.0, np.nan])
    feedback = Feedback(opinions=[0.5, 0.6], seconds=seconds, channel_db=[-3.0, np.nan])
    seconds[:] = 9.0
    assert feedback.seconds is not None and feedback.seconds[0] == 1.0 and not feedback.seconds.flags.writeable
    assert list(feedback.per_client()) == ["opinions", "seconds", "channel_db"]
    with pytest.raises(FeedbackError, match="loss must be in"):
        Feedback(loss=[-1.0, 0.0])
    with pytest.raises(TypeError, match="takes no 'losses'; extra signals are loss, "):
        Feedback(losses=[1.0])


def test_contributions_may_be_negative() -> None:
    feedback = Feedback(contributions=[-0.25, np.nan, 2.0])
    assert feedback.contributions is not None and feedback.contributions[0] == -0.25
    assert list(feedback.per_client()) == ["contributions"]


def test_updates_are_rows_of_64_numbers_copied_and_frozen() -> None:
    rows = np.zeros((3, UPDATE_SIZE))
    rows[1] = np.nan  # this client uploaded nothing
    feedback = Feedback(updates=rows)
    rows[:] = 5.0
    assert feedback.updates is not None and feedback.updates[0, 0] == 0.0 and np.isnan(feedback.updates[1]).all()
    assert not feedback.updates.flags.writeable
    assert feedback.per_client() == {}  # it is not (N,)


@pytest.mark.parametrize(
    ("updates", "says"),
    [
        (np.zeros((3, 63)), r"shape \(N, 64\), got \(3, 63\)"),
        (np.zeros(64), r"shape \(N, 64\), got \(64,\)"),
        (np.full((2, 64), 2e9), "within ±1e.09; that of client 0"),
        (np.array([[0.0] * 64, [np.inf] * 64]), "that of client 1"),
        (np.array([[0.0] * 64, [np.nan] + [0.0] * 63]), "client 1 is nan in part"),
        ("no numbers", "a row of numbers for each client, got str"),
    ],
)
def test_updates_that_are_no_rows_are_refused(updates: object, says: str) -> None:
    with pytest.raises(FeedbackError, match=says):
        Feedback(updates=updates)  # type: ignore[arg-type]
