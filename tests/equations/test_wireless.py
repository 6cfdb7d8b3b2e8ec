import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedelect.equations.wireless import NEAREST_KM, fading_success_probability, path_loss_db, received_snr


def test_path_loss_is_the_papers_at_one_kilometre_and_a_tenth() -> None:
    assert path_loss_db(np.array([1.0, 0.1])) == pytest.approx([128.1, 128.1 - 37.6])


def test_a_client_at_the_server_counts_as_one_metre_away() -> None:
    assert path_loss_db(np.array([0.0])) == path_loss_db(np.array([NEAREST_KM]))


@given(
    distances=st.lists(st.floats(0.0, 2.0), min_size=1, max_size=30),
    power=st.floats(-50, 50),
    mean_db=st.floats(-20, 60),
)
def test_the_mean_snr_over_clients_is_the_one_asked_for(distances: list[float], power: float, mean_db: float) -> None:
    snr = received_snr(np.array(distances), transmit_power_dbm=power, mean_snr_db=mean_db)
    assert snr.mean() == pytest.approx(10 ** (mean_db / 10), rel=1e-9)


def test_snr_falls_with_the_power_of_distance_in_the_path_loss() -> None:
    near, far = received_snr(np.array([0.2, 0.4]), transmit_power_dbm=20.0, mean_snr_db=20.0)
    assert near / far == pytest.approx(2**3.76)


def test_the_snr_ratio_is_received_power_over_noise_power_written_out() -> None:
    distances = [0.1, 0.3, 0.6]
    received_mw = [10 ** ((20.0 - (128.1 + 37.6 * math.log10(d))) / 10) for d in distances]
    noise_mw = sum(received_mw) / 3 / 100.0
    snr = received_snr(np.array(distances), transmit_power_dbm=20.0, mean_snr_db=20.0)
    assert snr == pytest.approx([power / noise_mw for power in received_mw])


def test_fading_lets_through_exp_of_minus_threshold_over_snr() -> None:
    assert fading_success_probability(np.array([100.0, 1.0]), threshold_db=0.0) == pytest.approx(
        [math.exp(-0.01), math.exp(-1)]
    )
    assert fading_success_probability(np.array([100.0]), threshold_db=10.0) == pytest.approx([math.exp(-0.1)])


def test_the_largest_decibels_a_scenario_may_hold_give_probabilities_and_no_warning() -> None:
    for power, mean, threshold in product((-300.0, 300.0), repeat=3):
        snr = received_snr(np.array([0.0, 1.0, 1e3]), transmit_power_dbm=power, mean_snr_db=mean)
        success = fading_success_probability(snr, threshold_db=threshold)
        assert ((success >= 0) & (success <= 1)).all()
