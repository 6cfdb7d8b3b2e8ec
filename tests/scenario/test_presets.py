import pytest

from fedelect.errors import ConfigurationError
from fedelect.scenario import PRESETS, parse_scenario, preset, scenario_toml


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_prints_as_toml_that_parses_back_to_it(name: str) -> None:
    assert parse_scenario(scenario_toml(preset(name))) == preset(name)
    assert preset(name).name == name


def test_the_digits_preset_has_the_papers_clients_at_a_fraction_of_the_work() -> None:
    digits, paper = preset("digits"), preset("paper")
    assert (digits.clients, digits.budget, digits.data.iid_clients) == (20, 5, 5)
    assert digits.data.source == "digits"
    assert digits.data.samples[1] < paper.data.samples[0]


def test_an_unknown_preset_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match="'cifar'; allowed: digits, paper"):
        preset("cifar")
