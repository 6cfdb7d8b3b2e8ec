"""Worlds in which nobody is at fault: honest data that is hard, and classes that trade names in mid-run."""

from typing import Any

import numpy as np
import pytest
from tests.scenario.test_flaws import CLASSES, build, configure, dataset

from fedelect.errors import ConfigurationError
from fedelect.scenario import Scenario
from fedelect.scenario.drift import DriftConfig, draw_drift
from fedelect.scenario.hard import measure_difficulty


def rows(inputs: Any) -> list[tuple[float, ...]]:
    return [tuple(row) for row in inputs.tolist()]


def test_difficulty_is_the_distance_to_the_own_mean_less_that_to_the_nearest_other() -> None:
    data = dataset()
    means = [data.inputs[data.labels == label].mean(axis=0) for label in range(CLASSES)]
    measured = measure_difficulty(data)
    for inputs, labels, values in (
        (data.inputs, data.labels, measured.train),
        (data.test_inputs, data.test_labels, measured.test),
    ):
        for sample, label, value in zip(inputs, labels.tolist(), values.tolist(), strict=True):
            distances = [float(((sample - mean) ** 2).sum()) for mean in means]
            assert value == pytest.approx(distances.pop(label) - min(distances), abs=1e-6)


@pytest.mark.parametrize("test_share", ["global", "own"])
@pytest.mark.parametrize("skew", [{"iid_clients": 10}, {"iid_clients": 0, "skew": "labels"}])
def test_hard_clients_hold_the_hardest_samples_of_their_classes(test_share: str, skew: dict[str, Any]) -> None:
    keys: Any = {"data": {"samples": [20, 60], "test_share": test_share, **skew}}
    plain, scenario = build(**keys), build(hard={"clients": [2, 7]}, **keys)
    data = dataset()
    difficulty = measure_difficulty(data)
    for own, before, inputs, values, all_labels in (
        (scenario.train_labels, plain.train_labels, scenario.train_inputs, difficulty.train, data.labels),
        (scenario.test_labels, plain.test_labels, scenario.test_inputs, difficulty.test, data.test_labels),
    ):
        where = data.inputs if values is difficulty.train else data.test_inputs
        hardness = dict(zip(rows(where), values.tolist(), strict=True))
        counts = np.zeros(CLASSES, dtype=int)
        held: list[tuple[int, float]] = []
        for client in (2, 7):
            assert sorted(own[client].tolist()) == sorted(before[client].tolist())  # as many of each class
            counts += np.bincount(own[client], minlength=CLASSES)
            held += zip(own[client].tolist(), (hardness[row] for row in rows(inputs[client])), strict=True)
        for label in range(CLASSES):
            hardest = np.sort(values[all_labels == label])[::-1][: counts[label]]
            assert sorted((value for own_label, value in held if own_label == label), reverse=True) == hardest.tolist()
    assert scenario.groups["hard"] == (2, 7) and not scenario.flawed.any()
    assert not {2, 7} & {client for name, members in scenario.groups.items() if name != "hard" for client in members}


def test_no_training_sample_goes_to_two_clients_and_the_test_set_is_dealt_once() -> None:
    scenario = build(hard={"share": 0.3})
    held = [row for inputs in scenario.train_inputs for row in rows(inputs)]
    assert len(held) == len(set(held))
    assert sorted(row for inputs in scenario.test_inputs for row in rows(inputs)) == sorted(rows(dataset().test_inputs))


def test_hard_clients_are_drawn_among_those_without_a_flaw() -> None:
    scenario = build({"random_labels": {"share": 0.5}}, hard={"share": 0.5})
    assert len(scenario.groups["hard"]) == 5 and not scenario.flawed[list(scenario.groups["hard"])].any()
    with pytest.raises(ConfigurationError, match=r"hard.share = 0.6 are 1.1 of the clients"):
        configure({"random_labels": {"share": 0.5}}, hard={"share": 0.6})
    with pytest.raises(ConfigurationError, match="hard: got neither share nor clients"):
        configure(hard={})


def drifting(**keys: Any) -> Scenario:
    return build(drift={"slot": 4, "share": 0.5}, **keys)


def test_classes_trade_names_for_everybody_from_the_slot_on() -> None:
    before, names = drifting(), draw_drift(DriftConfig(slot=4, share=0.5), CLASSES, seed=1)
    after = before.at(4)
    assert before.at(3) is before and after is not before and after is before.at(99) and after.at(1) is after
    assert np.count_nonzero(names != np.arange(CLASSES)) == 2
    for part in ("train", "test", "clean_test"):
        for client in range(10):
            old, new = getattr(before, f"{part}_labels")[client], getattr(after, f"{part}_labels")[client]
            assert np.array_equal(names[old], new)
            assert getattr(before, f"{part}_inputs")[client] is getattr(after, f"{part}_inputs")[client]
    assert np.array_equal(names[before.global_test_labels], after.global_test_labels)
    assert after.sizes is before.sizes and after.flaws == before.flaws
    with pytest.raises(ValueError, match="read-only"):
        after.train_labels[0][0] = 0


def test_before_the_drift_the_world_is_the_one_without_it() -> None:
    for one, other in zip(drifting().train_labels, build().train_labels, strict=True):
        assert np.array_equal(one, other)


def test_flaws_stay_what_they_were_after_the_drift() -> None:
    flaws = {"random_labels": {"share": 0.3, "rate": 0.5}, "noisy_features": {"share": 0.2, "clean_test": False}}
    before = drifting(flaws=flaws)
    after, names = before.at(4), draw_drift(DriftConfig(slot=4, share=0.5), CLASSES, seed=1)
    clean = build()
    for client in before.flaws["random_labels"]:
        replaced = before.train_labels[client] != clean.train_labels[client]
        assert np.array_equal(after.train_labels[client][replaced], before.train_labels[client][replaced])
    for client in before.flaws["noisy_features"]:
        assert before.train_inputs[client] is after.train_inputs[client]
        assert np.array_equal(names[before.train_labels[client]], after.train_labels[client])


@pytest.mark.parametrize(("share", "changed"), [(0.01, 2), (0.3, 2), (0.4, 4), (1.0, 10)])
def test_an_even_number_of_classes_changes_and_at_least_two(share: float, changed: int) -> None:
    names = draw_drift(DriftConfig(slot=1, share=share), 10, seed=3)
    assert np.count_nonzero(names != np.arange(10)) == changed


def test_an_impossible_drift_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"drift.slot: got 0; allowed: a whole number >= 1"):
        configure(drift={"slot": 0})
    with pytest.raises(ConfigurationError, match=r"drift.share: got 1.5"):
        configure(drift={"share": 1.5})
