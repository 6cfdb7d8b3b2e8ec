"""Cohorts from elections among the clients (FL&DA): the server asks them to elect and verifies certificates."""

import contextlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, final

import msgspec
from flwr.app import ArrayRecord, Message

from fedelect.errors import NoElection, RemoteProtocolError, RunError, StateError
from fedelect.flower.cohort_source import SlotOutcome, SurveyPlan
from fedelect.flower.election_messages import (
    ELECTION,
    RECORD,
    ClientOutcome,
    ElectionAnswer,
    ElectionRequest,
    read_answer,
)
from fedelect.flower.exchange import LOG, Answers, EarlyStop
from fedelect.flower.rounds import Rounds, SlotTraining
from fedelect.flower.settings import RunDescription
from fedelect.protocol import CertificateChain
from fedelect.runtime.roster import read_roster
from fedelect.runtime.server import ElectionServer
from fedelect.runtime.signing import Ed25519Verifier
from fedelect.vocabulary import ClientId, Selection

GRACE_S = 30.0
"""Seconds to wait for the other answers once one shows the slot's certificate."""

LABEL = "peers"
"""Label of the election in the records."""


@final
class CertificateSource:
    """Cohorts elected by the clients' peers; only those whose certificate extends the verified chain.

    Args:
        roster: Folder with the server's `roster.json`.

    Attributes:
        roster: The roster.
    """

    def __init__(self, roster: Path) -> None:
        self.roster = read_roster(roster)
        self._server = ElectionServer(self.roster.config(), Ed25519Verifier())
        self._judged = 0  # slot in which the current model was trained
        self._restored = False
        self._said = ""  # outcome of the last election, for messages

    @property
    def chain(self) -> CertificateChain:
        """The certificates so far."""
        return self._server.chain

    @property
    def description(self) -> RunDescription:
        """Settings of the election; the hash of its configuration ties a run to its federation."""
        settings = cast("dict[str, Any]", msgspec.to_builtins(self.roster.settings))
        elsewhere = ("budget", "seed")
        return RunDescription(
            label=LABEL,
            kind="Peer",
            parameters={name: value for name, value in settings.items() if name not in elsewhere},
            framework="da",
            seed=self.roster.settings.seed,
            clients=self._server.config.clients,
            budget=self._server.config.settings.budget,
            scenario={"configuration": self._server.config.digest.hex()},
            edges=self.roster.edges,
        )

    def needed(self, slot: int) -> int:
        """Return the number of signatures in a certificate."""
        return self._server.config.quorum

    @property
    def sketch_seed(self) -> None:
        """No updates: peers elect by opinions alone."""

    @property
    def estimator(self) -> None:
        """No contributions: the same."""

    @property
    def used(self) -> bool:
        """Whether there is a certificate."""
        return len(self.chain) > 0

    @property
    def reuse_error(self) -> str:
        """The strategy holds another run's elections."""
        return "this strategy has been started before; make a new one, which takes up what its run folder holds"

    def decide(self, slot: int, there: Collection[ClientId], model: ArrayRecord, rounds: Rounds) -> Selection:
        """Let all connected clients judge the model and elect; return the certified cohort."""
        self._hold(slot, model, rounds)
        certificate = self.chain.at(slot)
        if certificate is None:
            raise NoElection(f"no certificate for slot {slot}; {self._said}")
        return Selection(slot, certificate.cohort)

    def plan_survey(self, selection: Selection, rounds: Rounds) -> SurveyPlan | None:
        """Ask nobody: the clients judge the model when they elect for the next slot."""
        return None

    def learn(
        self, selection: Selection, trained: SlotTraining, plan: SurveyPlan | None, answers: Answers, rounds: Rounds
    ) -> SlotOutcome:
        """Note the slot of the model; the clients judge it when they elect for the next slot."""
        if trained.abandoned is None:
            self._judged = selection.slot
        return SlotOutcome(note=trained.abandoned)

    def close(self, slot: int, model: ArrayRecord, rounds: Rounds) -> None:
        """Hold one more election, in which the last model is judged; nobody trains."""
        if self._judged == 0 or self.chain.slot > slot:
            return
        there = rounds.clients.locate()
        needed = self.needed(slot + 1)
        if len(there) < needed:
            LOG.warning("the last model is not judged: %d clients are there and %d must sign", len(there), needed)
            return
        self._hold(slot + 1, model, rounds)

    def state(self) -> dict[str, Any]:
        """Return the certificates, and the slot that the model was trained in."""
        return {"version": 1, "judged": self._judged, "certificates": self._server.frames}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Verify saved certificates anew, and continue from them."""
        try:
            self._judged = int(state["judged"])
            self._server.restore(state["certificates"])
            self._restored = True
        except (KeyError, TypeError, ValueError, RemoteProtocolError) as error:
            raise StateError(f"the saved certificates do not verify: {error}; begin a new folder") from error

    def _hold(self, slot: int, model: ArrayRecord, rounds: Rounds) -> None:
        """Ask all clients; those that show a certificate with an unknown past are asked once more, for all.

        Raises:
            RunError: The peers are past the slots of a run that was never interrupted: they elected for another one.
        """
        if self.chain.slot >= slot:  # the peers' history is ahead of this run
            self._said = "the clients' elections are past it"
            return
        self._server.begin(slot)
        after, only = self.chain.slot, None
        outcomes: dict[ClientId, ClientOutcome | None] = {}
        while True:
            shown = self._ask(slot, after, only, outcomes, model, rounds)
            unlinked = self._server.take_unlinked()
            if self.chain.slot >= slot:
                break
            if unlinked:
                after, only = 0, unlinked
            elif shown.last > after and shown.agreed:  # an answer holds no more than `MOST_CERTIFICATES`
                after, only = shown.last, shown.agreed
            else:
                break
        if self.chain.slot > slot and not self._restored:
            raise RunError(
                f"these peers have elected up to slot {self.chain.slot} for another run; restore its folder, or found "
                f"a new federation (fedelect peers init) and begin a new folder"
            )

    def _ask(
        self,
        slot: int,
        after: int,
        only: Collection[ClientId] | None,
        outcomes: dict[ClientId, ClientOutcome | None],
        model: ArrayRecord,
        rounds: Rounds,
    ) -> "_Shown":
        """Ask clients (None: all connected ones) to elect, and note the outcome at each in `outcomes`."""
        last = self._server.last_frames

        def request(client: ClientId) -> Any:
            return ElectionRequest(
                slot=slot,
                judged=self._judged,
                client=client,
                configuration=self._server.config.digest,
                after=after,
                certificates=last,
            ).record()

        judged = (self._judged, model) if self._judged > 0 else None
        enough = EarlyStop(lambda reply: self._decided_by(reply, slot), GRACE_S)
        answers, asked = rounds.ask_all(
            judged, message_type=ELECTION, record=RECORD, fill=request, only=only, enough=enough
        )
        outcomes.update(dict.fromkeys(asked))
        failures, shown = dict(answers.failures), _Shown()
        for client, reply in answers.replies.items():
            try:
                answer = self._read(reply, slot)
                outcomes[client] = answer.outcome
                for frame in answer.certificates:
                    shown.last = max(shown.last, self._server.admit(frame, client))
                shown.agreed += [client] if answer.outcome == "agreed" else []
            except RemoteProtocolError as reason:
                failures[client], outcomes[client] = f"its answer counts for nothing: {reason}", None
        for client, why in sorted(failures.items()):
            LOG.warning("slot %d: %s takes no part in the election: %s", slot, rounds.clients.list_names([client]), why)
        counts = Counter(outcome or "without a sound answer" for outcome in outcomes.values())
        counted = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        self._said = f"of {len(outcomes)} clients asked: {counted or 'nobody'}"
        LOG.info("slot %d: election: %s", slot, self._said)
        return shown

    def _decided_by(self, reply: Message, slot: int) -> bool:
        """Return whether the slot's certificate is known, with what this answer shows."""
        with contextlib.suppress(RemoteProtocolError):  # it is read again, and reported, after the exchange
            for frame in self._read(reply, slot).certificates:
                self._server.admit(frame)
        return self._server.elected is not None

    def _read(self, reply: Message, slot: int) -> ElectionAnswer:
        try:
            return read_answer(reply.content, slot)
        except RemoteProtocolError:
            raise
        except Exception as error:  # what Flower makes of hostile bytes
            raise RemoteProtocolError(f"it cannot be read: {type(error).__name__}") from error


@dataclass(slots=True)
class _Shown:
    """Clients that have the slot's certificate, and the last slot that any client showed."""

    agreed: list[ClientId] = field(default_factory=list)
    last: int = 0
