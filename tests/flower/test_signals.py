"""What a selector is told on Flower beside opinions: sizes, seconds, forecasts and losses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.serverapp.strategy import FedAvg
from tests.flower.fake_grid import FakeGrid, federation, initial_arrays, quality

import fedelect
from fedelect.equations.sketch import UpdateSketch
from fedelect.errors import ConfigurationError, StateError
from fedelect.flower import GoalDirected, OpinionPrivacy
from fedelect.flower.rounds import SlotTraining
from fedelect.flower.signals import SignalTracker
from fedelect.records import read_run, summarise
from fedelect.selectors import AbstractSelector, GreedyFed, Oort, PowerOfChoice, QuickInitUcb, RandomCohort, SFedAvg
from fedelect.vocabulary import Feedback, Selection

N, K = 6, 2


class Listening(AbstractSelector):
    """Takes clients in turn and keeps what it is told."""

    needs: ClassVar[frozenset[str]] = frozenset({"sizes", "seconds", "training_s", "upload_s", "loss"})
    uses: ClassVar[frozenset[str]] = frozenset({"loss_rms", "channel_db"})
    told: ClassVar[list[Feedback]] = []

    def _choose(self, slot: int, available: Any) -> Any:
        return tuple(sorted({slot % N, (slot + 1) % N})), ()

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        self.told.append(feedback)


def change_replies(grid: FakeGrid, kind: str, change: Callable[[int, RecordDict], None]) -> None:
    """Let every node change its replies of one type; `change` gets the client's number."""
    for node in grid.nodes:

        def answer(message: Message, worker: Any = node.answer, client: int = int(node.name[5:])) -> Any:
            reply = worker(message)
            if message.metadata.message_type == kind:
                change(client, reply)
            return reply

        node.answer = answer


def set_metric(reply: RecordDict, name: str, value: float) -> None:
    reply.metric_records["metrics"][name] = value


def assert_close(values: Any, expected: Any) -> None:
    np.testing.assert_allclose(values, expected)


def start(run: Path, grid: FakeGrid, rounds: int = 4, **options: Any) -> list[Feedback]:
    Listening.told.clear()
    selector = options.pop("selector", None) or Listening(clients=N, budget=K, seed=1)
    GoalDirected(FedAvg(), selector=selector, run=run, wait_s=0.0, **options).start(
        grid, initial_arrays(), num_rounds=rounds
    )
    return list(Listening.told)


def test_sizes_seconds_forecasts_and_losses_are_what_the_replies_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("fedelect.flower.exchange.time.monotonic", lambda: clock[0])
    grid, _ = federation(N)
    pushed = grid._deliver

    def slowly(identifier: str, message: Message) -> None:
        clock[0] += 0.5 if message.metadata.message_type == "train" else 0.0
        pushed(identifier, message)

    grid._deliver = slowly  # type: ignore[method-assign]
    change_replies(grid, "train", lambda client, reply: set_metric(reply, "num-examples", 100 + client))
    change_replies(grid, "evaluate", lambda client, reply: set_metric(reply, "loss", 0.1 * client))
    told = start(tmp_path / "run", grid)
    seen: set[int] = set()
    for slot, feedback in enumerate(told, 1):
        members = sorted({slot % N, (slot + 1) % N})
        seen |= set(members)
        sizes = [100.0 + client if client in seen else np.nan for client in range(N)]
        assert_close(feedback.sizes, sizes)
        # Two messages of half a second each lie before the first reply can be pulled.
        expected = np.where([client in members for client in range(N)], 1.0, np.nan)
        assert_close(feedback.seconds, expected)
        assert_close(feedback.training_s, [1.0 if client in seen else np.nan for client in range(N)])
        assert_close(feedback.upload_s, [0.0 if client in seen else np.nan for client in range(N)])
        assert_close(feedback.loss, 0.1 * np.arange(N))
        assert_close(feedback.loss_rms, 0.1 * np.arange(N))  # no reply has another
        assert feedback.channel_db is None
    record = read_run(tmp_path / "run").records[0]
    assert record.signals is not None and record.signals.loss == pytest.approx(tuple(0.1 * np.arange(N)))


def test_a_loss_is_named_or_found_and_may_have_its_root_mean_square_beside_it(tmp_path: Path) -> None:
    def report(client: int, reply: RecordDict) -> None:
        reply["metrics"] = type(reply["metrics"])(
            {"accuracy": 0.5, "eval_loss": 1.0, "eval_loss_rms": 2.0, "aux": 3.0 if client else -1.0}
        )

    grid, _ = federation(N)
    change_replies(grid, "evaluate", report)
    (feedback,) = start(tmp_path / "found", grid, rounds=1)
    assert feedback.loss is not None and feedback.loss_rms is not None
    assert set(feedback.loss) == {1.0} and set(feedback.loss_rms) == {2.0}
    (feedback,) = start(tmp_path / "named", grid, rounds=1, loss="aux")
    assert feedback.loss is not None and np.isnan(feedback.loss[0]) and set(feedback.loss[1:]) == {3.0}  # -1 is no loss


@pytest.mark.parametrize(
    ("metrics", "says"),
    [
        ({"accuracy": 0.5}, "no metric is plainly it; they hold accuracy. Name it with loss="),
        ({"accuracy": 0.5, "loss": 1.0, "val_loss": 1.0}, "several metrics may be it: loss, val_loss"),
    ],
)
def test_a_loss_that_is_needed_and_not_plain_stops_the_run(tmp_path: Path, metrics: Any, says: str) -> None:
    def report(client: int, reply: RecordDict) -> None:
        reply["metrics"] = type(reply["metrics"])(metrics)

    grid, _ = federation(N)
    change_replies(grid, "evaluate", report)
    with pytest.raises(ConfigurationError, match=says):
        start(tmp_path / "run", grid)
    assert not (tmp_path / "run").exists()


def test_privacy_hides_losses_and_a_selector_that_needs_them_is_refused(tmp_path: Path) -> None:
    privacy = OpinionPrivacy(epsilon=10.0, delta=1e-6, releases=20)
    for kind, what in ((PowerOfChoice, "'loss'"), (Oort, "'loss_rms'")):
        with pytest.raises(ConfigurationError, match=f"needs each client's {what}, and with `privacy`"):
            GoalDirected(FedAvg(), selector=kind(clients=N, budget=K, seed=1), run=tmp_path, privacy=privacy)


def test_signals_survive_a_save_and_a_damaged_one_is_refused() -> None:
    def tracker() -> SignalTracker:
        return SignalTracker(N, needed={"sizes", "training_s"}, used=(), loss=None)

    trained = SlotTraining.begin((1, 2), initial_arrays())
    trained.sizes, trained.seconds = {1: 5.0}, {1: [0.25, 0.5], 2: [2.0]}
    first, second = tracker(), tracker()
    first.collect(trained, {})
    second.restore(first.state())
    nothing = SlotTraining.begin((0,), initial_arrays())
    one, other = first.collect(nothing, {}), second.collect(nothing, {})
    assert one.keys() == other.keys() == {"sizes", "training_s"}
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
    np.testing.assert_array_equal(one["training_s"], [np.nan, 0.375, 2.0, *[np.nan] * (N - 3)])
    for damage in ({}, {**first.state(), "sizes": [1.0]}, {**first.state(), "total_s": "much"}):
        with pytest.raises(StateError, match="the saved signals are damaged"):
            tracker().restore(damage)


def test_a_survey_in_every_third_slot_leaves_the_others_unjudged_and_nobody_out(tmp_path: Path) -> None:
    grid, _ = federation(N)
    selector = RandomCohort(clients=N, budget=K, seed=1)
    start(tmp_path / "run", grid, rounds=6, selector=selector, survey_every=3)
    rows = read_run(tmp_path / "run").records
    assert [row.opinions is not None for row in rows] == [False, False, True] * 2
    assert [row.status for row in rows] == ["done"] * 6 and all(row.left_out == () for row in rows)
    grid, _ = federation(N)
    needy = QuickInitUcb(clients=N, budget=K, exploration=0.1, seed=1)
    start(tmp_path / "needy", grid, rounds=6, selector=needy, survey_every=3)
    rows = read_run(tmp_path / "needy").records
    assert [row.status for row in rows] == ["abandoned", "abandoned", "done"] * 2
    assert all(row.left_out == row.failed == () for row in rows)  # no survey was due: nothing went wrong


def test_names_bytes_and_evaluations_are_on_record(tmp_path: Path) -> None:
    grid, _ = federation(N)
    everybody, grid.nodes = grid.nodes, [node for node in grid.nodes if node.name < "site-4"]

    def join(message: Message) -> None:
        if message.metadata.message_type == "evaluate":
            grid.nodes = everybody

    grid.before = join
    GoalDirected(FedAvg(), budget=K, run=tmp_path / "run", wait_s=0.0).start(grid, initial_arrays(), num_rounds=3)
    run = read_run(tmp_path / "run")
    assert run.header.client_names is None and run.header.clients == 8
    first, second, third = run.records
    assert first.joined == tuple((client, f"site-{client}") for client in range(4))
    assert second.joined == ((4, "site-4"), (5, "site-5")) and third.joined == ()
    size = sum(len(array.data) for array in initial_arrays().values())
    assert first.measures is not None and first.measures.evaluations == 4
    assert (first.measures.bytes_down, first.measures.bytes_up) == ((K + 4) * size, K * size)
    assert first.available == 4 and second.available == 6


class Sketched(Listening):
    """Needs the members' updates, and asks two clients before each slot."""

    needs: ClassVar[frozenset[str]] = frozenset({"updates", "loss"})
    uses: ClassVar[frozenset[str]] = frozenset()
    asks: ClassVar[frozenset[str]] = frozenset({"loss"})
    reports: ClassVar[list[Feedback]] = []

    def _propose(self, slot: int, available: Any) -> tuple[int, ...]:
        return (0, 3)

    def _choose_reported(self, slot: int, available: Any, reports: Feedback) -> Any:
        self.reports.append(reports)
        return self._choose(slot, available)


def test_updates_are_projected_and_candidates_report_before_the_election(tmp_path: Path) -> None:
    grid, _ = federation(N)
    Sketched.reports.clear()
    told = start(tmp_path / "run", grid, rounds=3, selector=Sketched(clients=N, budget=K, seed=4))
    size = sum(array.numpy().size for array in initial_arrays().values())
    for slot, feedback in enumerate(told, 1):
        members = sorted({slot % N, (slot + 1) % N})
        assert feedback.updates is not None
        for client in range(N):
            if client in members:  # a worker moves every weight by its own quality
                moved = UpdateSketch(size, 4).project(np.full(size, quality(client)))
                assert feedback.updates[client] == pytest.approx(moved)
            else:
                assert np.isnan(feedback.updates[client]).all()
    rows = read_run(tmp_path / "run").records
    assert [row.candidates for row in rows] == [(0, 3)] * 3
    losses = [reports.loss for reports in Sketched.reports]
    assert all(loss is not None and np.flatnonzero(~np.isnan(loss)).tolist() == [0, 3] for loss in losses)
    # What they report is of the model before the slot: that of the last one, which all evaluated.
    for before, later in zip(told, losses[1:], strict=False):
        assert before.loss is not None and later is not None and later[3] == before.loss[3]
    assert rows[0].measures is not None and rows[0].measures.evaluations == N + 2
    assert rows[0].signals is not None and rows[0].signals.loss is not None


def test_places_that_nobody_has_taken_yet_count_in_no_figure_and_names_are_shown(tmp_path: Path) -> None:
    grid, _ = federation(N)
    GoalDirected(FedAvg(), budget=K, run=tmp_path / "run", wait_s=0.0).start(grid, initial_arrays(), num_rounds=6)
    (row,) = summarise(read_run(tmp_path / "run"))
    assert read_run(tmp_path / "run").header.clients == 2 * N
    assert row.jain_index.mean == pytest.approx(1.0) and row.never_chosen.mean == 0.0  # all six had equal turns
    page = fedelect.load_run(tmp_path / "run").report(tmp_path / "page.html").read_text()
    assert "site-4" in page


class Credited(Listening):
    """Needs what the members contributed."""

    needs: ClassVar[frozenset[str]] = frozenset({"contributions"})
    uses: ClassVar[frozenset[str]] = frozenset()


def mean_weight(model: ArrayRecord) -> float:
    """A score of a model at the server."""
    return float(np.mean([array.numpy().mean() for array in model.values()]))


def test_contributions_are_shapley_values_by_the_score_that_was_given(tmp_path: Path) -> None:
    grid, _ = federation(N)
    sizes = {client: float(10 * (client + 1)) for client in range(N)}
    change_replies(grid, "train", lambda client, reply: set_metric(reply, "num-examples", sizes[client]))
    told = start(
        tmp_path / "run",
        grid,
        rounds=6,
        rounds_per_slot=2,
        selector=Credited(clients=N, budget=K, seed=4),
        score=mean_weight,
    )
    for slot, feedback in enumerate(told, 1):
        one, other = sorted({slot % N, (slot + 1) % N})  # a worker moves every weight by its own quality
        gains = {one: quality(one), other: quality(other)}
        both = (sizes[one] * gains[one] + sizes[other] * gains[other]) / (sizes[one] + sizes[other])
        assert feedback.contributions is not None
        for member, partner in ((one, other), (other, one)):
            shapley = (gains[member] + both - gains[partner]) / 2.0  # mean over both orders of its marginal gain
            assert feedback.contributions[member] == pytest.approx(2.0 * shapley, abs=2e-3)  # two rounds in a slot
        assert np.isnan(np.delete(feedback.contributions, [one, other])).all()
    rows = read_run(tmp_path / "run").records
    assert rows[0].signals is not None and rows[0].signals.contributions is not None
    assert read_run(tmp_path / "run").header.scenario["score"] == "mean_weight"


def test_contributions_need_a_score(tmp_path: Path) -> None:
    for selector in (SFedAvg(clients=N, budget=K, seed=1), GreedyFed(clients=N, budget=K, seed=1)):
        with pytest.raises(ConfigurationError, match=r"needs 'contributions'.* give score=, a function of a model"):
            GoalDirected(FedAvg(), selector=selector)
    with pytest.raises(ConfigurationError, match="score: got 3; allowed: a function of a model"):
        GoalDirected(FedAvg(), selector=SFedAvg(clients=N, budget=K, seed=1), score=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (lambda model: 1 / 0, "score: it failed with ZeroDivisionError"),
        (lambda model: np.nan, "score: it returned nan"),
    ],
)
def test_a_score_that_fails_stops_the_run_and_says_so(tmp_path: Path, score: Any, said: str) -> None:
    grid, _ = federation(N)
    with pytest.raises(ConfigurationError, match=said):
        start(tmp_path / "run", grid, selector=Credited(clients=N, budget=K, seed=4), score=score)


@pytest.mark.parametrize("kind", [SFedAvg, GreedyFed])
def test_selectors_by_contribution_run_with_a_score(tmp_path: Path, kind: type[AbstractSelector]) -> None:
    grid, _ = federation(N)
    start(tmp_path / "run", grid, rounds=8, selector=kind(clients=N, budget=K, seed=2), score=mean_weight)
    assert [row.status for row in read_run(tmp_path / "run").records] == ["done"] * 8
