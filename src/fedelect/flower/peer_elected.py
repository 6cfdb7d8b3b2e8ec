"""Flower strategy in which the clients elect the cohort (FL&DA) and the server sees no opinion."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import final

from flwr.serverapp.strategy import Strategy

from fedelect.flower.certificate_source import CertificateSource
from fedelect.flower.nodes import IdentitySource
from fedelect.flower.settings import SlotSettings, Start
from fedelect.flower.slot_strategy import AbstractSlotStrategy
from fedelect.protocol import Certificate
from fedelect.records import OnSlot


@final
class PeerElected(AbstractSlotStrategy):
    """Lets the clients' peers elect who trains (FL&DA); any other strategy of Flower's Message API aggregates.

    Before each slot all connected clients are sent the model. Each judges it and gives its opinion to its peer
    (`ElectionMod`); the peers elect, and the server verifies the certificate of the election. A slot without one is
    skipped: nobody trains, and the model stays.

    Args:
        strategy: What aggregates, and says what is sent; as in `GoalDirected`.
        roster: Folder with the server's `roster.json`, as `fedelect peers init` made it. There is no key in it.
        rounds_per_slot: L, rounds of training in a slot.
        run: The run folder, for records and state; an existing one is gone on with. A folder belongs to one federation.
        start: "warm" (each slot trains on from the last slot's model) or "cold" (from the initial model; at least 5
            rounds a slot; the result is the last slot's model, for the server knows no opinions).
        train_quorum: Members whose update is needed in each round; with fewer the slot is abandoned.
        wait_s: How long to wait for clients: for all of them at the start, for as many as must sign before a slot.
        abandoned_allowed: How many slots in a row may be skipped or abandoned before the run is stopped.
        identity: Where clients' names come from; see `fedelect.flower.nodes`.
        names: The SuperNodes' names in the order of the roster; by default they are the roster's own.
        on_slot: Called with the record of each slot, as in `GoalDirected`; the server's records hold no opinions.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        roster: str | os.PathLike[str],
        rounds_per_slot: int = 1,
        run: str | os.PathLike[str],
        start: Start = "warm",
        train_quorum: int = 1,
        wait_s: float = 300.0,
        abandoned_allowed: int = 3,
        identity: IdentitySource = "auto",
        names: Sequence[str] | None = None,
        on_slot: OnSlot | None = None,
    ) -> None:
        self._peers = CertificateSource(Path(roster))
        settings = SlotSettings(
            rounds_per_slot=rounds_per_slot,
            start=start,
            train_quorum=train_quorum,
            wait_s=wait_s,
            abandoned_allowed=abandoned_allowed,
            identity=identity,
            names=tuple(member.name for member in self._peers.roster.members) if names is None else tuple(names),
        )
        super().__init__(strategy, settings, self._peers, run, on_slot)

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Verified certificates, oldest first."""
        return self._peers.chain.certificates
