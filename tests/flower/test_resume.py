"""Killed at any moment, a run goes on from the last finished slot with the same choices."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message
from flwr.serverapp.strategy import FedAdam, FedAvg
from tests.flower.fake_grid import federation, initial_arrays
from tests.flower.test_goal_directed import K, L, N, directed, records

from fedelect.errors import RunError, RunLockedError, RunMismatchError
from fedelect.flower.saves import restore_strategy, strategy_state
from fedelect.records import RunWriter, open_run, read_run
from fedelect.selectors import QuickInitUcb

SLOTS = 8


class Killed(BaseException):
    """Stands in for SIGKILL: nothing in the library catches it."""


def without_time(run: Path) -> list[Any]:
    return [(row.slot, row.cohort, row.indices, row.opinions, row.reward, row.status) for row in records(run)]


@pytest.fixture
def whole(tmp_path: Path) -> list[Any]:
    directed(tmp_path / "whole").start(federation(N)[0], initial_arrays(), num_rounds=SLOTS * L)
    return without_time(tmp_path / "whole")


@pytest.mark.parametrize("start", ["cold", "warm"])
@pytest.mark.parametrize("after", [0, 1, K, K * L + 1, K * L + N - 1, 5 * (K * L + N) + 2])
def test_killed_while_clients_work_it_goes_on_with_the_same_choices(tmp_path: Path, start: str, after: int) -> None:
    directed(tmp_path / "whole", FedAdam(eta=0.5), start=start).start(
        federation(N)[0], initial_arrays(), num_rounds=SLOTS * L
    )
    grid, _ = federation(N)

    def kill(message: Message) -> None:
        if len(grid.sent) > after:
            raise Killed

    grid.before = kill
    with pytest.raises(Killed):
        directed(tmp_path / "run", FedAdam(eta=0.5), start=start).start(grid, initial_arrays(), num_rounds=SLOTS * L)
    grid.before = lambda message: None
    result = directed(tmp_path / "run", FedAdam(eta=0.5), start=start).start(
        grid, initial_arrays(), num_rounds=SLOTS * L
    )
    assert without_time(tmp_path / "run") == without_time(tmp_path / "whole")
    assert sorted(result.train_metrics_clientapp) == list(range(1, SLOTS * L + 1))
    assert sorted(result.evaluate_metrics_clientapp) == [L * slot for slot in range(1, SLOTS + 1)]


@pytest.mark.parametrize("method", ["append", "save_checkpoint"])
@pytest.mark.parametrize("before", [True, False])
def test_killed_between_save_and_record_nothing_is_lost_or_told_twice(
    tmp_path: Path, whole: list[Any], monkeypatch: pytest.MonkeyPatch, method: str, before: bool
) -> None:
    real: Callable[..., Any] = getattr(RunWriter, method)
    calls = []

    def dies(self: RunWriter, *args: Any) -> Any:
        calls.append(1)
        if len(calls) < 3:
            return real(self, *args)
        if not before:
            real(self, *args)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(RunWriter, method, dies)
        with pytest.raises(Killed):
            directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=SLOTS * L)
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=SLOTS * L)
    assert without_time(tmp_path / "run") == whole


def test_a_finished_run_is_handed_back_without_a_single_message(tmp_path: Path) -> None:
    first = directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=2 * L)
    grid, _ = federation(N)
    grid.nodes = []
    again = directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=2 * L)
    assert not grid.sent and (again.arrays["b"].numpy() == first.arrays["b"].numpy()).all()


def test_an_app_that_draws_its_initial_model_anew_goes_on_from_the_first(tmp_path: Path, whole: list[Any]) -> None:
    grid, _ = federation(N)

    def kill(message: Message) -> None:
        if len(grid.sent) > 60:
            raise Killed

    grid.before = kill
    with pytest.raises(Killed):
        directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=SLOTS * L)
    grid.before = lambda message: None
    other = ArrayRecord({name: Array(array.numpy() + 5.0) for name, array in initial_arrays().items()})
    directed(tmp_path / "run").start(grid, other, num_rounds=SLOTS * L)
    assert without_time(tmp_path / "run") == whole


def test_names_keep_their_numbers_when_more_clients_come(tmp_path: Path) -> None:
    grid, _ = federation(N)
    everybody = list(grid.nodes)
    grid.nodes = [node for node in everybody if node.name not in ("site-0", "site-1")]
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=SLOTS * L)
    seen = records(tmp_path / "run")[0].opinions
    assert seen is not None and seen[N - 2 :] == (None, None)  # numbers without a name yet

    def kill(message: Message) -> None:
        if len(grid.sent) > 60:
            raise Killed

    grid, _ = federation(N)
    grid.nodes = [node for node in grid.nodes if node.name not in ("site-0", "site-1")]
    grid.before = kill
    with pytest.raises(Killed):
        directed(tmp_path / "late").start(grid, initial_arrays(), num_rounds=SLOTS * L)
    grid, _ = federation(N)
    directed(tmp_path / "late").start(grid, initial_arrays(), num_rounds=SLOTS * L)
    last = records(tmp_path / "late")[-1].opinions
    assert last is not None and None not in last
    honest = [o / (1 - 0.001 * client) for o, client in zip(last, [*range(2, N), 0, 1], strict=True) if o is not None]
    assert max(honest) - min(honest) < 1e-12  # site-2 is client 0, ..., site-0 came last but one


def test_the_state_of_a_servers_optimiser_survives_as_it_was() -> None:
    adam = FedAdam(eta=0.5)
    adam.m_t = {"a": np.arange(3.0)}
    adam.current_arrays = {"a": np.array([[1.5]], dtype=np.float32)}
    twin = FedAdam(eta=0.5)
    state, unsaved = strategy_state(adam)
    restore_strategy(twin, state)
    assert unsaved == []
    assert twin.m_t is not None and (twin.m_t["a"] == np.arange(3.0)).all() and twin.v_t is None
    assert twin.current_arrays is not None and twin.current_arrays["a"].dtype == np.float32
    assert twin.train_metrics_aggr_fn is adam.train_metrics_aggr_fn


def test_whatever_is_saved_of_a_strategy_comes_back_of_the_same_kind() -> None:
    given = {
        "scalar": np.float64(0.1),
        "count": np.int32(7),
        "big": 2**63,
        "negative": -(2**70),
        "nested": {"pair": (1, [2.5, None]), 3: b"x"},
        "empty": np.zeros((0, 2), dtype=np.float32),
        "folder": Path("results") / "today",
    }
    strategy, twin = FedAvg(), FedAvg()
    vars(strategy).update(given)
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(strategy_state(strategy)[0]))
    restore_strategy(twin, state)
    for name, value in given.items():
        back = vars(twin)[name]
        assert type(back) is type(value)
        if isinstance(value, np.ndarray):
            assert isinstance(back, np.ndarray) and back.shape == value.shape
        else:
            assert back == value


class Momentum:
    """Something callable that remembers."""

    def __init__(self) -> None:
        self.seen = [1]

    def __call__(self) -> None:
        """Nothing."""


class Pair(NamedTuple):
    one: int
    two: int


@pytest.mark.parametrize(
    "value",
    [
        Momentum(),
        Pair(1, 2),
        defaultdict(int, a=1),
        OrderedDict(a=1),
        np.ma.masked_array([1.0], [True]),
        np.zeros(1, dtype=[("a", float)]),
        [FedAvg()],
        {"f": len},
        Momentum().__call__,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_come_back_as_something_else_is_not_saved(value: Any) -> None:
    strategy = FedAvg()
    vars(strategy)["attribute"] = value
    state, unsaved = strategy_state(strategy)
    assert "attribute" not in state and len(unsaved) == 1 and unsaved[0].startswith("FedAvg.attribute")


class Sealed:
    """Something that cannot be written down."""


def test_an_attribute_that_cannot_be_saved_is_named_and_stops_no_resume(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def sealed() -> FedAdam:
        strategy = FedAdam(eta=0.5)
        strategy.sealed = Sealed()  # type: ignore[attr-defined]
        return strategy

    directed(tmp_path / "whole", sealed(), start="warm").start(federation(N)[0], initial_arrays(), num_rounds=SLOTS * L)
    assert caplog.text.count("after a resume as the app makes it: FedAdam.sealed is a Sealed") == 1
    grid, _ = federation(N)

    def kill(message: Message) -> None:
        if len(grid.sent) > 40:
            raise Killed

    grid.before = kill
    with pytest.raises(Killed):
        directed(tmp_path / "run", sealed(), start="warm").start(grid, initial_arrays(), num_rounds=SLOTS * L)
    grid.before = lambda message: None
    again = sealed()
    directed(tmp_path / "run", again, start="warm").start(grid, initial_arrays(), num_rounds=SLOTS * L)
    assert without_time(tmp_path / "run") == without_time(tmp_path / "whole")
    assert type(again.sealed) is Sealed  # type: ignore[attr-defined]


def test_a_cold_start_needs_no_saved_strategy(tmp_path: Path, whole: list[Any]) -> None:
    grid, _ = federation(N)

    def kill(message: Message) -> None:
        if len(grid.sent) > 40:
            raise Killed

    grid.before = kill
    strategy = FedAvg()
    strategy.sealed = Sealed()  # type: ignore[attr-defined]
    with pytest.raises(Killed):
        directed(tmp_path / "run", strategy).start(grid, initial_arrays(), num_rounds=SLOTS * L)
    grid.before = lambda message: None
    directed(tmp_path / "run", strategy).start(grid, initial_arrays(), num_rounds=SLOTS * L)
    assert without_time(tmp_path / "run") == whole


def test_records_without_a_sound_save_are_refused(tmp_path: Path) -> None:
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=2 * L)
    for file in (tmp_path / "run" / "checkpoint").iterdir():
        file.unlink()
    with pytest.raises(RunError, match="what real clients did cannot be repeated"):
        directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=2 * L)


def test_a_damaged_initial_model_is_refused_also_one_that_can_be_decoded(tmp_path: Path) -> None:
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=2 * L)
    file = tmp_path / "run" / "initial.arrays"
    text = file.read_bytes()
    for damaged in (b"\x93nonsense", text[:-1] + bytes([text[-1] ^ 1]), text[:-1]):
        file.write_bytes(damaged)
        with pytest.raises(RunError, match=r"initial\.arrays is damaged; restore it"):
            directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=2 * L)


def test_a_run_that_lost_records_of_slots_before_its_save_is_refused(tmp_path: Path) -> None:
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=4 * L)
    file = tmp_path / "run" / "slots.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]))  # that of the last slot is in the save
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=4 * L)
    assert file.read_bytes() == b"".join(lines)
    file.write_bytes(b"".join(lines[:1]))
    with pytest.raises(RunError, match="the records of 2 slots before it are missing, the first of slot 2; restore"):
        directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=4 * L)


def test_a_run_whose_initial_model_is_gone_is_not_gone_on_with_from_another(tmp_path: Path) -> None:
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=L)
    (tmp_path / "run" / "initial.arrays").unlink()
    with pytest.raises(RunError, match=r"initial\.arrays is missing and 1 slots were played"):
        directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=L)
    assert not (tmp_path / "run" / "initial.arrays").exists()


def test_another_seed_or_another_selector_does_not_take_a_run_up(tmp_path: Path) -> None:
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=2 * L)
    other = QuickInitUcb(clients=N, budget=K, exploration=0.1, seed=2)
    with pytest.raises(RunMismatchError, match="seed: 1 -> 2"):
        directed(tmp_path / "run", selector=other).start(federation(N)[0], initial_arrays(), num_rounds=2 * L)


def test_two_servers_cannot_write_one_run(tmp_path: Path) -> None:
    grid, _ = federation(N)
    second: list[type] = []

    def intrude(message: Message) -> None:
        if not second:
            second.append(RunLockedError)
            with pytest.raises(RunLockedError):
                directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=2 * L)

    grid.before = intrude
    directed(tmp_path / "run").start(grid, initial_arrays(), num_rounds=2 * L)
    assert second and len(records(tmp_path / "run")) == 2


def test_a_save_keeps_what_clients_first_claimed(tmp_path: Path) -> None:
    directed(tmp_path / "run").start(federation(N)[0], initial_arrays(), num_rounds=2 * L)
    with open_run(tmp_path / "run", read_run(tmp_path / "run").header) as writer:
        checkpoint = writer.load_checkpoint()
        assert checkpoint is not None
        save = msgspec.msgpack.decode(checkpoint.payload)
        save["selector"]["examples"] = {0: 1000, 3: 500}
        writer.save_checkpoint(checkpoint.slot, msgspec.msgpack.encode(save))
    (strategy := directed(tmp_path / "run")).start(federation(N)[0], initial_arrays(), num_rounds=2 * L)
    assert strategy._source.state()["examples"] == {0: 1000, 3: 500}
