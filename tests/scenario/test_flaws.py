"""Who has which flaw, and what it makes of data: drawn, recorded, and clean where it says so."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.flaws import randomised, swapped

from fedelect.atlas import AtlasPlan
from fedelect.atlas.facts import strip_data
from fedelect.errors import ConfigurationError
from fedelect.scenario import (
    DataConfig,
    Dataset,
    FlawsConfig,
    Scenario,
    ScenarioConfig,
    build_scenario,
    change_scenario,
    parse_scenario,
    scenario_toml,
)
from fedelect.scenario.flawed_data import draw_swaps, feature_deviations
from fedelect.scenario.flaws import draw_members, list_kinds
from fedelect.seeds import stream

CLASSES = 5
KINDS = [field.name for field in msgspec.structs.fields(FlawsConfig)]


def dataset() -> Dataset:
    """Clusters with features of very different widths; the last one is constant."""
    rng = stream(0, "flaw data")
    centres = rng.normal(size=(CLASSES, 6)) * 3

    def draw(count: int) -> tuple[Any, Any]:
        labels = np.arange(count) % CLASSES
        inputs = (rng.normal(size=(count, 6)) + centres[labels]) * [1.0, 10.0, 0.1, 5.0, 2.0, 0.0]
        return inputs, labels

    return Dataset(*draw(600), *draw(200))


def configure(flaws: dict[str, Any] | None = None, **keys: Any) -> ScenarioConfig:
    changes: dict[str, Any] = {
        "clients": 10,
        "budget": 3,
        "data": {"iid_clients": 10, "samples": [20, 60]},
        "model": {"precision": "float64"},
        **keys,
    }
    return change_scenario(ScenarioConfig(), changes | ({} if flaws is None else {"flaws": flaws}))


def build(flaws: dict[str, Any] | None = None, *, draw: int = 0, **keys: Any) -> Scenario:
    return build_scenario(configure(flaws, **keys), dataset(), draw=draw)


def test_shares_are_drawn_without_overlap_and_lists_are_taken_as_they_are() -> None:
    scenario = build(
        {
            "random_labels": {"share": 0.3},
            "copies": {"clients": [7, 2]},
            "free_riders": {"share": 0.2},
            "failing": {"clients": [2, 9]},
        }
    )
    assert scenario.flaws["copies"] == (2, 7) and scenario.flaws["failing"] == (2, 9)
    drawn = [*scenario.flaws["random_labels"], *scenario.flaws["free_riders"]]
    assert len(drawn) == len(set(drawn)) == 5 and not {2, 7, 9} & set(drawn)
    assert np.flatnonzero(scenario.flawed).tolist() == sorted({2, 7, 9, *drawn})
    assert list(scenario.flaws) == ["random_labels", "copies", "free_riders", "failing"]


def test_the_draw_depends_on_seed_and_redraw_and_on_nothing_else() -> None:
    flaws = {"random_labels": {"share": 0.3}}
    one = build(flaws).flaws
    assert one == build(flaws, budget=5, rounds_per_slot=1).flaws
    others = [build(flaws, seed=2).flaws, build(flaws, draw=1).flaws, build(flaws, seed=3).flaws]
    assert any(other != one for other in others)
    more = build(flaws | {"failing": {"share": 0.5}}).flaws
    assert more["random_labels"] == one["random_labels"]


@given(
    shares=st.lists(st.floats(0.05, 0.5), min_size=1, max_size=4).filter(lambda shares: sum(shares) <= 1.0),
    clients=st.integers(10, 60),
)
def test_each_kind_gets_its_share_up_to_rounding_whatever_the_others_take(shares: list[float], clients: int) -> None:
    kinds = dict(zip(KINDS, shares, strict=False))
    config = change_scenario(
        ScenarioConfig(budget=1, clients=clients), {"flaws": {kind: {"share": share} for kind, share in kinds.items()}}
    )
    drawn = draw_members(list_kinds(config.flaws), clients, seed=1)
    every = [client for members in drawn.values() for client in members]
    assert len(set(every)) == len(every) <= clients
    for kind, share in kinds.items():
        most = 1.0 if len(every) == clients else 0.5  # where all are taken, one may get one less
        assert drawn[kind] and abs(len(drawn[kind]) - share * clients) <= most + 1e-9


@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_random_labels_are_those_of_the_reference(rate: float) -> None:
    clean, flawed = build(), build({"random_labels": {"clients": [1, 4], "rate": rate, "clean_test": False}})
    for client in (1, 4):
        for name, ours, theirs in (
            ("train", flawed.train_labels, clean.train_labels),
            ("test", flawed.test_labels, clean.test_labels),
        ):
            rng = stream(1, "flaws", 0, "random_labels", client, name)
            assert ours[client].tolist() == randomised(theirs[client].tolist(), CLASSES, rate, rng)
            assert (ours[client] != theirs[client]).any()
    for client in (0, 2, 3, 5, 6, 7, 8, 9):
        assert np.array_equal(flawed.train_labels[client], clean.train_labels[client])


@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_swapped_labels_are_those_of_the_reference(rate: float) -> None:
    clean, flawed = build(), build({"swapped_labels": {"clients": [0, 3], "rate": rate}})
    order = stream(1, "flaws", 0, "swapped_labels", "pairs").permutation(CLASSES).tolist()
    pairs = [(order[0], order[1]), (order[2], order[3])]
    for client in (0, 3):
        rng = stream(1, "flaws", 0, "swapped_labels", client, "train")
        expected = swapped(clean.train_labels[client].tolist(), pairs, rate, rng)
        assert flawed.train_labels[client].tolist() == expected
        assert np.array_equal(flawed.test_labels[client], clean.test_labels[client])


def test_noise_is_measured_in_deviations_of_the_feature() -> None:
    clean, noisy = build(), build({"noisy_features": {"share": 1.0, "noise": 0.5}})
    change = np.concatenate(noisy.train_inputs) - np.concatenate(clean.train_inputs)
    expected = 0.5 * dataset().inputs.std(axis=0)
    assert np.allclose(change.std(axis=0), expected, rtol=0.15)
    assert not change[:, 5].any()  # a constant feature stays
    assert np.array_equal(np.concatenate(noisy.test_inputs), np.concatenate(clean.test_inputs))
    assert build({"noisy_features": {"share": 1.0}}, model={"precision": "float32"}).train_inputs[0].dtype == np.float32


def test_deviations_are_those_of_numpy_also_in_blocks_and_for_whole_numbers() -> None:
    inputs = stream(1, "wide").integers(0, 256, (9001, 3)).astype(np.uint8)
    assert np.allclose(feature_deviations(inputs), inputs.std(axis=0, dtype=np.float64), rtol=1e-12)


def test_copies_hold_the_training_share_of_an_unflawed_client_without_a_copy_in_memory() -> None:
    scenario = build({"copies": {"share": 0.4}, "random_labels": {"share": 0.3}})
    for client in scenario.flaws["copies"]:
        originals = [
            other
            for other in range(10)
            if other != client and scenario.train_inputs[client] is scenario.train_inputs[other]
        ]
        honest = [other for other in originals if not scenario.flawed[other]]
        assert len(honest) == 1
        assert scenario.train_labels[client] is scenario.train_labels[honest[0]]
        assert scenario.sizes[client] == scenario.sizes[honest[0]] == len(scenario.train_labels[client])
        assert scenario.test_inputs[client] is not scenario.test_inputs[honest[0]]
    with pytest.raises(ConfigurationError, match="every client has a flaw"):
        build({"copies": {"share": 0.5}, "failing": {"share": 0.5}})


@pytest.mark.parametrize("kind", ["random_labels", "swapped_labels", "noisy_features"])
@pytest.mark.parametrize("clean_test", [True, False])
def test_clean_test_shares_stay_clean_and_are_held_once_where_they_are_the_clients_own(
    kind: str, clean_test: bool
) -> None:
    clean, flawed = build(), build({kind: {"share": 0.3, "clean_test": clean_test}})
    for client in range(10):
        assert np.array_equal(flawed.clean_test_inputs[client], clean.test_inputs[client])
        assert np.array_equal(flawed.clean_test_labels[client], clean.test_labels[client])
        part = "inputs" if kind == "noisy_features" else "labels"
        own = getattr(flawed, f"test_{part}")[client] is getattr(flawed, f"clean_test_{part}")[client]
        assert own == (clean_test or not flawed.flawed[client])
    assert np.array_equal(flawed.global_test_inputs, clean.global_test_inputs)
    assert np.array_equal(flawed.global_test_labels, clean.global_test_labels)


def test_flawed_arrays_are_read_only_too() -> None:
    scenario = build({"random_labels": {"share": 1.0, "clean_test": False}})
    for array in (scenario.train_labels[0], scenario.test_labels[0], scenario.clean_test_labels[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@given(classes=st.integers(2, 12), count=st.integers(0, 12), seed=st.integers(0, 5))
def test_swapping_twice_changes_nothing(classes: int, count: int, seed: int) -> None:
    partner = draw_swaps(classes, stream(seed, "swaps"), count)
    assert np.array_equal(partner[partner], np.arange(classes))
    assert np.count_nonzero(partner != np.arange(classes)) == min(count, classes) // 2 * 2


@pytest.mark.parametrize(
    ("flaws", "message"),
    [
        ({"random_labels": {}}, "flaws.random_labels: got neither share nor clients"),
        ({"random_labels": {"share": 0.2, "clients": [1]}}, "flaws.random_labels: got both share and clients"),
        ({"random_labels": {"share": 1.2}}, r"flaws.random_labels.share: got 1.2; allowed: a number > 0, at most 1"),
        ({"random_labels": {"share": 0.0}}, r"flaws.random_labels.share: got 0.0; allowed"),
        ({"random_labels": {"share": 0.04}}, "which of 10 clients is nobody"),
        ({"failing": {"share": 0.5, "rate": 1.5}}, "flaws.failing.rate: got 1.5; allowed: a number > 0, at most 1"),
        ({"copies": {"clients": [3, 10]}}, r"flaws.copies.clients: got the unknown client 10; .* 0\.\.9"),
        ({"copies": {"clients": [-1]}}, "unknown client -1"),
        ({"copies": {"clients": [3, 3]}}, r"flaws.copies.clients: got \[3, 3\]; allowed: one or more different"),
        ({"copies": {"clients": []}}, r"got \[\]; allowed: one or more different"),
        ({"copies": {"clients": ["ann"]}}, r"flaws.copies.clients\[0\]: got 'ann'; allowed: a list of different"),
        ({"copies": {"share": 0.6}, "failing": {"share": 0.5}}, r"copies.share = 0.6 .*failing.share = 0.5 are 1.1 of"),
        ({"copies": {"share": 0.9}, "failing": {"clients": [0, 1]}}, "2 of 10 clients in lists are 1.1 of the clients"),
        (
            {"random_label": {"share": 0.1}},
            r'flaws.random_label: got an unknown key \(did you mean "random_labels"\?\)',
        ),
        ({"scaled_updates": {"share": 0.1, "factor": 2}}, "flaws.scaled_updates.factor: got an unknown key"),
        ({"copies": 3}, r"flaws.copies: got 3; allowed: a table \[flaws.copies\] of keys share, clients"),
        ({"noisy_features": {"share": 0.1, "noise": float("nan")}}, "flaws.noisy_features.noise: got nan"),
    ],
)
def test_impossible_flaws_are_refused(flaws: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        configure(flaws)


def test_shares_that_are_one_together_take_everybody() -> None:
    scenario = build({"random_labels": {"share": 0.55}, "failing": {"share": 0.45}})
    assert scenario.flawed.all() and len(scenario.flaws["random_labels"]) == len(scenario.flaws["failing"]) == 5


def test_shares_that_round_to_too_many_leave_nobody_out() -> None:
    config = change_scenario(
        ScenarioConfig(budget=1, clients=5, data=DataConfig(iid_clients=0)),
        {"flaws": {"random_labels": {"share": 0.5}, "failing": {"share": 0.3}, "copies": {"share": 0.2}}},
    )
    drawn = draw_members(list_kinds(config.flaws), 5, seed=1)
    assert {kind: len(members) for kind, members in drawn.items()} == {"random_labels": 2, "copies": 1, "failing": 2}


def test_flaws_are_written_as_tables_and_read_back() -> None:
    config = configure({kind: {"share": 0.1} for kind in KINDS})
    text = scenario_toml(config)
    assert parse_scenario(text) == config
    assert "[flaws.random_labels]" in text.splitlines() and "share = 0.1" in text.splitlines()
    listed = configure({"failing": {"clients": [1, 2], "rate": 0.25}})
    assert parse_scenario(scenario_toml(listed)) == listed
    plain = scenario_toml(ScenarioConfig())
    assert "# [flaws.random_labels]" in plain.splitlines() and parse_scenario(plain) == ScenarioConfig()


def test_an_unset_table_is_no_part_of_what_is_recorded() -> None:
    assert not {"flaws", "hard", "drift"} & msgspec.to_builtins(ScenarioConfig()).keys()


def test_an_atlas_knows_who_is_flawed_and_refuses_worlds_that_change() -> None:
    scenario = build({"random_labels": {"share": 0.3}}, hard={"share": 0.2})
    assert strip_data(scenario).flaws == scenario.flaws
    with pytest.raises(ConfigurationError, match="drift: got a table; an atlas"):
        AtlasPlan(config=configure(drift={"slot": 3}))
    with pytest.raises(ConfigurationError, match=r"flaws.failing: got a table; who fails is drawn anew"):
        AtlasPlan(config=configure({"failing": {"share": 0.3}}))
