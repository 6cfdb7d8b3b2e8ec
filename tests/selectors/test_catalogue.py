"""Selectors by name."""

import pickle
import sys
from pathlib import Path

import pytest

from fedelect.errors import BudgetError, ConfigurationError
from fedelect.selectors import (
    AbstractSelector,
    BpUcb,
    FixedCohort,
    QuickInitUcb,
    RandomCohort,
    SelectorSpec,
    selector_classes,
)
from fedelect.selectors.base import Available, Choice

OWN = """
from fedelect.selectors import AbstractSelector

class LowestFirst(AbstractSelector):
    advice = "never"

    def __init__(self, *, clients, budget, seed, offset=0):
        super().__init__(clients=clients, budget=budget, seed=seed)
        if isinstance(offset, str):
            raise ValueError("bad offset")
        self.offset = offset

    def _choose(self, slot, available):
        return tuple(range(self.offset, self.offset + self.budget)), ()

not_a_selector = 3
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_own_selectors.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("my_own_selectors", None)
    return "my_own_selectors"


def test_every_selector_of_the_paper_has_a_name_and_advice() -> None:
    classes = selector_classes()
    assert list(classes)[:6] == ["fixed", "random", "cycle", "round-robin", "subset-ucb", "quick-init-ucb"]
    assert all(kind.advice for kind in classes.values())


def test_parameters_and_lists_are_read() -> None:
    spec = SelectorSpec.parse("fixed:cohort=0,1,2,3,4")
    selector = spec.build(clients=20, budget=5, seed=1)
    assert isinstance(selector, FixedCohort) and selector.ask().cohort == (0, 1, 2, 3, 4)
    built = SelectorSpec.parse("bp-ucb:exploration=0.5").build(clients=20, budget=5, seed=9)
    assert isinstance(built, BpUcb)
    assert built.parameters == {"clients": 20, "budget": 5, "exploration": 0.5, "seed": 9}


def test_lists_of_one_and_lists_of_lists_are_read() -> None:
    assert SelectorSpec.parse("fixed:cohort=3,").build(clients=6, budget=1, seed=1).ask().cohort == (3,)
    sets = SelectorSpec.parse("round-robin:cohorts=0,1;4,5").build(clients=6, budget=2, seed=1)
    assert sets.ask().cohort == (0, 1) and sets.parameters["cohorts"] == [[0, 1], [4, 5]]


def test_a_list_where_sets_belong_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="sets of 2 clients each"):
        SelectorSpec.parse("random:cohorts=0,1").build(clients=6, budget=2, seed=1)


def test_a_module_that_fails_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_failing_module.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigurationError, match="RuntimeError: not today"):
        SelectorSpec.parse("my_failing_module:Thing")


def test_the_papers_exploration_is_the_default() -> None:
    assert SelectorSpec.parse("quick-init-ucb").build(clients=4, budget=2, seed=0).parameters["exploration"] == 0.01
    assert SelectorSpec.parse("bp-ucb").build(clients=4, budget=2, seed=0).parameters["exploration"] == 0.01


def test_ones_own_class_is_named_by_module(own_module: str) -> None:
    selector = SelectorSpec.parse(f"{own_module}:LowestFirst:offset=2").build(clients=6, budget=2, seed=1)
    assert selector.ask().cohort == (2, 3)
    assert SelectorSpec.parse(f"{own_module}:LowestFirst").build(clients=6, budget=2, seed=1).ask().cohort == (0, 1)


def test_an_entry_point_of_another_package_is_found(
    own_module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "other_package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        f"[fedelect.selectors]\nlowest-first = {own_module}:LowestFirst\nrandom = {own_module}:LowestFirst\n"
    )
    assert SelectorSpec.parse("lowest-first").build(clients=6, budget=2, seed=1).ask().cohort == (0, 1)
    assert selector_classes()["random"] is RandomCohort  # ours cannot be replaced behind a user's back


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "quick-init",
            r"unknown selector 'quick-init' \(did you mean 'quick-init-ucb'\?\); `fedelect selectors` lists",
        ),
        ("bp-ucb:mu=1", "unknown parameter 'mu'; BpUcb takes exploration"),
        ("fixed:0,1=,2", "expected key=value after the name, got '0'"),
        ("random:cohorts", "expected key=value after the name, got 'cohorts'"),  # and not the module `random`
        ("no_such_module:Thing", "cannot be imported"),
        ("json:JSONDecoder", "not a subclass"),
        ("bp-ucb:exploration=1:x", "exploration must be a number from 0 to .*, got '1:x'"),
    ],
)
def test_a_name_that_cannot_be_used_says_what_can(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        SelectorSpec.parse(text).build(clients=6, budget=2, seed=0)


def test_a_value_of_the_wrong_kind_is_told_with_the_selector(own_module: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"selector '{own_module}:LowestFirst:offset=a' cannot be built: bad offset"
    ):
        SelectorSpec.parse(f"{own_module}:LowestFirst:offset=a").build(clients=6, budget=2, seed=1)


def test_a_needed_parameter_is_asked_for_by_example() -> None:
    with pytest.raises(ConfigurationError, match=r"needs cohort; for example fixed:cohort=0,1,2"):
        SelectorSpec.parse("fixed").build(clients=6, budget=2, seed=0)


def test_a_cohort_of_another_size_than_the_budget_is_refused() -> None:
    with pytest.raises(BudgetError, match="elects 3 clients where the scenario's budget is 2"):
        SelectorSpec.parse("fixed:cohort=0,1,2").build(clients=6, budget=2, seed=0)


def test_a_spec_keeps_its_text() -> None:
    assert SelectorSpec.parse("quick-init-ucb:exploration=0").text == "quick-init-ucb:exploration=0"
    assert SelectorSpec.parse("quick-init-ucb:exploration=0").make is QuickInitUcb


class Own(AbstractSelector):
    def _choose(self, slot: int, available: Available) -> Choice:
        return tuple(range(self.budget)), ()


def make_own(clients: int, budget: int, seed: int) -> AbstractSelector:
    return Own(clients=clients, budget=budget)


def test_a_class_is_labelled_by_its_name_in_the_catalogue_or_its_module() -> None:
    assert SelectorSpec.of(QuickInitUcb).text == "quick-init-ucb"
    assert SelectorSpec.of("bp-ucb:exploration=1") == SelectorSpec.parse("bp-ucb:exploration=1")
    assert SelectorSpec.of(Own, extra={"own": Own}).text == "own"
    spec = SelectorSpec.of(Own)
    assert spec.text == f"{__name__}:Own" and SelectorSpec.parse(spec.text) == spec
    assert spec.build(clients=6, budget=2, seed=1).ask().cohort == (0, 1)


def test_a_function_makes_a_selector() -> None:
    spec = SelectorSpec.of(make_own)
    assert spec.text == f"{__name__}:make_own" and SelectorSpec.parse(spec.text) == spec
    assert isinstance(spec.build(clients=6, budget=2, seed=1), Own)
    local = SelectorSpec.of(lambda clients, budget: Own(clients=clients, budget=budget))
    assert local.text == "lambda" and local.build(clients=6, budget=3, seed=1).budget == 3


def test_a_spec_travels_by_reference_if_what_makes_it_can_be_imported() -> None:
    for thing in (RandomCohort, Own, make_own, "fixed:cohort=0,1"):
        spec = SelectorSpec.of(thing)
        assert spec.importable and pickle.loads(pickle.dumps(spec)) == spec

    class Local(Own): ...

    assert not SelectorSpec.of(Local).importable and SelectorSpec.of(Local).text == "Local"


def test_what_is_no_selector_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a selector is a name, a class or a function, got 3"):
        SelectorSpec.of(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="not a subclass"):
        SelectorSpec.of(dict)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="selector 'lambda' gave 7, not an AbstractSelector"):
        SelectorSpec.of(lambda clients: 7).build(clients=6, budget=2, seed=1)  # type: ignore[arg-type, return-value]
    with pytest.raises(ConfigurationError, match="needs n; it is given clients, budget and seed, by name"):
        SelectorSpec.of(lambda n: 7).build(clients=6, budget=2, seed=1)  # type: ignore[arg-type, return-value]


def test_true_and_false_are_truth_values() -> None:
    assert SelectorSpec.parse("random:cohorts=true").parameters == {"cohorts": True}
    assert SelectorSpec.parse("random:cohorts=false").parameters == {"cohorts": False}
