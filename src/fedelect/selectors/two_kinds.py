"""A mixture of two kinds of clients: sound ones, and a minority that is flawed.

Each client has a few values, one for each *channel* of evidence, oriented so that more speaks for a flaw. In each
channel the sound clients are normally distributed around one mean and the flawed around another, not lower, with one
common variance; channels are independent given the kind. Then the evidence against a client is a weighted sum of its
values, monotone in each of them: a client gains nothing by a value that is oddly good.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedelect.vocabulary import Floats

Known = NDArray[np.bool_]
"""(C, N) which values are known."""

_STEPS = 12
_LARGEST_SCORE = 6.0  # one absurd value does not decide the fit
_LEAST_VARIANCE = 0.1  # of scores, whose variance among the sound is about 1
_PRIOR = (0.02, 0.4)  # the flawed are few, and never the majority
_START = 2.0  # score at which a client is as likely flawed as sound in the first step


class Channels(NamedTuple):
    """Scores of all clients.

    Attributes:
        kinds: C kinds of values.
        scores: (C, N) from `score`.
        known: (C, N).
    """

    kinds: tuple[str, ...]
    scores: Floats
    known: Known

    def suspects(self, *, without: Collection[str] = (), only: Collection[str] = ()) -> NDArray[np.bool_]:
        """(N,) those more likely flawed than sound, by all values but those of some kinds, or by those of some alone.

        They are at most half of the clients: the most likely ones. Nobody, if there are no such values.
        """
        rows = [row for row, kind in enumerate(self.kinds) if kind not in without and (not only or kind in only)]
        clients = self.scores.shape[1]
        if not rows:
            return np.zeros(clients, dtype=np.bool_)
        flawed = flawed_probability(self.scores[rows], self.known[rows])
        suspects: NDArray[np.bool_] = flawed > max(0.5, float(np.sort(flawed)[-(clients // 2) - 1]))
        return suspects


def score(values: Floats, known: NDArray[np.bool_], *, least: float = 1e-9) -> Floats:
    """(N,) the values in standard deviations of the sound clients from their centre, within ±6; 0 where not known.

    Centre and deviation come from the median and the half below it, where the flawed are not.

    Args:
        values: (N,) more speaks for a flaw.
        known: (N,) which are known; some must be.
        least: Smallest deviation, in units of the values.
    """
    some = values[known]
    centre = float(np.median(some))
    deviation = 1.4826 * float(np.median(centre - some[some <= centre])) + least
    return np.where(known, np.clip((values - centre) / deviation, -_LARGEST_SCORE, _LARGEST_SCORE), 0.0)


def flawed_probability(scores: Floats, known: Known) -> Floats:
    """(N,) probability that each client is flawed, by expectation and maximisation; 0 where nothing is known of it.

    It is started from the sum of the scores and from each channel alone, and the fit of highest likelihood counts.

    Args:
        scores: (C, N) from `score`, one row for each channel.
        known: (C, N).
    """
    each = scores if len(scores) > 1 else scores[:0]
    starts = np.concatenate([scores.sum(axis=0, keepdims=True) / np.sqrt(len(scores)), each])
    likelihoods, flawed = _fit(scores, known, starts)
    best: Floats = flawed[int(np.argmax(likelihoods))]
    return best


def _fit(scores: Floats, known: Known, starts: Floats) -> tuple[Floats, Floats]:
    """(S,) log likelihoods of the fits that grow from `starts` (S, N), and (S, N) their probabilities."""
    judged = known.any(axis=0)
    flawed = np.where(judged, _logistic(2.0 * (starts - _START)), 0.0)
    for _ in range(_STEPS):
        ours, theirs = flawed[:, None] * known, (1.0 - flawed)[:, None] * known  # (S, C, N)
        ours_total, theirs_total = ours.sum(axis=2) + 1e-9, theirs.sum(axis=2) + 1e-9
        low = (theirs * scores).sum(axis=2) / theirs_total
        high = (ours * scores).sum(axis=2) / ours_total
        spread = ours * (scores - high[:, :, None]) ** 2 + theirs * (scores - low[:, :, None]) ** 2
        variance = spread.sum(axis=2) / (ours_total + theirs_total) + _LEAST_VARIANCE
        high = np.maximum(high, low)
        share = np.clip(flawed[:, judged].mean(axis=1, keepdims=True), *_PRIOR)
        evidence = ((high - low) / variance)[:, :, None] * (scores - (high + low)[:, :, None] / 2)
        ratio = (evidence * known).sum(axis=1)
        flawed = np.where(judged, _logistic(ratio + np.log(share / (1.0 - share))), 0.0)
    sound = -0.5 * ((scores - low[:, :, None]) ** 2 / variance[:, :, None] + np.log(variance)[:, :, None])
    mixed = np.logaddexp(np.log(1.0 - share), np.log(share) + ratio)
    return (sound * known).sum(axis=(1, 2)) + mixed[:, judged].sum(axis=1), flawed


def _logistic(x: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-np.clip(x, -30.0, 30.0)))
