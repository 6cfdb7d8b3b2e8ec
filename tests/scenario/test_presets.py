import numpy as np
import pytest
from tests.worlds import digits

from fedelect.equations.scores import linear_scores
from fedelect.errors import ConfigurationError
from fedelect.federation import Job, StackedEngine
from fedelect.scenario import PRESETS, Scenario, build_scenario, parse_scenario, preset, scenario_toml
from fedelect.seeds import stream
from fedelect.vocabulary import Ints


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_prints_as_toml_that_parses_back_to_it(name: str) -> None:
    assert parse_scenario(scenario_toml(preset(name))) == preset(name)
    assert preset(name).name == name


def test_the_digits_preset_has_the_papers_clients_at_a_fraction_of_the_work() -> None:
    small, paper = preset("digits"), preset("paper")
    assert (small.clients, small.budget, small.data.iid_clients) == (20, 5, 5)
    assert small.data.source == "digits"
    assert small.data.samples[1] < paper.data.samples[0]


def test_an_unknown_preset_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match="'cifar'; allowed: digits, paper"):
        preset("cifar")


USERS = [name for name in PRESETS if name not in ("digits", "paper")]


@pytest.mark.parametrize("name", USERS)
def test_the_worlds_of_users_are_warm_with_one_round_in_a_slot_and_skewed_data(name: str) -> None:
    config = preset(name)
    assert (config.start, config.rounds_per_slot) == ("warm", 1)
    assert (config.data.skew, config.data.alpha, config.data.iid_clients) == ("dirichlet", 0.3, 0)


@pytest.mark.parametrize(
    ("name", "clients", "budget", "source", "model"),
    [
        ("users-small", 30, 5, "digits", "softmax"),
        ("users-hard", 30, 5, "digits", "softmax"),
        ("fashion-100", 100, 10, "fashion-mnist", "mlp"),
        ("fashion-flawed", 100, 10, "fashion-mnist", "mlp"),
        ("fashion-1000", 1000, 20, "fashion-mnist", "mlp"),
    ],
)
def test_a_users_preset_has_the_size_that_its_name_says(
    name: str, clients: int, budget: int, source: str, model: str
) -> None:
    config = preset(name)
    assert (config.clients, config.budget, config.data.source, config.model.kind) == (clients, budget, source, model)


def test_the_small_presets_are_flawed_in_part_and_learn_by_random_selection_all_the_same() -> None:
    scenario = build_scenario(preset("users-small"), digits())
    assert {kind: len(clients) for kind, clients in scenario.flaws.items()} == {
        "random_labels": 6,
        "flipped_updates": 3,
    }
    hard = build_scenario(preset("users-hard"), digits())
    assert len(hard.groups["hard"]) == 6 and np.count_nonzero(hard.flawed) == 6
    assert not hard.flawed[list(hard.groups["hard"])].any()
    honest = np.flatnonzero(~scenario.flawed)
    final = [reach(scenario, pool, slots=40) for pool in (honest, np.arange(30))]
    assert final[0] > 0.88 and final[0] > final[1] + 0.02  # flaws cost something


def reach(scenario: Scenario, pool: Ints, *, slots: int) -> float:
    """Accuracy on the global test set after cohorts drawn at random from the pool."""
    rng, engine, model = stream(1, "cohorts"), StackedEngine(compiled=False), None
    for slot in range(1, slots + 1):
        cohort = tuple(sorted(rng.choice(pool, scenario.budget, replace=False).tolist()))
        (training,) = engine.train(scenario, [Job(cohort=cohort, start=model, seed=1, slot=slot)])
        model = training.model
    assert model is not None
    right = linear_scores(model, scenario.global_test_inputs).argmax(axis=1) == scenario.global_test_labels
    return float(right.mean())
