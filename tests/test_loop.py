"""One turn of the closed loop."""

import itertools
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from tests.worlds import digits, half, silent, tiny

from fedelect.analytics import accuracy, survey
from fedelect.errors import ConfigurationError, NoElection, UnmeasuredError
from fedelect.federation import Engine, Job, Model, PlainEngine, Scores, Training, initial_model, train
from fedelect.federation.linear.model import LOSSES, mean_loss
from fedelect.loop import FrameworkName, Replica, check_fits, play_slot
from fedelect.records import SlotRecord
from fedelect.scenario import Scenario, build_scenario, change_scenario
from fedelect.selectors import (
    AbstractSelector,
    BpUcb,
    FixedCohort,
    Oort,
    PowerOfChoice,
    QuickInitUcb,
    RandomCohort,
    SelectorSpec,
    selector_classes,
)
from fedelect.selectors.base import Available, Choice
from fedelect.simulator import PeerElection
from fedelect.vocabulary import EXTRA_SIGNALS, Feedback, Ints, Selection


@pytest.fixture(scope="module")
def world() -> Scenario:
    return build_scenario(tiny(), digits())


PLAIN = PlainEngine()
begun: list[object] = []  # what the spy saw jobs start from


class Spy:
    """The plain engine, noting what jobs start from."""

    name = "spy"
    initial_model = PLAIN.initial_model
    scores = PLAIN.scores

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> Sequence[Training]:
        begun.extend(job.start for job in jobs)
        return PLAIN.train(scenario, jobs)


def quick(world: Scenario, trial: int = 0) -> Replica:
    return Replica("q", trial, world, QuickInitUcb(clients=6, budget=2, exploration=1.0, seed=trial))


def test_a_slot_trains_the_cohort_and_tells_the_average_of_what_all_clients_think(world: Scenario) -> None:
    replica = quick(world)
    expected_ask = replica.selector.ask()
    (record,) = play_slot([replica], slot=1, framework="fa", seed=5, engine=PLAIN)
    job = Job(cohort=expected_ask.cohort, seed=5, trial=0, slot=1)
    (training,) = train(world, [job])
    opinions = survey(world, training.model, accuracy)
    assert record.status == "done" and record.cohort == expected_ask.cohort
    assert record.opinions == tuple(opinions.tolist())
    assert record.reward == pytest.approx(opinions.mean(), abs=1e-15)
    assert record.arrivals == tuple(training.arrivals.sum(axis=0).tolist())
    assert record.rounds == 2 and record.beliefs is None and record.exchange is None


def test_a_replica_does_not_depend_on_which_others_play(world: Scenario) -> None:
    alone = [play_slot([quick(world, trial)], slot=1, framework="fa", seed=5, engine=PLAIN)[0] for trial in range(3)]
    together = play_slot([quick(world, trial) for trial in range(3)], slot=1, framework="fa", seed=5, engine=PLAIN)
    assert together == alone


def test_within_a_trial_selectors_share_batch_orders_and_upload_luck(world: Scenario) -> None:
    fixed = [FixedCohort(clients=6, cohort=[1, 4]) for _ in range(3)]
    replicas = [Replica("a", 0, world, fixed[0]), Replica("b", 0, world, fixed[1]), Replica("c", 1, world, fixed[2])]
    first, second, other_trial = play_slot(replicas, slot=1, framework="fa", seed=5, engine=PLAIN)
    assert first.opinions == second.opinions and first.arrivals == second.arrivals
    assert first.opinions != other_trial.opinions


def test_a_cold_start_begins_anew_and_a_warm_start_goes_on() -> None:
    for start in ("cold", "warm"):
        world = build_scenario(tiny(start=start, upload_probability=1.0), digits())
        begun.clear()
        replica = Replica("f", 0, world, FixedCohort(clients=6, cohort=[0, 1]))
        for slot in (1, 2):
            play_slot([replica], slot=slot, framework="fa", seed=5, engine=Spy())
        assert begun[0] is None
        assert (begun[1] is None) == (start == "cold")
        if start == "warm":
            trained = train(world, [Job(cohort=(0, 1), seed=5, trial=0, slot=1)])[0].model
            assert np.array_equal(np.asarray(begun[1]), trained)
            assert not np.array_equal(np.asarray(begun[1]), initial_model(world))


def test_the_democratized_loop_records_beliefs_and_how_they_were_settled(world: Scenario) -> None:
    replica = Replica("b", 0, world, BpUcb(clients=6, budget=2, exploration=0.01, seed=1))
    (record,) = play_slot([replica], slot=1, framework="da", seed=5, engine=PLAIN)
    assert record.beliefs is not None and len(record.beliefs) == 6
    assert record.exchange is not None and record.exchange.rounds == world.config.beliefs.rounds
    assert record.exchange.outcome == "settled"


def test_peers_elect_what_bp_ucb_elects_slot_by_slot(world: Scenario) -> None:
    dense = Replica("same", 0, world, BpUcb(clients=6, budget=2, exploration=0.3, seed=1))
    peers = Replica("same", 0, world, PeerElection.from_scenario(world, exploration=0.3, seed=1))
    for slot in range(1, 11):
        one, two = play_slot([dense, peers], slot=slot, framework="da", seed=5, engine=PLAIN)
        assert (one.cohort, one.indices, one.opinions, one.beliefs) == (
            two.cohort,
            two.indices,
            two.opinions,
            two.beliefs,
        )
        assert two.exchange is not None and two.exchange.virtual_seconds


def test_ones_own_opinion_function_is_asked(world: Scenario) -> None:
    (record,) = play_slot([quick(world)], slot=1, framework="fa", seed=5, engine=PLAIN, opinion=half)
    assert record.opinions == (0.5,) * 6 and record.reward == 0.5


def test_a_slot_in_which_nobody_has_an_opinion_is_abandoned(world: Scenario) -> None:
    replica = quick(world)
    (record,) = play_slot([replica], slot=1, framework="fa", seed=5, engine=PLAIN, opinion=silent)
    assert record.status == "abandoned" and record.reward is None
    assert record.note is not None and "'reward'" in record.note
    (record,) = play_slot([replica], slot=2, framework="fa", seed=5, engine=PLAIN)
    assert record.status == "done" and record.slot == 2


class NobodyInSlotTwo(AbstractSelector):
    def __init__(self) -> None:
        super().__init__(clients=6, budget=2)

    def _choose(self, slot: int, available: Available) -> Choice:
        if slot == 2:
            raise NoElection("the clients did not agree")
        return (0, 1), ()


def test_a_slot_without_an_election_is_skipped_and_trains_nobody(world: Scenario) -> None:
    replicas = [Replica("n", 0, world, NobodyInSlotTwo()), quick(world)]
    statuses = [
        [r.status for r in play_slot(replicas, slot=s, framework="fa", seed=5, engine=PLAIN)] for s in (1, 2, 3)
    ]
    assert statuses == [["done", "done"], ["skipped", "done"], ["done", "done"]]


def test_a_selector_that_needs_the_server_is_refused_by_the_democratized_loop() -> None:
    with pytest.raises(ConfigurationError, match="needs 'reward', which FL&DA does not supply; use framework fa"):
        check_fits(QuickInitUcb(clients=6, budget=2, seed=0), "da", "quick-init-ucb", validated=False)
    with pytest.raises(ConfigurationError, match="needs 'beliefs', which FL&FA does not supply; use framework da"):
        check_fits(BpUcb(clients=6, budget=2, seed=0), "fa", "bp-ucb", validated=False)
    for framework in ("fa", "da"):
        check_fits(RandomCohort(clients=6, budget=2, seed=0), framework, "random", validated=False)


class Impossible(NobodyInSlotTwo):
    needs = frozenset({"reward", "beliefs"})


def test_a_selector_that_fits_no_framework_is_told_so() -> None:
    with pytest.raises(ConfigurationError, match="no framework supplies it"):
        check_fits(Impossible(), "fa", "impossible", validated=False)


class TableEngine:
    """A world without training: every cohort has a fixed reward, which all clients see."""

    name = "table"

    def __init__(self, rewards: dict[tuple[int, ...], float]) -> None:
        self.rewards = rewards

    def initial_model(self, scenario: Scenario) -> Model:
        return np.zeros((1, 1))

    def train(self, scenario: Scenario, jobs: Sequence[Job]) -> Sequence[Training]:
        arrivals = np.ones((1, 2), dtype=np.bool_)
        return [Training(model=np.array([[self.rewards[job.cohort]]]), arrivals=arrivals) for job in jobs]

    def scores(
        self, scenario: Scenario, models: Sequence[Model], *, clients: Sequence[Ints] | None = None
    ) -> list[list[Scores]]:
        asked = [scenario.clients] * len(models) if clients is None else [len(own) for own in clients]
        return [[model] * count for model, count in zip(models, asked, strict=True)]


def test_the_federated_loop_on_a_table_of_rewards_goes_as_worked_out_by_hand(world: Scenario) -> None:
    """N = 6, K = 2, mu = 0. The reward of {i, j} is 0.9 for {0, 1}, 0.6 if one of 0, 1 is in it, else 0.3.

    Let 0 and 1 fall into different cold-start groups (seed 0): these two groups get 0.6, the third 0.3. Scores: the
    four clients of the first two groups 0.6, the other two 0.3. Six pairs share the highest initial mean 0.6: the two
    groups and four mixed pairs, {0, 1} among them. With mu = 0 an arm keeps its place while its mean is 0.6: a pair
    with one of 0, 1 gets 0.6 again and stays at 0.6; {0, 1} gets 0.9 and rises to 0.75, above all others, for ever; the
    mixed pair with neither gets 0.3, falls to 0.45 and is never played again.
    """
    rewards: dict[tuple[int, ...], float] = {
        pair: {2: 0.9, 1: 0.6, 0: 0.3}[len({0, 1} & set(pair))] for pair in itertools.combinations(range(6), 2)
    }
    selector = QuickInitUcb(clients=6, budget=2, exploration=0.0, seed=0)
    replica = Replica("q", 0, world, selector)
    records = [
        play_slot(
            [replica],
            slot=slot,
            framework="fa",
            seed=5,
            engine=TableEngine(rewards),
            opinion=lambda scores, labels: float(scores[0, 0]),
        )[0]
        for slot in range(1, 61)
    ]
    groups = [set(record.cohort) for record in records[:3]]
    assert not any({0, 1} <= group for group in groups)
    assert sorted(record.reward or 0.0 for record in records[:3]) == [0.3, 0.6, 0.6]
    top = {client for group, record in zip(groups, records, strict=False) if record.reward == 0.6 for client in group}
    first = next(i for i, record in enumerate(records) if record.cohort == (0, 1))
    for record in records[3:first]:
        assert set(record.cohort) < top and record.indices == (0.6,)
    assert [record.cohort for record in records[first:]] == [(0, 1)] * (60 - first)
    risen = [record.indices[0] for record in records[first:]]
    assert risen == pytest.approx([(0.6 + 0.9 * n) / (1 + n) for n in range(60 - first)], abs=1e-12)
    neither = tuple(sorted(top - {0, 1}))
    assert sum(record.cohort == neither for record in records[3:]) <= 1


def oort(world: Scenario) -> Replica:
    return Replica("oort", 0, world, Oort(clients=6, budget=2, seed=1))


def test_a_selector_is_told_the_extra_signals_it_needs_or_uses_and_no_others(world: Scenario) -> None:
    replica = oort(world)
    (record,) = play_slot([replica], slot=1, framework="fa", seed=5, engine=PLAIN)
    assert record.signals is not None
    told = {name for name, values in msgspec.structs.asdict(record.signals).items() if values is not None}
    assert told == {"loss_rms", "sizes", "seconds", "training_s", "upload_s"}  # what Oort needs, and what it uses
    assert record.signals.sizes == tuple(map(float, world.sizes.tolist()))
    assert record.signals.seconds is not None
    timed = tuple(client for client, seconds in enumerate(record.signals.seconds) if seconds is not None)
    assert timed == record.cohort


class Curious(AbstractSelector):
    """Elects clients 0 and 1, and keeps what it was told."""

    uses = frozenset({"loss", "sizes", "upload_s"})
    told: Feedback | None = None

    def _choose(self, slot: int, available: Available) -> Choice:
        return (0, 1), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        self.told = feedback


def test_a_selector_is_told_the_optional_signals_that_the_engine_knows(world: Scenario) -> None:
    def tell(engine: Engine, framework: FrameworkName) -> set[str]:
        curious = Curious(clients=6, budget=2, seed=1)
        replica = Replica("c", 0, world, curious)
        play_slot([replica], slot=1, framework=framework, seed=5, engine=engine, opinion=lambda scores, labels: 0.5)
        assert curious.told is not None
        return set(curious.told.per_client()) - {"opinions", "beliefs"}

    everything = TableEngine(dict.fromkeys(itertools.combinations(range(6), 2), 0.5))
    assert tell(PLAIN, "fa") == {"loss", "sizes", "upload_s"}
    assert tell(everything, "fa") == {"sizes", "upload_s"}  # it measures no losses
    assert tell(SizelessEngine(everything.rewards), "fa") == {"sizes"}
    assert tell(PLAIN, "da") == set()  # no server


class SizelessEngine(TableEngine):
    def model_bits(self, scenario: Scenario) -> int:
        raise UnmeasuredError("nobody knows the size of a model")


def test_losses_are_those_of_the_trained_model_on_each_clients_own_samples(world: Scenario) -> None:
    replica = Replica("p", 0, world, PowerOfChoice(clients=6, budget=2, seed=1))
    (record,) = play_slot([replica], slot=1, framework="fa", seed=5, engine=PLAIN)
    (training,) = train(world, [Job(cohort=record.cohort, seed=5, trial=0, slot=1)])
    expected = [
        mean_loss(LOSSES["svm"], training.model, inputs, labels)
        for inputs, labels in zip(world.train_inputs, world.train_labels, strict=True)
    ]
    assert record.signals is not None and record.signals.loss == pytest.approx(expected)
    rms = PLAIN.losses(world, training.model).rms
    assert (rms >= np.array(expected) - 1e-6).all()


def test_signals_are_not_computed_for_who_does_not_need_them_and_change_nobody_elses_cohorts(world: Scenario) -> None:
    alone = quick(world)
    beside = [quick(world), oort(world)]
    for slot in range(1, 7):
        (one,) = play_slot([alone], slot=slot, framework="fa", seed=5, engine=Spy())  # which measures no losses
        other, _ = play_slot(beside, slot=slot, framework="fa", seed=5, engine=PLAIN)
        assert one == other and one.signals is None


def test_an_engine_that_measures_no_losses_is_named(world: Scenario) -> None:
    with pytest.raises(ConfigurationError, match=r"'oort' needs the clients' losses, which the engine 'spy'"):
        play_slot([oort(world)], slot=1, framework="fa", seed=5, engine=Spy())


def test_a_selector_that_needs_what_clients_report_to_a_server_is_refused_without_one() -> None:
    with pytest.raises(ConfigurationError, match=r"needs 'loss_rms' and 'seconds' and 'sizes'.*use framework fa"):
        check_fits(Oort(clients=6, budget=2, seed=1), "da", "oort", validated=False)


def test_every_rival_plays_the_loop_by_name() -> None:
    names = [name for name, kind in selector_classes().items() if kind.needs & EXTRA_SIGNALS.keys()]
    assert len(names) == 21
    replicas = []
    world = build_scenario(change_scenario(tiny(), {"validation": {"share": 0.1}}), digits())
    for name in names:
        selector = SelectorSpec.parse(name).build(clients=6, budget=2, seed=1)
        replicas.append(Replica(name, 0, world, selector))
    for slot in range(1, 5):
        for record in play_slot(replicas, slot=slot, framework="fa", seed=5, engine=PLAIN):
            assert record.status == "done"
            only_updates = selector_classes()[record.selector].needs <= {"reward", "opinions", "updates"}
            assert record.signals is not None or only_updates  # updates are not on record
            assert msgspec.json.decode(msgspec.json.encode(record), type=SlotRecord) == record


class Watching(AbstractSelector):
    """Keeps the updates that it is told, and asks two clients before each slot."""

    needs = frozenset({"updates"})
    asks = frozenset({"loss"})

    def __init__(self, *, clients: int, budget: int, seed: int = 0) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self.told: list[Feedback] = []
        self.reports: list[Feedback] = []

    def _propose(self, slot: int, available: Available) -> tuple[int, ...]:
        return (0, slot)

    def _choose(self, slot: int, available: Available) -> Choice:
        return tuple(range(self.budget)), ()

    def _choose_reported(self, slot: int, available: Available, reports: Feedback) -> Choice:
        self.reports.append(reports)
        return self._choose(slot, available)

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        self.told.append(feedback)


def test_updates_of_the_members_are_told_and_candidates_report_the_loss_of_the_model_before_the_slot() -> None:
    world = build_scenario(tiny(start="warm", upload_probability=1.0), digits())
    watching = Watching(clients=world.clients, budget=world.budget)
    replica, engine = Replica("watching", 0, world, watching), PlainEngine()
    models = [engine.initial_model(world)]
    for slot in (1, 2, 3):
        (record,) = play_slot([replica], slot=slot, framework="fa", seed=1, engine=engine)
        assert replica.model is not None
        models.append(replica.model)
        assert record.candidates == (0, slot)
        assert record.measures is not None and record.measures.evaluations == world.clients + 2
        losses = watching.reports[-1].loss
        assert losses is not None and np.flatnonzero(~np.isnan(losses)).tolist() == [0, slot]
        assert losses[slot] == pytest.approx(engine.losses(world, models[slot - 1]).mean[slot])
        updates = watching.told[-1].updates
        assert updates is not None and np.isfinite(updates[: world.budget]).all()
        assert np.isnan(updates[world.budget :]).all()


def test_nobody_is_asked_before_a_slot_of_a_cold_start(world: Scenario) -> None:
    replica = Replica("watching", 0, world, Watching(clients=world.clients, budget=world.budget))
    (record,) = play_slot([replica], slot=1, framework="fa", seed=1, engine=PlainEngine())
    assert record.candidates == () and record.status == "done"


def test_an_engine_that_knows_no_updates_is_named(world: Scenario) -> None:
    replica = Replica("watching", 0, world, Watching(clients=world.clients, budget=world.budget))
    rewards = {tuple(range(world.budget)): 0.5}
    with pytest.raises(ConfigurationError, match=r"'watching' needs the clients' updates, which the engine .* not"):
        play_slot([replica], slot=1, framework="fa", seed=1, engine=TableEngine(rewards))


class Credited(Watching):
    """Needs what the members contributed."""

    needs = frozenset({"contributions"})
    asks = frozenset()


def test_contributions_are_told_to_the_selector_that_needs_them_and_to_nobody_else() -> None:
    world = build_scenario(change_scenario(tiny(upload_probability=1.0), {"validation": {"share": 0.1}}), digits())
    credited = Credited(clients=world.clients, budget=world.budget)
    replica = Replica("credited", 0, world, credited)
    others = Replica("random", 0, world, RandomCohort(clients=world.clients, budget=world.budget, seed=1))
    for slot in (1, 2):
        told, untold = play_slot([replica, others], slot=slot, framework="fa", seed=1, engine=PLAIN)
        (training,) = train(world, [Job(cohort=told.cohort, seed=1, slot=slot, contributions=True)])
        feedback = credited.told[-1].contributions
        assert feedback is not None and training.contributions is not None
        assert feedback[: world.budget].tolist() == training.contributions.tolist()
        assert np.isnan(feedback[world.budget :]).all()
        assert told.signals is not None and told.signals.contributions is not None
        assert told.signals.contributions[: world.budget] == tuple(training.contributions.tolist())
        assert untold.signals is None


def test_contributions_need_samples_at_the_server(world: Scenario) -> None:
    credited = Credited(clients=6, budget=2)
    with pytest.raises(
        ConfigurationError, match=r"'c' needs 'contributions'.* give the scenario a table \[validation\]"
    ):
        check_fits(credited, "fa", "c", validated=False)
    check_fits(credited, "fa", "c", validated=True)
    with pytest.raises(
        ConfigurationError, match=r"needs 'contributions', which FL&DA does not supply; use framework fa"
    ):
        check_fits(credited, "da", "c", validated=True)
    validated = build_scenario(change_scenario(tiny(), {"validation": {"share": 0.1}}), digits())
    with pytest.raises(
        ConfigurationError, match=r"needs the clients' contributions, which the engine 'table' does not"
    ):
        play_slot(
            [Replica("c", 0, validated, credited)],
            slot=1,
            framework="fa",
            seed=1,
            engine=TableEngine({(0, 1): 0.5}),
        )
