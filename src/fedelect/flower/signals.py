"""Signals beside opinions that a server on Flower can measure or read: sizes, seconds, forecasts, losses."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from flwr.app import Message

from fedelect.errors import ConfigurationError, StateError
from fedelect.flower.exchange import LOG
from fedelect.flower.opinions import list_metrics, strip_prefixes
from fedelect.flower.rounds import SlotTraining
from fedelect.vocabulary import UPDATE_SIZE, ClientId, Floats, Signal

MEASURED: frozenset[Signal] = frozenset({"sizes", "seconds", "training_s", "upload_s", "updates", "contributions"})
"""Signals measured at the server, from training replies; contributions only if there is a score of models."""

REPORTED: frozenset[Signal] = frozenset({"loss", "loss_rms"})
"""Signals read from evaluation replies."""

_RMS = "_rms"
_LOSSES = frozenset({"loss", "cross_entropy", "cross_entropy_loss", "ce_loss", "nll", "nll_loss", "log_loss", "mse"})
_LARGEST = 1e9


class SignalTracker:
    """Collects the signals that a selector needs or uses.

    `sizes` is the weight of a client's last update. `seconds` is the time from sending the model to the update, mean
    over the rounds of the slot, for members only. The forecast `training_s` is the mean over the client's updates so
    far; the server cannot tell training from transfer, so `upload_s` is 0 where there is a forecast. `loss` is a metric
    of the evaluation reply; `loss_rms` is the metric of that name with "_rms" behind it or, if no reply has it, `loss`.

    Args:
        clients: N.
        needed: Signals that the selector needs.
        used: Signals that it uses if they come.
        loss: Name of the loss among the evaluation metrics; None to find it.
    """

    def __init__(self, clients: int, *, needed: Collection[Signal], used: Collection[Signal], loss: str | None) -> None:
        self._needed = frozenset(needed) & (MEASURED | REPORTED)
        self._wanted = self._needed | (frozenset(used) & (MEASURED | REPORTED))
        self._loss = loss
        self._looked = loss is not None  # whether evaluation replies have shown what the loss is called
        self._sizes = np.full(clients, np.nan)
        self._total_s = np.zeros(clients)
        self._updates = np.zeros(clients)

    def collect(self, trained: SlotTraining, replies: Mapping[ClientId, Message]) -> dict[Signal, Floats]:
        """Return the (N,) signals after a slot, nan where a client has none, and learn from the slot.

        Args:
            trained: The slot's training.
            replies: Evaluation replies by client.

        Raises:
            ConfigurationError: The selector needs losses and no metric of the replies is plainly one.
        """
        seconds = np.full(self._sizes.size, np.nan)
        for client, size in trained.sizes.items():
            self._sizes[client] = size
        for client, took in trained.seconds.items():
            seconds[client] = math.fsum(took) / len(took)
            self._total_s[client] += math.fsum(took)
            self._updates[client] += len(took)
        known = self._updates > 0
        forecast = np.where(known, self._total_s / np.maximum(self._updates, 1.0), np.nan)
        measured = {
            "sizes": self._sizes.copy(),
            "seconds": seconds,
            "training_s": forecast,
            "upload_s": np.where(known, 0.0, np.nan),
        }
        if "updates" in self._wanted:
            measured["updates"] = np.full((self._sizes.size, UPDATE_SIZE), np.nan)
            for client, projected in trained.updates.items():
                measured["updates"][client] = projected
        if trained.contributions is not None:
            measured["contributions"] = np.full(self._sizes.size, np.nan)
            for client, gain in trained.contributions.items():
                measured["contributions"][client] = gain
        signals = {name: values for name, values in measured.items() if name in self._wanted}
        if self._wanted & REPORTED and replies:
            signals |= self._read_losses(replies)
        return signals

    def read_reports(self, replies: Mapping[ClientId, Message]) -> dict[Signal, Floats]:
        """Return the (N,) losses that candidates report before an election; nan for all others."""
        return self._read_losses(replies) if replies else {}

    def _read_losses(self, replies: Mapping[ClientId, Message]) -> dict[Signal, Floats]:
        name = self._find_loss(replies.values())
        if name is None:
            return {}
        loss, rms = np.full(self._sizes.size, np.nan), np.full(self._sizes.size, np.nan)
        for client, reply in replies.items():
            own = {key: values[0] for key, values in list_metrics([reply]).items() if len(values) == 1}
            loss[client] = _as_loss(own.get(name))
            rms[client] = _as_loss(own.get(name + _RMS, own.get(name)))
        return {key: values for key, values in (("loss", loss), ("loss_rms", rms)) if key in self._wanted}

    def _find_loss(self, replies: Iterable[Message]) -> str | None:
        """Return the name of the loss; raise if it is needed and not plain."""
        if self._looked:
            return self._loss
        metrics = list_metrics(replies)
        found = sorted(name for name in metrics if strip_prefixes(name) in _LOSSES)
        self._looked = True
        if len(found) == 1:
            self._loss = found[0]
            LOG.info("the clients' loss is their metric %r; name another with loss=...", self._loss)
        elif self._needed & REPORTED:
            came = ", ".join(sorted(metrics)) or "no metrics at all"
            said = f"several metrics may be it: {', '.join(found)}" if found else "no metric is plainly it"
            raise ConfigurationError(
                f"the selector needs the clients' losses, and the evaluation replies do not say which metric is the "
                f"loss: {said}; they hold {came}. Name it with loss=..."
            )
        return self._loss

    def state(self) -> dict[str, Any]:
        """Return what was learnt, as plain values."""
        return {
            "loss": self._loss,
            "looked": self._looked,
            "sizes": [None if np.isnan(size) else size for size in self._sizes.tolist()],
            "total_s": self._total_s.tolist(),
            "updates": self._updates.tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            StateError: It is damaged or of another number of clients.
        """
        try:
            arrays = [np.array(state[name], dtype=np.float64) for name in ("sizes", "total_s", "updates")]
            if any(array.shape != self._sizes.shape for array in arrays):
                raise ValueError(f"it is not of {self._sizes.size} clients")
            self._sizes, self._total_s, self._updates = arrays
            self._loss = self._loss or state["loss"]
            self._looked = bool(state["looked"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the saved signals are damaged: {error!r}") from error


def _as_loss(value: float | None) -> float:
    return value if value is not None and 0.0 <= value <= _LARGEST else math.nan
