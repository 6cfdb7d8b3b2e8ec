"""Slow, literal transcriptions of the metrics: one curve or count vector at a time, plain loops."""

import math


def running_mean(curve: list[float], untrained: float | None = None) -> list[float]:
    means = []
    for slot in range(1, len(curve) + 1):
        terms = [] if untrained is None else [untrained]
        for opinion in curve[:slot]:
            if not math.isnan(opinion):
                terms.append(opinion)
        means.append(sum(terms) / len(terms) if terms else math.nan)
    return means


def regret(curve: list[float], oracle: float) -> list[float]:
    lost, losses = 0.0, []
    for opinion in curve:
        if not math.isnan(opinion):
            lost += oracle - opinion
        losses.append(lost)
    return losses


def time_to_target(curve: list[float], target: float) -> tuple[int, float, bool]:
    for slot, value in enumerate(curve, 1):
        if not math.isnan(value) and value >= target - 1e-9:  # rounding
            return slot, value, True
    present = [value for value in curve if not math.isnan(value)]
    return len(curve), present[-1] if present else math.nan, False


def gap(reference: list[float], curve: list[float]) -> float:
    shared = [a - b for a, b in zip(reference, curve, strict=True) if not (math.isnan(a) or math.isnan(b))]
    return sum(shared) / len(shared) if shared else math.nan


def jain_index(counts: list[float]) -> float:
    squares = sum(count**2 for count in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else math.nan


def group_share(counts: list[int], members: list[int]) -> float:
    total = sum(counts)
    return sum(counts[member] for member in members) / total if total else math.nan


def interval(values: list[float], critical: float) -> tuple[float, float]:
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, critical * math.sqrt(variance / len(values))


def final_mean(curve: list[float], end: int, slots: int = 10) -> float:
    held, values = math.nan, []
    for slot, value in enumerate(curve, 1):
        held = held if math.isnan(value) else value
        if end - slots < slot <= end and not math.isnan(held):
            values.append(held)
    return sum(values) / len(values) if values else math.nan


def slots_within(costs: list[float], budget: float) -> int:
    spent, paid = 0.0, 0
    for cost in costs:
        spent += 0.0 if math.isnan(cost) else cost
        if spent > budget:
            break
        paid += 1
    return paid


def closure(selector: list[float], random: list[float], oracle: list[float]) -> float:
    trials = len(selector)
    gained = sum(a - b for a, b in zip(selector, random, strict=True)) / trials
    possible = sum(a - b for a, b in zip(oracle, random, strict=True)) / trials
    return gained / possible


def percentile(values: list[float], percent: float) -> float:
    """Between the two order statistics around the place, in proportion to the distance to each."""
    ordered = sorted(values)
    place = percent / 100.0 * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
