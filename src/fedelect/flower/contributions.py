"""What members contributed to a round: GTG-Shapley estimates, by a score of models that the user gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from flwr.app import Array, ArrayRecord, Message

from fedelect.equations.shapley import gtg_shapley
from fedelect.errors import ConfigurationError
from fedelect.seeds import stream
from fedelect.vocabulary import ClientId, Floats

Score = Callable[[ArrayRecord], float]
"""Score of a model at the server, higher is better; such as its accuracy on validation data."""

_LARGEST = 1e6


@dataclass(frozen=True)
class ContributionEstimator:
    """Estimates contributions from the updates of a round; see `fedelect.equations.shapley`.

    The model of a set of members is the average of their updates, by their weights, whatever the inner strategy makes
    of all of them. Arrays that are no floats stay as they were sent.

    Attributes:
        score: The score.
        seed: Orders of members come from its stream ("contributions", slot, round).
    """

    score: Score
    seed: int

    def estimate(
        self,
        sent: ArrayRecord,
        updates: Mapping[ClientId, Message],
        weights: Mapping[ClientId, float],
        *,
        slot: int,
        round_: int,
    ) -> dict[ClientId, float]:
        """Return the contribution of each member whose update arrived.

        Args:
            sent: The model that they trained from.
            updates: Client -> its update.
            weights: Client -> the weight of its update; 1 for those that gave none.
            slot: The slot.
            round_: The round in it, from 0.

        Raises:
            ConfigurationError: The score fails, or is not a number within ±1e6.
        """
        clients = sorted(updates)
        models = [next(iter(updates[client].content.array_records.values()), ArrayRecord()) for client in clients]
        shares = np.array([max(weights.get(client, 1.0), 0.0) for client in clients])
        shares = shares if shares.any() else np.ones(len(clients))

        def value(chosen: tuple[int, ...]) -> float:
            own = shares[list(chosen)]
            if not own.any():  # nobody, or members without a single example
                return self._score(sent)
            return self._score(_average(sent, [models[place] for place in chosen], own / own.sum()))

        found = gtg_shapley(value, len(clients), stream(self.seed, "contributions", slot, round_))
        return dict(zip(clients, found.tolist(), strict=True))

    def _score(self, model: ArrayRecord) -> float:
        try:
            score = float(self.score(model))
        except Exception as error:  # a user's function may raise anything
            raise ConfigurationError(
                f"score: it failed with {error!r}; allowed: a function of a model (an ArrayRecord) into a number"
            ) from error
        if not abs(score) <= _LARGEST:
            raise ConfigurationError(f"score: it returned {score!r}; allowed: a number within ±{_LARGEST:g}")
        return score


def _average(sent: ArrayRecord, models: list[ArrayRecord], shares: Floats) -> ArrayRecord:
    """Average the floats of models by the shares, which sum to 1; the rest is as it was sent."""
    averaged = ArrayRecord()
    for name, array in sent.items():
        if array.dtype.startswith("float") and all(name in model for model in models):
            parts = zip(shares.tolist(), models, strict=True)
            total = sum(share * model[name].numpy().astype(np.float64) for share, model in parts)
            averaged[name] = Array(np.asarray(total, dtype=array.dtype))
        else:
            averaged[name] = array
    return averaged
