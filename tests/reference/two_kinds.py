"""The mixture of two kinds of clients, term by term."""

import math


def flawed_probability(scores: list[list[float]], known: list[list[bool]]) -> list[float]:
    """As `fedelect.selectors.two_kinds.flawed_probability`, by plain loops."""
    channels, clients = range(len(scores)), range(len(scores[0]))
    starts = [[sum(scores[c][n] for c in channels) / math.sqrt(len(scores)) for n in clients]]
    if len(scores) > 1:
        starts += [list(row) for row in scores]
    best, answer = -math.inf, [0.0 for _ in clients]
    for start in starts:
        likelihood, flawed = _fit(scores, known, start)
        if likelihood > best:
            best, answer = likelihood, flawed
    return answer


def _fit(scores: list[list[float]], known: list[list[bool]], start: list[float]) -> tuple[float, list[float]]:
    channels, clients = range(len(scores)), range(len(scores[0]))
    judged = [n for n in clients if any(known[c][n] for c in channels)]
    flawed = [_logistic(2 * (start[n] - 2)) if n in judged else 0.0 for n in clients]
    low, high, variance, share, ratio = [0.0] * len(scores), [0.0] * len(scores), [1.0] * len(scores), 0.0, flawed
    for _ in range(12):
        for c in channels:
            who = [n for n in clients if known[c][n]]
            ours, theirs = sum(flawed[n] for n in who) + 1e-9, sum(1 - flawed[n] for n in who) + 1e-9
            high[c] = sum(flawed[n] * scores[c][n] for n in who) / ours
            low[c] = sum((1 - flawed[n]) * scores[c][n] for n in who) / theirs
            spread = sum(
                flawed[n] * (scores[c][n] - high[c]) ** 2 + (1 - flawed[n]) * (scores[c][n] - low[c]) ** 2 for n in who
            )
            variance[c] = spread / (ours + theirs) + 0.1
            high[c] = max(high[c], low[c])
        share = min(max(sum(flawed[n] for n in judged) / len(judged), 0.02), 0.4)
        ratio = [
            sum(
                (high[c] - low[c]) / variance[c] * (scores[c][n] - (high[c] + low[c]) / 2)
                for c in channels
                if known[c][n]
            )
            for n in clients
        ]
        flawed = [_logistic(ratio[n] + math.log(share / (1 - share))) if n in judged else 0.0 for n in clients]
    likelihood = 0.0
    for n in judged:
        for c in channels:
            if known[c][n]:
                likelihood -= 0.5 * ((scores[c][n] - low[c]) ** 2 / variance[c] + math.log(variance[c]))
        likelihood += math.log(1 - share + share * math.exp(ratio[n]))
    return likelihood, flawed


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-min(max(x, -30.0), 30.0)))
