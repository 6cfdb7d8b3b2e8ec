"""Tables from the rows of `engine.py`: medians over rounds, and ratios taken within a round."""

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean, median
from typing import Any

from benchmarks.contenders.work import Work
from benchmarks.engine_plan import CONTENDERS, STACKED

Row = dict[str, Any]
ByRound = dict[int, float]

TOLERANCE = 0.002

_HEAD = (
    *("ms/slot", "min", "max", "/ plain", "min", "max", "/ rival", "% sgemm", "peak MB"),
    *("accuracy", "off by", "at most"),
)


def print_group(rows: Iterable[Row], group: str, work: Work) -> float:
    """Print one table; returns the largest difference in mean accuracy from the plain loop on the same trials."""
    mine = [row for row in rows if row["group"] == group]
    times: dict[tuple[str, str], ByRound] = defaultdict(dict)
    for row in mine:
        times[row["entry"], row["run"]][row["round"]] = row["seconds"] / row["replica_slots"]
    plain = times["plain", ""]
    contenders = {key: by_round for key, by_round in times.items() if key[0].startswith(CONTENDERS)}
    best = min(contenders, key=lambda key: median(contenders[key].values())) if contenders else None
    peaks = [sum(_flat(row["values"])) for row in mine if row["entry"].startswith("sgemm")]
    rounds = 1 + max(row["round"] for row in mine)
    print(f"\n{group}, {rounds} rounds; sgemm {median(peaks):.0f} GFLOP/s ({min(peaks):.0f} to {max(peaks):.0f})")
    print(f"{'contender':26} {'':6}", *(f"{title:>8}" for title in _HEAD))
    worst = 0.0
    for (entry, run), by_round in times.items():
        if entry.startswith("sgemm"):
            continue
        own = [row for row in mine if (row["entry"], row["run"]) == (entry, run)]
        ratio = _ratios(plain, by_round)
        milliseconds = [1e3 * seconds for seconds in by_round.values()]
        over = median(_ratios(contenders[best], by_round)) if best else math.nan
        share = 100 * work.flop / median(by_round.values()) / 1e9 / median(peaks)
        accuracy, off, most = _accuracies(mine, own)
        worst = worst if off <= worst else off  # also where there is none to compare
        print(
            f"{entry:26} {run:6} {median(milliseconds):8.1f} {min(milliseconds):8.1f} {max(milliseconds):8.1f} "
            f"{median(ratio):8.2f} {min(ratio):8.2f} {max(ratio):8.2f} {over:8.2f} {share:8.1f} "
            f"{max(row['peak_mb'] for row in own):8.0f} {accuracy:8.4f} {off:8.4f} {most:8.4f}"
            f"{'' if off <= TOLERANCE else ' !'}"
        )
    if best:
        print(f"Best rival: {best[0]}. '/ plain' and '/ rival' say how many times faster, within a round.")
        _print_against_each(times, contenders)
    return worst


def _print_against_each(times: dict[tuple[str, str], ByRound], contenders: dict[tuple[str, str], ByRound]) -> None:
    """How many times faster ours are than each rival in the better of its settings."""
    best: dict[str, ByRound] = {}
    for (entry, _), by_round in sorted(contenders.items(), key=lambda item: -median(item[1].values())):
        best[entry.split()[0]] = by_round
    ours = {key: by_round for key, by_round in times.items() if key[0].startswith(STACKED)}
    if ours:
        print(f"{'times faster than':33}", *(f"{name:>12}" for name in best))
    for (entry, run), by_round in ours.items():
        print(f"{entry:26} {run:6}", *(f"{median(_ratios(other, by_round)):12.1f}" for other in best.values()))


def print_growth(rows: Iterable[Row]) -> None:
    """Print how the time of all replica-slots grows when one number grows: 1 is linear, 0 is free."""
    times: dict[tuple[str, str], ByRound] = defaultdict(dict)
    for row in rows:
        if row["group"] == "growth":
            times[row["entry"].split()[0], row["run"]][row["round"]] = row["seconds"]
    if not times:
        return
    print("\nGrowth from the base point; exponent of the total time (1: linear), replicas M, slots T")
    print(f"{'contender':16} {'grown':8} {'seconds':>8} {'/ base':>8} {'exponent':>9}")
    for name in (*STACKED, "plain"):
        base = times.get((name, "base"))
        for (contender, point), by_round in times.items():
            if contender != name or not base:
                continue
            line = f"{name:16} {point:8} {median(by_round.values()):8.2f}"
            if point != "base":
                grown = median(1 / ratio for ratio in _ratios(base, by_round))
                line += f" {grown:8.2f} {math.log(grown) / math.log(float(point.partition('x')[2])):9.2f}"
            print(line)


def _ratios(base: ByRound, other: ByRound) -> list[float]:
    """How many times faster than the base, in each round that has both."""
    return [base[number] / other[number] for number in base if number in other] or [math.nan]


def _flat(values: list[dict[str, float]]) -> list[float]:
    return [value for each in values for value in each.values()]


def _accuracies(group: list[Row], own: list[Row]) -> tuple[float, float, float]:
    """Mean accuracy; then, over trials that the plain loop ran too, the mean's difference and the largest one."""
    plain = {
        trial: value
        for row in group
        if row["entry"].startswith("plain")
        for values in row["values"]
        for trial, value in values.items()
    }
    pairs = [(trial, value) for row in own for values in row["values"] for trial, value in values.items()]
    accuracy = fmean(value for _, value in pairs)
    differences = [value - plain[trial] for trial, value in pairs if trial in plain]
    if not differences:
        return accuracy, math.nan, math.nan
    return accuracy, abs(fmean(differences)), max(abs(difference) for difference in differences)
