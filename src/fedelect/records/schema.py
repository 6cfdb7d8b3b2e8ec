"""What is written down: the header of a run and one record for each slot.

Every field is described in docs/RECORDS.md, and a test keeps page and code together. The values are plain
(numbers, text, tuples), so that any program can read them; a number that is missing is null, never nan.

To change a field is to raise `SCHEMA_VERSION`: a reader refuses versions it does not know.
"""

from operator import attrgetter
from typing import Annotated, Any, Literal, cast

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike

from fedelect.errors import ConfigurationError, RunError
from fedelect.records.provenance import Provenance
from fedelect.vocabulary import Floats

SCHEMA_VERSION = 5
"""Version of the records, the only one that is read; see docs/RECORDS.md for the rule by which it changes."""

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[float, Meta(ge=0.0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]

Status = Literal["done", "abandoned", "skipped"]
Source = Literal["simulator", "flower", "peers"]
Framework = Literal["fa", "da"]


class Exchange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """How the clients of a democratized slot settled their beliefs.

    Attributes:
        rounds: Rounds of messages that were exchanged.
        residual: Largest change of a message in the last round; None if not known.
        outcome: How it ended, in a word or a sentence (for example "settled").
        messages: Messages sent, all clients together.
        virtual_seconds: Time the exchange took on the simulated clock; None where there is no such clock.
    """

    rounds: Count
    residual: NonNegative | None = None
    outcome: str
    messages: Count
    virtual_seconds: NonNegative | None = None


PerClient = tuple[NonNegative | None, ...]


class Signals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Other signals that the selector got; see `fedelect.vocabulary.EXTRA_SIGNALS`.

    Each is (N,) with None where a client has no value, or None as a whole where the selector does not need it.

    Attributes:
        loss: Mean loss of the trained model on each client's own training samples.
        loss_rms: Root of the mean squared loss over those samples.
        sizes: Training samples.
        seconds: What a round took each member of the cohort, seconds.
        training_s: Forecast for the training in a round of the next slot, seconds.
        upload_s: Forecast for the upload, seconds.
        channel_db: Received SNR at the start of the next slot, dB.
        contributions: Estimated share of each member of the cohort in what the slot gained.
    """

    loss: PerClient | None = None
    loss_rms: PerClient | None = None
    sizes: PerClient | None = None
    seconds: PerClient | None = None
    training_s: PerClient | None = None
    upload_s: PerClient | None = None
    channel_db: tuple[float | None, ...] | None = None
    contributions: tuple[float | None, ...] | None = None


class Measures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What a slot achieved and cost; no selector sees it.

    Attributes:
        accuracy: Accuracy of the slot's model on the clean test set of all clients; None if not measured.
        low_accuracy: 10th percentile over all clients of the accuracy on their own clean test shares; measured now and
            then, else None.
        flawed_share: Share of the cohort that is flawed; None where nobody knows.
        evaluations: Clients that were asked to evaluate the model.
        bytes_down: Bytes of models sent to clients, to train and to evaluate; None if not known.
        bytes_up: Bytes of updates that clients sent; None if not known.
    """

    accuracy: Share | None = None
    low_accuracy: Share | None = None
    flawed_share: Share | None = None
    evaluations: Count | None = None
    bytes_down: Count | None = None
    bytes_up: Count | None = None


class SlotRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False, eq=False):
    """One slot of one selector in one trial. Two records are equal if all but `seconds` is.

    Attributes:
        selector: Label of the selector, as in the header.
        trial: Number of the Monte Carlo trial, from 0.
        slot: Number of the slot, from 1.
        status: "done" (trained and told), "abandoned" (elected, but nothing was learnt), "skipped" (nobody elected).
        cohort: The clients elected, sorted.
        arrivals: For each member of the cohort, in how many of the slot's rounds its upload arrived.
        rounds: Rounds of training that were run.
        empty_rounds: Rounds in which no upload arrived.
        indices: The upper confidence indices that won; see `fedelect.vocabulary.Selection`.
        opinions: (N,) each client's opinion in [0, 1], None where it gave none; None if not on record.
        beliefs: (N,) each client's unnormalised belief, None where there is none; None if not on record.
        mean_opinion: The average opinion of the slot's model, corrected for who was asked; None if there is none or it
            stayed with the clients.
        reward: The reward that the selector was told: the average opinion, or in a warm start 0.5 + what it gained
            against what was to be expected; None if it was told none.
        reward_noise: Standard deviation of noise added to `reward`.
        exchange: How the beliefs were settled; None under federated analytics.
        signals: Other signals that the selector got; None if there were none.
        available: How many clients could be elected; None for all.
        candidates: Clients that were asked to report before the election, sorted.
        failed: Clients whose training failed (error, time-out, refused update), sorted; a lost upload is no failure.
        left_out: Clients that were left out after failures, sorted.
        joined: (client, name) of clients seen for the first time, where names are not known beforehand.
        measures: What the slot achieved and cost; None if not measured.
        note: Why the slot was abandoned or skipped.
        seconds: Wall-clock time of the slot; no part of what makes records equal.
    """

    selector: str
    trial: Count
    slot: Positive
    status: Status
    cohort: tuple[Count, ...]
    arrivals: tuple[Count, ...]
    rounds: Count
    empty_rounds: Count
    indices: tuple[float, ...] = ()
    opinions: tuple[Share | None, ...] | None = None
    beliefs: tuple[NonNegative | None, ...] | None = None
    mean_opinion: float | None = None
    reward: float | None = None
    reward_noise: NonNegative = 0.0
    exchange: Exchange | None = None
    signals: Signals | None = None
    available: Count | None = None
    candidates: tuple[Count, ...] = ()
    failed: tuple[Count, ...] = ()
    left_out: tuple[Count, ...] = ()
    joined: tuple[tuple[Count, str], ...] = ()
    measures: Measures | None = None
    note: str | None = None
    seconds: NonNegative | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlotRecord) and _compared(self) == _compared(other)

    def __ne__(self, other: object) -> bool:
        # Needed: msgspec's structs do not derive != from ==.
        return not self == other

    def __hash__(self) -> int:
        return hash(_compared(self))


COMPARED_FIELDS = tuple(name for name in SlotRecord.__struct_fields__ if name != "seconds")
"""The fields by which two records of one slot are compared."""

_compared = attrgetter(*COMPARED_FIELDS)


class SelectorEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One selector of a run.

    Attributes:
        label: Its name in this run, unique; records refer to it.
        kind: The class of the selector, for example "BpUcb".
        parameters: What it was made with, plain values.
    """

    label: str
    kind: str
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def title(self) -> str:
        """The label; for "auto" with the class that it stands for in this run."""
        return f"{self.label} ({self.kind})" if self.label == "auto" else self.label


class Optimum(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The best cohort of a world in which the value of every cohort is known exactly: that of an atlas.

    Attributes:
        cohort: Its members, sorted.
        value: Its mean opinion.
        smallest_gap: R_min: value minus the best lower value of a cohort; None if none is lower.
        largest_gap: R_max: value minus the lowest value of a cohort; None likewise.
    """

    cohort: tuple[Count, ...]
    value: Share
    smallest_gap: NonNegative | None
    largest_gap: NonNegative | None


class RunHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is. All but `provenance` is its identity: a folder is resumed only under an equal header.

    Attributes:
        schema: `SCHEMA_VERSION` of the writer.
        source: Which driver made it: "simulator", "flower" or "peers".
        engine: What trained, for example "plain"; results of different engines may differ in the last bits.
        framework: "fa" (the average reaches the server) or "da" (the clients elect among themselves).
        seed: The one seed of the run.
        clients: N, how many clients there are.
        budget: K, how many train in a slot; in the first one, if that changes (`resized`).
        slots: T, how many slots each trial has.
        trials: How many Monte Carlo trials there are.
        selectors: The selectors compared, with unique labels.
        scenario: The world's configuration, plain values.
        data_digest: Hash of the data the clients hold shares of, or None where it is not known.
        groups: Named groups of clients, for example "iid".
        flaws: Kind of flaw -> the clients that have it; empty where nobody knows or there is none.
        client_names: N names, or None.
        positions_km: N pairs (x, y) in kilometres, or None.
        edges: Pairs of linked clients (i < j), or None.
        sizes: N numbers of training samples, or None.
        upload_probability: N probabilities that an upload arrives, or None.
        untrained: For each trial the mean opinion of the untrained model (None where unknown), or None.
        optimum: The best of all cohorts, where an atlas knows it, or None.
        provenance: Where the run comes from.
    """

    schema: int = SCHEMA_VERSION
    source: Source
    engine: str | None = None
    framework: Framework
    seed: int
    clients: Positive
    budget: Positive
    slots: Positive
    trials: Positive
    selectors: tuple[SelectorEntry, ...]
    scenario: dict[str, Any]
    data_digest: str | None = None
    groups: dict[str, tuple[Count, ...]] = msgspec.field(default_factory=dict)
    flaws: dict[str, tuple[Count, ...]] = msgspec.field(default_factory=dict)
    client_names: tuple[str, ...] | None = None
    positions_km: tuple[tuple[float, float], ...] | None = None
    edges: tuple[tuple[Count, Count], ...] | None = None
    sizes: tuple[Count, ...] | None = None
    upload_probability: tuple[Share, ...] | None = None
    untrained: tuple[Share | None, ...] | None = None
    optimum: Optimum | None = None
    provenance: Provenance

    def __post_init__(self) -> None:
        labels = [entry.label for entry in self.selectors]
        if len(set(labels)) != len(labels) or "" in labels:
            raise ConfigurationError(f"selectors must have different, non-empty labels; got {labels}")
        if self.budget > self.clients:
            raise ConfigurationError(f"budget {self.budget} exceeds the {self.clients} clients")
        for name in ("client_names", "positions_km", "sizes", "upload_probability"):
            _check_length(name, getattr(self, name), self.clients, "client")
        _check_length("untrained", self.untrained, self.trials, "trial")
        members = [(f"groups.{name}", group) for name, group in self.groups.items()]
        members += [(f"flaws.{name}", group) for name, group in self.flaws.items()]
        for where, clients in [*members, *(("edges", edge) for edge in self.edges or ())]:
            if any(not 0 <= client < self.clients for client in clients):
                raise ConfigurationError(f"{where} names a client outside 0..{self.clients - 1}: {list(clients)}")

    @property
    def labels(self) -> tuple[str, ...]:
        """The selectors' labels, in the order of the header."""
        return tuple(entry.label for entry in self.selectors)

    @property
    def resized(self) -> bool:
        """Whether the number of clients that train changes from slot to slot (`budget=` a function, on Flower)."""
        return "budget_function" in self.scenario

    @property
    def planned(self) -> int:
        """How many records the finished run has: one for each selector, trial and slot."""
        return len(self.selectors) * self.trials * self.slots


def _check_length(name: str, values: tuple[object, ...] | None, expected: int, what: str) -> None:
    if values is not None and len(values) != expected:
        raise ConfigurationError(f"{name} must have one value for each {what} ({expected}), got {len(values)}")


def from_array(values: ArrayLike) -> tuple[float | None, ...]:
    """One value for each client, shape (N,), as it is written: a tuple with None in place of nan.

    >>> from_array([0.5, float("nan")])
    (0.5, None)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or np.isinf(array).any():
        raise RunError(f"a record holds one finite number or nan for each client; got {values!r}")
    plain: list[float | None] = array.tolist()
    for missing in np.flatnonzero(np.isnan(array)).tolist():
        plain[missing] = None
    return tuple(plain)


def to_array(values: tuple[float | None, ...]) -> Floats:
    """The reverse of `from_array`: shape (N,) with nan in place of None.

    >>> to_array((0.5, None))
    array([0.5, nan])
    """
    return np.array(cast("tuple[float, ...]", values), dtype=np.float64)
