"""Claims about sweeps, theorems and complexity once more; see `recomputed_claims`."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from paper.tests.plain_reading import Estimate, Folder, Trials, Values, exact, mean_of, share_of
from paper.tests.recomputed_claims import (
    Check,
    above,
    beliefs,
    below,
    central,
    democratized,
    gain,
    new,
    paired,
    reading,
    sets,
    shown,
    table,
)

THETAS = ("N20-K5-theta1", "N20-K5-theta0.75", "N20-K5-theta0.5")
COUNTS = tuple(f"N{clients}-K5-theta1" for clients in (20, 40, 60, 80, 100))
METHODS = ("quick-init-ucb", "bp-ucb")


def ahead(folder: Folder, worlds: tuple[str, ...], *, slots: int = 200, most: int = 100) -> list[Check]:
    """Quick-Init UCB less BP-UCB in each world."""
    pairs = [(f"{world}/quick-init-ucb", f"{world}/bp-ucb") for world in worlds]
    return [above(gain(folder, one, other, slots=slots, most=most)) for one, other in pairs]


def ahead_at_last(folder: Folder, worlds: tuple[str, ...]) -> list[Check]:
    """The same in slot 500 alone, shown only; where a slot has no opinion, the last one that has."""
    checks = []
    for world in worlds:
        both = [folder.trials(f"{world}/{method}", slots=500, most=25) for method in METHODS]
        last = [
            trials.by_trial([[one for one in row if one == one][-1] for row in trials.opinions.tolist()])
            for trials in both
            if trials is not None
        ]
        checks.append(shown(mean_of(paired(*last)) if len(last) == 2 else None, low=0.0))
    return checks


def explained(folder: Folder, worlds: tuple[str, ...], *, slots: int = 200, most: int = 100) -> list[Check]:
    """Shares of new cohorts, and Quick-Init UCB with mu = 0.01 less BP-UCB; shown only."""
    pairs = [(f"{world}/quick-init-ucb-exploration-0.01", f"{world}/bp-ucb") for world in worlds]
    return [
        *(
            shown(reading(folder, f"{world}/{method}", new, slots=slots, most=most))
            for method in METHODS
            for world in worlds
        ),
        *(shown(gain(folder, one, other, slots=slots, most=25), low=0.0) for one, other in pairs),
    ]


def by_members(folder: Folder, count: int) -> Check:
    """Quick-Init UCB at theta = 1 less 0.5, slots whose cohort has `count` of clients 0 to 4, in trials with both."""
    means = []
    for world in (THETAS[0], THETAS[2]):
        trials = folder.trials(f"{world}/quick-init-ucb", slots=200)
        if trials is None:
            return shown(None)
        own: Values = {}
        for number, cohorts, opinions in zip(trials.numbers, trials.cohorts.tolist(), trials.opinions, strict=True):
            such = [o for c, o in zip(cohorts, opinions, strict=True) if sum(m < 5 for m in c) == count and o == o]
            own |= {number: float(np.mean(such))} if such else {}
        means.append(own)
    return shown(mean_of(paired(*means)))


def in_cold_start(trials: Trials) -> Values:
    """Mean opinion in the first N / 5 slots."""
    slots = int(trials.clients / 5)
    return trials.by_trial([float(np.nanmean(row[:slots])) for row in trials.opinions])


def iid_members(trials: Trials) -> Values:
    """Clients 0 to 4 in a cohort, on average over the slots after the first N / 5."""
    slots = int(trials.clients / 5)
    return trials.by_trial([float(np.mean([sum(m < 5 for m in c) for c in t[slots:]])) for t in trials.cohorts])


def found(folder: Folder, worlds: tuple[str, ...]) -> list[Check]:
    return [shown(reading(folder, f"{world}/{method}", iid_members)) for method in METHODS for world in worlds]


def declines(folder: Folder, worlds: tuple[str, ...]) -> list[Check]:
    """Each world less the next, for both methods."""
    return [
        above(gain(folder, f"{one}/{method}", f"{other}/{method}"))
        for method in METHODS
        for one, other in pairwise(worlds)
    ]


def decline(folder: Folder, method: str) -> Values | None:
    """Accuracy at theta = 1 less that at theta = 0.5, by trial."""
    many, few = (folder.trials(f"{world}/{method}", slots=200) for world in (THETAS[0], THETAS[2]))
    return None if many is None or few is None else paired(many.accuracy(), few.accuracy())


def sweeps(folder: Folder) -> Iterator[tuple[str, list[Check]]]:
    """Figures `PreTheta`, `PreNum` and `Pre2Slot`."""
    yield "PreTheta.order", ahead(folder, THETAS) + explained(folder, THETAS)
    yield "PreTheta.decline", declines(folder, THETAS) + [by_members(folder, count) for count in range(5)]
    one, other = decline(folder, "bp-ucb"), decline(folder, "quick-init-ucb")
    apart = above(None if one is None or other is None else mean_of(paired(one, other)))
    yield "PreTheta.pronounced", [apart, *found(folder, (THETAS[0], THETAS[2]))]
    yield "PreNum.order", ahead(folder, COUNTS[:3]) + explained(folder, COUNTS[:3])
    random = [shown(reading(folder, f"{world}/quick-init-ucb", in_cold_start)) for world in COUNTS[:3]]
    yield "PreNum.decline", [*declines(folder, COUNTS[:3]), *random, *found(folder, COUNTS[:3])]
    at_500 = [*ahead(folder, COUNTS[:4], slots=500, most=25), *ahead_at_last(folder, COUNTS[:4])]
    yield "Pre2Slot.order", [*at_500, *explained(folder, COUNTS, slots=500, most=25)]
    yield "Pre2Slot.arms", [above(exact(100 * 99 * 98 * 97 * 96 / 120), 1e7)]
    there = folder.trials(f"{COUNTS[-1]}/quick-init-ucb", slots=500, most=25)
    yield "Pre2Slot.impossible", [below(None if there is None else exact(len(there.numbers)), 1.0)]


def convergence(folder: Folder) -> Iterator[tuple[str, list[Check]]]:
    """Theorem 2 and Corollary 1."""
    measured = folder.measured("convergence")
    rows = [] if measured is None else measured["rows"]
    broken = None if measured is None else exact(sum(row["broken_promises"] for row in rows))
    yield "Theorem03.sufficient", [below(broken, 0.5)]
    paper = next((row for row in rows if row["scale"] == 0.001), None)

    def share(name: str) -> Estimate | None:
        return None if paper is None else share_of(paper[name], paper["topologies"])

    bounds = {"theorem_as_printed_holds": 0.5, "theorem_holds": 0.5, "settled": 0.95}
    yield "Theorem03.met", [above(share(name), bound) for name, bound in bounds.items()]


def complexity(folder: Folder) -> Iterator[tuple[str, list[Check]]]:
    """Ratios of times within a repetition."""
    measured = folder.measured("complexity")
    if measured is None:
        yield "complexity.quick_init", [above(None, 1000.0)]
        yield "complexity.bp_ucb", [above(None, 2.0), above(None, 2.0)]
        return
    (few,) = (row for row in measured["rows"] if row["clients"] == 20)
    (many,) = (row for row in measured["rows"] if row["clients"] == 100)
    times = list(zip(*(row[name] for row in (few, many) for name in ("quick_init_ms", "bp_ucb_ms")), strict=True))
    growth = {number: quick_many / quick_few for number, (quick_few, _, quick_many, _) in enumerate(times)}
    relative = {number: (qm / qf) / (bm / bf) for number, (qf, bf, qm, bm) in enumerate(times)}
    ratio = {number: quick_many / bp_many for number, (_, _, quick_many, bp_many) in enumerate(times)}
    yield "complexity.quick_init", [above(mean_of(growth), 1000.0)]
    yield "complexity.bp_ucb", [above(mean_of(relative), 2.0), above(mean_of(ratio), 2.0)]


def regret(folder: Folder) -> Iterator[tuple[str, list[Check]]]:
    """Theorems 1 and 3, at the last slot of a selector's first curve in each world."""
    measured = folder.measured("regret")
    for key, selector in (("Theorem00.regret", "Quick-Init UCB"), ("Theorem02.regret", "BP-UCB")):
        if measured is None:
            yield key, [below(None, 1.0), shown(None, high=1.0), below(None, 1.0), below(None, 1.0)]
            continue
        checks: list[Check] = []
        for number, world in enumerate(measured["worlds"]):
            curve = next(curve for curve in world["curves"] if curve["selector"] == selector)
            lost, half, bound = curve["mean"][-1], curve["half_width"][-1], curve["bound"][-1]
            kept = Estimate(lost / bound, (lost - half) / bound, (lost + half) / bound)
            checks += [below(exact(bound / curve["ceiling"][-1]), 1.0)]
            checks += [below(kept, 1.0) if number else shown(kept, high=1.0)]
        yield key, checks


def recomputed(folder: Path) -> dict[str, list[Check]]:
    """The checks of every claim, by its key."""
    results = Folder(folder)
    parts = (sets, central, beliefs, democratized, table, sweeps, convergence, complexity, regret)
    return {key: checks for part in parts for key, checks in part(results)}


def verdict(checks: list[Check]) -> str:
    """What the outcomes of the deciding checks come to."""
    deciding = [(estimate, low, high) for estimate, low, high, decides in checks if decides]
    if any(estimate is None for estimate, _, _ in deciding):
        return "not measured yet"
    outcomes = {estimate.outcome(low, high) for estimate, low, high in deciding if estimate is not None}
    if "holds" in outcomes:
        return "holds" if outcomes == {"holds"} else "holds in part"
    return "does not hold" if "fails" in outcomes else "undecided"
