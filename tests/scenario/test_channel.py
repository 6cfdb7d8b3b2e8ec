import math
from itertools import combinations

import numpy as np
import pytest

from fedelect.scenario import ChannelConfig
from fedelect.scenario.channel import draw_uploads, upload_probabilities


def test_one_probability_is_everybodys_and_a_list_is_each_clients_own() -> None:
    distances = np.array([0.1, 0.2, 0.3])
    assert upload_probabilities(ChannelConfig(upload_probability=0.25), distances).tolist() == [0.25] * 3
    each = ChannelConfig(upload_probability=(0.0, 0.5, 1.0))
    assert upload_probabilities(each, distances).tolist() == [0.0, 0.5, 1.0]


def test_the_derived_probability_is_the_product_of_the_three_events() -> None:
    distances = [0.1, 0.25, 0.7]
    config = ChannelConfig(
        upload_probability="derived",
        threshold_db=3.0,
        mean_snr_db=10.0,
        finish_probability=(1.0, 0.9, 0.5),
        dropout_probability=0.2,
    )
    gain = [d**-3.76 for d in distances]
    snr = [10.0 * 3 * g / sum(gain) for g in gain]
    expected = [finish * math.exp(-(10**0.3) / ratio) * 0.8 for finish, ratio in zip((1.0, 0.9, 0.5), snr, strict=True)]
    assert upload_probabilities(config, np.array(distances)) == pytest.approx(expected)


def test_a_client_at_the_server_has_a_probability_too() -> None:
    theta = upload_probabilities(ChannelConfig(upload_probability="derived"), np.array([0.0, 0.5]))
    assert ((theta >= 0) & (theta <= 1)).all()


def test_upload_luck_does_not_depend_on_who_else_is_in_the_cohort() -> None:
    theta = np.array([0.5, 0.2, 0.9, 1.0, 0.7, 0.4])
    alone = {n: draw_uploads(theta, (n,), rounds=8, seed=3, trial=2, slot=5)[:, 0] for n in range(6)}
    for cohort in [*combinations(range(6), 3), (5, 1)]:
        together = draw_uploads(theta, cohort, rounds=8, seed=3, trial=2, slot=5)
        for column, client in enumerate(cohort):
            assert np.array_equal(together[:, column], alone[client])


def test_trials_and_slots_have_luck_of_their_own_and_a_seed_repeats_it() -> None:
    theta = np.full(50, 0.5)
    everybody = tuple(range(50))

    def draw(**key: int) -> list[list[bool]]:
        drawn = draw_uploads(theta, everybody, rounds=4, **{"seed": 1, "trial": 0, "slot": 1, **key})
        return [[bool(x) for x in row] for row in drawn]

    assert draw() == draw()
    assert len({str(draw(**key)) for key in ({}, {"seed": 2}, {"trial": 1}, {"slot": 2})}) == 4


def test_uploads_arrive_as_often_as_their_probability_says() -> None:
    theta = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    drawn = draw_uploads(theta, (0, 1, 2, 3, 4), rounds=20_000, seed=1, trial=0, slot=1)
    # Five standard deviations of the mean of 20 000 fair coins.
    assert np.abs(drawn.mean(axis=0) - theta).max() < 5 * 0.5 / math.sqrt(20_000)
    assert not drawn[:, 0].any()
    assert drawn[:, 4].all()
