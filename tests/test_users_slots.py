"""A slot in the worlds users have: clients away, a sample asked, training that fails, warm rewards, measures."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.worlds import digits, plan, tiny

from fedelect.analytics import OpinionGain, SurveyAverage
from fedelect.backoff import FailureBackoff
from fedelect.equations.scores import linear_scores
from fedelect.errors import ConfigurationError
from fedelect.federation import Job, PlainEngine, train
from fedelect.loop import FrameworkName, Replica, play_slot
from fedelect.records import SlotRecord, read_run, sorted_records, to_array
from fedelect.scenario import (
    Availability,
    Scenario,
    ScenarioConfig,
    build_scenario,
    change_scenario,
    draw_failures,
    draw_survey,
)
from fedelect.selectors import AbstractSelector, PowerOfChoice, QuickInitUcb, RandomCohort
from fedelect.selectors.base import Available, Choice
from fedelect.simulator import PeerElection, simulate
from fedelect.vocabulary import Feedback, Floats, Selection, mean_present

PLAIN = PlainEngine()

AWAY = {"kind": "random", "probability": 0.5}
FAILING = {"failing": {"clients": [0, 1, 2], "rate": 0.8}}


def world(start: str = "warm", **tables: object) -> Scenario:
    return build_scenario(change_scenario(tiny(start=start), tables), digits())


def play(
    replica: Replica, slots: int, *, framework: FrameworkName = "fa", seed: int = 5, last: int = 0
) -> list[SlotRecord]:
    return [
        play_slot([replica], slot=slot, framework=framework, seed=seed, engine=PLAIN, last=slot == last)[0]
        for slot in range(1, slots + 1)
    ]


class Listener(AbstractSelector):
    """Elects at random, and keeps what it was given and told."""

    needs = frozenset({"reward"})
    uses = frozenset({"loss"})

    def __init__(self, *, clients: int = 6, budget: int = 2, seed: int = 1) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self.given: list[list[int]] = []
        self.told: list[Feedback] = []

    def _choose(self, slot: int, available: Available) -> Choice:
        candidates = self._candidates(available)
        self.given.append(candidates.tolist())
        return tuple(sorted(self._pick_random(slot, candidates, self.budget))), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        self.told.append(feedback)


def test_a_selector_chooses_among_those_that_are_there_and_too_few_are_a_skipped_slot() -> None:
    listener = Listener()
    records = play(Replica("r", 3, world(availability=AWAY | {"probability": 0.3}), listener), 40)
    availability = Availability(
        change_scenario(tiny(), {"availability": AWAY | {"probability": 0.3}}).availability, 6, seed=5, trial=3
    )
    given = iter(listener.given)
    for slot, record in enumerate(records, start=1):
        there = availability.at(slot)
        assert there is not None and record.slot == slot and record.available == there.sum()
        if there.sum() < 2:
            assert record.status == "skipped" and record.cohort == ()
            assert record.note == f"{there.sum()} of 6 clients are there, but a cohort takes 2"
        else:
            assert record.status == "done" and next(given) == np.flatnonzero(there).tolist()
    assert {record.status for record in records} == {"done", "skipped"}


def test_a_skipped_slot_keeps_the_model_and_costs_nothing() -> None:
    replica = Replica("r", 0, world(availability={"kind": "random", "probability": 0.3}), Listener())
    records = play(replica, 40)
    for before, record in itertools.pairwise(records):
        assert record.measures is not None and before.measures is not None
        if record.status == "skipped":
            assert record.measures.accuracy == before.measures.accuracy
            assert (record.measures.evaluations, record.measures.bytes_down, record.measures.bytes_up) == (0, 0, 0)


def test_only_those_that_are_there_give_opinions() -> None:
    records = play(Replica("r", 0, world(availability=AWAY), Listener()), 10)
    for record in records:
        if record.status == "done":
            assert record.opinions is not None and record.measures is not None
            present = [opinion is not None for opinion in record.opinions]
            assert sum(present) == record.available == record.measures.evaluations
            assert all(present[client] for client in record.cohort)


def test_a_failing_client_is_recorded_and_left_out_and_the_choice_is_as_the_rule_says() -> None:
    scenario = world(flaws=FAILING)
    listener = Listener()
    records = play(Replica("r", 0, scenario, listener), 30)
    backoff = FailureBackoff()
    for record, given in zip(records, listener.given, strict=True):
        usable = backoff.filter(range(6), record.slot, needed=2)
        assert given == usable and record.left_out == tuple(sorted(set(range(6)) - set(usable)))
        assert record.available == (len(usable) if backoff.list_left_out(record.slot) else None)
        lost = draw_failures(scenario, record.cohort, seed=5, trial=0, slot=record.slot)
        failed = [client for client, fails in zip(record.cohort, lost, strict=True) if fails]
        assert record.failed == tuple(failed)
        assert all(
            not arrived for client, arrived in zip(record.cohort, record.arrivals, strict=True) if client in failed
        )
        assert (record.status == "abandoned") == bool(lost.all())
        backoff.record(record.slot, failed=failed, succeeded=sorted(set(record.cohort) - set(failed)))
    assert any(record.failed for record in records) and any(record.left_out for record in records)
    assert {record.note for record in records if record.status == "abandoned"} <= {
        "the training of every member failed"
    }


def test_a_survey_asks_a_sample_and_the_elected_and_averages_the_sample_alone() -> None:
    scenario = world(start="cold", survey={"asked": 2, "answers": 0.8})
    listener = Listener()
    records = play(Replica("r", 0, scenario, listener), 25)
    average = SurveyAverage(6)
    told = iter(listener.told)
    for record in records:
        sample = draw_survey(scenario.config.survey, record.cohort, None, clients=6, seed=5, trial=0, slot=record.slot)
        (trained,) = train(scenario, [Job(cohort=record.cohort, seed=5, slot=record.slot)])
        everybody = opinions_of(scenario, trained.model)
        counted, said = np.full(6, np.nan), np.full(6, np.nan)
        counted[sample.counted] = everybody[sample.counted]
        said[sample.answering] = everybody[sample.answering]
        assert record.measures is not None and record.measures.evaluations == sample.asked.size
        expected = average.average(counted)
        average.learn(counted)
        assert record.mean_opinion == record.reward == expected
        if expected is None:
            assert record.status == "abandoned" and record.opinions == (None,) * 6
            continue
        feedback = next(told)
        assert record.opinions is not None and feedback.loss is not None
        assert np.array_equal(to_array(record.opinions), said, equal_nan=True)
        assert np.flatnonzero(~np.isnan(feedback.loss)).tolist() == sample.answering.tolist()
    assert {record.status for record in records} == {"done", "abandoned"}


def opinions_of(scenario: Scenario, model: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Floats:
    shares = zip(scenario.test_inputs, scenario.test_labels, strict=True)
    return np.array([(linear_scores(model, inputs).argmax(axis=1) == labels).mean() for inputs, labels in shares])


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_rewards_are_levels_in_a_cold_start_and_gains_in_a_warm_one(start: str) -> None:
    listener = Listener()
    records = play(Replica("r", 0, world(start=start), listener), 20)
    gain = OpinionGain()
    for record, told in zip(records, listener.told, strict=True):
        assert record.opinions is not None and record.mean_opinion == mean_present(to_array(record.opinions))
        level = record.mean_opinion or 0.0
        assert record.reward == told.reward == (level if start == "cold" else gain.reward(level))
    assert (len({record.reward for record in records[:10]}) == 1) == (start == "warm")


def test_under_democratized_analytics_nobody_sees_an_average() -> None:
    (record,) = play(Replica("r", 0, world(), RandomCohort(clients=6, budget=2, seed=1)), 1, framework="da")
    assert record.mean_opinion is None and record.reward is None and record.beliefs is not None


def test_measures_are_those_of_the_model_on_clean_data() -> None:
    labels = {"random_labels": {"clients": [0, 3], "rate": 1.0, "clean_test": False}}
    scenario = world(flaws=labels, survey={"asked": 3})
    replica = Replica("r", 0, scenario, Listener())
    records = play(replica, 4, last=4)
    start = None
    for record in records:
        (trained,) = train(scenario, [Job(cohort=record.cohort, start=start, seed=5, slot=record.slot)])
        start, measures = trained.model, record.measures
        assert measures is not None
        right = linear_scores(start, scenario.global_test_inputs).argmax(axis=1) == scenario.global_test_labels
        assert measures.accuracy == pytest.approx(right.mean())
        assert measures.flawed_share == len({0, 3} & set(record.cohort)) / 2
        asked = draw_survey(scenario.config.survey, record.cohort, None, clients=6, seed=5, trial=0, slot=record.slot)
        assert measures.evaluations == asked.asked.size
        assert measures.bytes_down == start.nbytes * (2 * 2 + asked.asked.size)
        assert measures.bytes_up == start.nbytes * 2 * 2
        assert (measures.low_accuracy is None) == (record.slot != 4)
    assert start is not None
    own = [
        (linear_scores(start, inputs).argmax(axis=1) == labels).mean()
        for inputs, labels in zip(scenario.clean_test_inputs, scenario.clean_test_labels, strict=True)
    ]
    assert records[-1].measures is not None
    assert records[-1].measures.low_accuracy == pytest.approx(np.quantile(own, 0.1))


def test_the_low_accuracy_is_measured_at_slots_25_and_50_and_at_the_last() -> None:
    records = play(Replica("r", 0, world(), Listener()), 52, last=52)
    measured = [record.slot for record in records if record.measures and record.measures.low_accuracy is not None]
    assert measured == [25, 50, 52]


def test_failed_members_send_nothing() -> None:
    scenario = world(flaws={"failing": {"clients": [0], "rate": 1.0}})
    for record in play(Replica("r", 0, scenario, Listener()), 12):
        assert record.measures is not None
        sent = 2 * (len(record.cohort) - len(record.failed))
        assert record.measures.bytes_up == PLAIN.initial_model(scenario).nbytes * sent


def test_cold_slots_without_any_of_this_are_not_measured() -> None:
    (record,) = play(Replica("r", 0, world(start="cold"), Listener()), 1)
    assert record.measures is None and record.available is None and record.failed == record.left_out == ()


def test_losses_of_those_asked_alone_reach_a_selector() -> None:
    scenario = world(survey={"asked": 1})
    (record,) = play(Replica("p", 0, scenario, PowerOfChoice(clients=6, budget=2, seed=1)), 1)
    assert record.signals is not None and record.signals.loss is not None and record.signals.sizes is not None
    assert 2 <= sum(loss is not None for loss in record.signals.loss) <= 3
    assert None not in record.signals.sizes


def test_after_a_drift_a_slot_is_played_in_the_new_world() -> None:
    scenario = world(start="cold", drift={"slot": 2, "share": 1.0})
    records = play(Replica("r", 0, scenario, Listener()), 2)
    for record in records:
        (trained,) = train(scenario.at(record.slot), [Job(cohort=record.cohort, seed=5, slot=record.slot)])
        assert record.opinions is not None
        assert np.array_equal(to_array(record.opinions), opinions_of(scenario.at(record.slot), trained.model))
    assert scenario.at(1) is scenario and scenario.at(2) is not scenario


def test_peers_elect_among_those_that_are_there() -> None:
    scenario = world(availability=AWAY | {"probability": 0.4})
    replica = Replica("peers", 0, scenario, PeerElection.from_scenario(scenario, seed=3, rule="bp-ucb"))
    records = play(replica, 12, framework="da")
    availability = Availability(scenario.config.availability, 6, seed=5, trial=0)
    for record in records:
        there = availability.at(record.slot)
        assert there is not None and there[list(record.cohort)].all()
    assert {record.status for record in records} == {"done", "skipped"}


EVERYTHING = {
    "flaws": FAILING | {"free_riders": {"clients": [5]}},
    "drift": {"slot": 4},
    "availability": {"kind": "on-off", "mean_on": 4.0, "mean_off": 2.0, "joins_share": 0.2, "joins_slot": 3},
    "survey": {"asked": 0.5, "answers": 0.8},
}


def everything(start: str = "warm") -> ScenarioConfig:
    return change_scenario(tiny(start=start), EVERYTHING)


def test_a_replica_does_not_depend_on_the_others_of_its_call() -> None:
    scenario = build_scenario(everything(), digits())

    def make(trial: int) -> list[Replica]:
        kinds: Sequence[AbstractSelector] = (Listener(), QuickInitUcb(clients=6, budget=2, seed=trial))
        return [Replica(type(kind).__name__, trial, scenario, kind) for kind in kinds]

    together, alone = [*make(0), *make(1)], [*make(0), *make(1)]
    for slot in range(1, 13):
        batch = play_slot(together, slot=slot, framework="fa", seed=5, engine=PLAIN)
        single = [play_slot([one], slot=slot, framework="fa", seed=5, engine=PLAIN)[0] for one in alone]
        assert batch == single


class Stop(Exception):
    pass


@pytest.mark.parametrize("checkpoint_every_s", [0.0, 1e9])
@pytest.mark.parametrize(("start", "framework"), [("warm", "fa"), ("cold", "fa"), ("warm", "da")])
def test_an_interrupted_run_ends_with_the_same_records(
    tmp_path: Path, start: str, framework: FrameworkName, checkpoint_every_s: float
) -> None:
    names = ("quick-init-ucb", "oort") if framework == "fa" else ("bp-ucb", "peers")
    work = plan(*names, framework=framework, slots=16, config=everything(start))
    simulate(work, digits(), tmp_path / "undisturbed", workers=1)

    def stop_after(slots: int) -> None:
        def progress(finished: int, total: int) -> None:
            if finished >= slots * 4:
                raise Stop

        with pytest.raises(Stop):
            simulate(
                work, digits(), tmp_path / "run", workers=1, progress=progress, checkpoint_every_s=checkpoint_every_s
            )

    stop_after(6)
    stop_after(12)
    simulate(work, digits(), tmp_path / "run", workers=1, checkpoint_every_s=checkpoint_every_s)
    records = sorted_records(read_run(tmp_path / "run"))
    assert records == sorted_records(read_run(tmp_path / "undisturbed"))
    assert any(record.failed for record in records) and any(record.left_out for record in records)


def test_records_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    work = plan("quick-init-ucb", "random", slots=8, trials=3, config=everything())
    for workers in (1, 2):
        simulate(work, digits(), tmp_path / str(workers), workers=workers)
    one, two = (sorted_records(read_run(tmp_path / name)) for name in ("1", "2"))
    assert one == two


def test_a_budget_above_the_number_ever_there_is_refused_before_the_run_starts() -> None:
    never = change_scenario(tiny(), {"availability": {"joins_share": 0.8, "joins_slot": 9}})
    with pytest.raises(ConfigurationError, match="at most 1 of the 6 clients are ever there in 8 slots, but a cohort"):
        plan(config=never)
    assert plan(config=never, slots=9).slots == 9


def test_the_tables_are_part_of_what_is_written_down_only_where_they_are_set() -> None:
    assert not {"availability", "survey"} & msgspec.to_builtins(tiny()).keys()
    assert {"availability", "survey"} <= msgspec.to_builtins(everything()).keys()
