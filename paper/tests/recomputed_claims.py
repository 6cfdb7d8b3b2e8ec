"""Every claim of the paper once more: what is measured, by `plain_reading`, and where the paper has it.

A check is (estimate or None, lower end, upper end, whether it decides). The paper's figures are typed in again here.
"""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from paper.tests.plain_reading import Estimate, Folder, Trials, Values, exact, mean_of, share_of

Check = tuple[Estimate | None, float, float, bool]
Checks = Callable[[Folder], list[Check]]

INF = math.inf
MAIN = "N20-K5-theta1"
OPTIMAL, LAST = f"{MAIN}/fixed-cohort-0-1-2-3-4", f"{MAIN}/fixed-cohort-15-16-17-18-19"
RANDOM, ROBIN, SUBSETS = f"{MAIN}/random", f"{MAIN}/round-robin", f"{MAIN}/subset-ucb"
QUICK, BELIEF = f"{MAIN}/quick-init-ucb", f"{MAIN}/bp-ucb"
POINT = 0.01


def above(estimate: Estimate | None, bound: float = 0.0) -> Check:
    return estimate, bound, INF, True


def below(estimate: Estimate | None, bound: float) -> Check:
    return estimate, -INF, bound, True


def near(estimate: Estimate | None, value: float, slack: float) -> Check:
    return estimate, value - slack, value + slack, True


def shown(estimate: Estimate | None, low: float = -INF, high: float = INF) -> Check:
    return estimate, low, high, False


def reading(
    folder: Folder, series: str, read: Callable[[Trials], Values], *, slots: int = 200, most: int = 100
) -> Estimate | None:
    trials = folder.trials(series, slots=slots, most=most)
    return None if trials is None else mean_of(read(trials))


def accuracy(folder: Folder, series: str, *, slots: int = 200) -> Estimate | None:
    return reading(folder, series, Trials.accuracy, slots=slots)


def paired(one: Values, other: Values) -> Values:
    return {trial: one[trial] - other[trial] for trial in sorted(set(one) & set(other))}


def gain(folder: Folder, one: str, other: str, *, slots: int = 200, most: int = 100) -> Estimate | None:
    first, second = (folder.trials(series, slots=slots, most=most) for series in (one, other))
    return None if first is None or second is None else mean_of(paired(first.accuracy(), second.accuracy()))


def sets(folder: Folder) -> Iterator[tuple[str, list[Check]]]:
    """Figure `1_2`."""
    losses = folder.measured("losses")

    def last(budget: int, back: int = 1, kind: str = "objective") -> Values:
        return {trial: one[kind][-back] for trial, one in enumerate(losses["losses"][str(budget)])}

    def fall(budget: int) -> Estimate | None:
        if losses is None:
            return None
        before, after = last(budget, 2), last(budget)
        return mean_of({trial: (before[trial] - after[trial]) / before[trial] for trial in before})

    sizes = (5, 10, 15, 20)
    by_size = {budget: f"N20-K{budget}-theta1/random" for budget in sizes}

    def fell(kind: str) -> list[Estimate | None]:
        return [
            None if losses is None else mean_of(paired(last(few, kind=kind), last(many, kind=kind)))
            for few, many in pairwise(sizes)
        ]

    yield "1_2.a.converged", [near(fall(budget), 0.0, 0.01) for budget in sizes]
    yield "1_2.a.more", [*map(above, fell("objective")), *(shown(one, low=0.0) for one in fell("selected"))]
    steps = [gain(folder, by_size[many], by_size[few], slots=50) for few, many in pairwise(sizes)]
    yield "1_2.b.more", [above(step) for step in steps]
    yield "1_2.b.enough", [below(steps[-1], POINT)]
    yield "1_2.c.best", [above(gain(folder, OPTIMAL, other, slots=50)) for other in (LAST, RANDOM, by_size[20])]
    yield "1_2.c.close_to_all", [near(gain(folder, OPTIMAL, by_size[20], slots=50), 0.0, POINT)]
    optimum = folder.measured("optimum")
    if optimum is None:
        yield "1_2.c.optimal", [below(None, POINT), shown(None)]
    else:
        pairs = zip(optimum["best_other"], optimum["first_five"], strict=True)
        ahead = {number: other - first for number, (other, first) in enumerate(pairs)}
        yield "1_2.c.optimal", [below(mean_of(ahead), POINT), shown(exact(optimum["not_worse"]))]
    yield "1_2.c.worst", [above(gain(folder, other, LAST, slots=50)) for other in (RANDOM, by_size[20], OPTIMAL)]


def elected(folder: Folder, read: Callable[[Trials, Values, Values], Values]) -> Estimate | None:
    """A reading of Quick-Init UCB's elections at T = 500: of an i.i.d. client and of another, by trial."""

    def inner(trials: Trials) -> Values:
        iid = np.mean([trials.elections(client) for client in range(5)], axis=0)
        other = np.mean([trials.elections(client) for client in range(5, 20)], axis=0)
        return read(trials, trials.by_trial(iid), trials.by_trial(other))

    return reading(folder, QUICK, inner, slots=500)


def late(trials: Trials) -> Values:
    """Share of the last 100 slots in which clients 0 to 4 are the cohort."""
    return trials.by_trial(
        [sum(set(cohort) == {0, 1, 2, 3, 4} for cohort in trial[-100:]) / 100 for trial in trials.cohorts.tolist()]
    )


def new(trials: Trials) -> Values:
    """Share of the slots whose cohort was not elected before."""
    return trials.by_trial([len({frozenset(cohort) for cohort in t}) / len(t) for t in trials.cohorts.tolist()])


def apart(trials: Trials) -> Values:
    """Elections of the least elected of clients 0 to 4 less those of the most elected other.

    Which these are in a trial is told by the trials whose numbers are even if its own is odd, and odd if it is even.
    """
    counts = [trials.by_trial(trials.elections(client)) for client in range(20)]
    values: Values = {}
    for parity in (0, 1):
        totals = [sum(count for number, count in own.items() if number % 2 != parity) for own in counts]
        least, most = totals.index(min(totals[:5])), 5 + totals[5:].index(max(totals[5:]))
        values |= {n: counts[least][n] - counts[most][n] for n in trials.numbers if n % 2 == parity}
    return values


def later_on(trials: Trials) -> Values:
    """Mean opinion of the last 100 slots less that of slots 5 to 24."""
    return trials.by_trial([float(np.nanmean(t[-100:]) - np.nanmean(t[4:24])) for t in trials.opinions])


def faster(folder: Folder, method: str, others: tuple[str, ...]) -> list[Check]:
    """Slots of others to 0.75 and to 0.78, 200 if they never get there, less those of a method."""
    checks = []
    for target in (0.75, 0.78):
        for other in others:
            theirs, own = (folder.trials(series, slots=200) for series in (other, method))
            if theirs is None or own is None:
                checks.append(above(None))
            else:
                checks.append(above(mean_of(paired(theirs.first(target)[0], own.first(target)[0]))))
    return checks


def central(folder: Folder) -> Iterator[tuple[str, list[Check]]]:
    """Figures `cen_selected_time` and `cen_performance`."""
    iid = elected(folder, lambda trials, iid, other: iid)
    other = elected(folder, lambda trials, iid, other: other)
    yield "cen_selected_time.counts", [near(iid, 228.95, 22.895), near(other, 90.34, 9.034)]
    ratio = elected(folder, lambda trials, iid, other: {trial: iid[trial] - 2.53 * other[trial] for trial in iid})
    yield "cen_selected_time.ratio", [above(ratio)]
    yield (
        "cen_selected_time.most",
        [
            above(elected(folder, lambda trials, iid, other: paired(iid, other))),
            above(reading(folder, QUICK, apart, slots=500)),
        ],
    )
    yield (
        "cen_selected_time.finds",
        [
            above(reading(folder, QUICK, late, slots=500), 0.5),
            shown(reading(folder, QUICK, new, slots=500)),
            shown(reading(folder, QUICK, later_on, slots=500)),
        ],
    )
    better = gain(folder, QUICK, RANDOM)
    yield "cen_performance.random", [near(accuracy(folder, RANDOM), 0.7662, POINT)]
    yield "cen_performance.optimal", [near(accuracy(folder, OPTIMAL), 0.8657 + 0.0144, POINT)]
    yield "cen_performance.quick_init", [near(accuracy(folder, QUICK), 0.8657, POINT)]
    yield "cen_performance.gain", [above(better), near(better, 0.8657 - 0.7662, POINT)]
    yield "cen_performance.gap", [below(gain(folder, OPTIMAL, QUICK), 0.0144 + 0.005)]
    alike = near(gain(folder, SUBSETS, RANDOM), 0.0, POINT)
    yield "cen_performance.conventional", [alike, above(gain(folder, QUICK, SUBSETS), POINT)]
    yield "cen_performance.initiation", [near(exact(20 * 19 * 18 * 17 * 16 / 120), 15504, 0.5)]
    yield (
        "cen_performance.baselines_last",
        [
            above(gain(folder, one, low), bound)
            for one, bound in ((OPTIMAL, 0.0), (QUICK, 0.0), (SUBSETS, -POINT))
            for low in (ROBIN, RANDOM)
        ],
    )
    yield "cen_performance.faster", faster(folder, QUICK, (SUBSETS, ROBIN, RANDOM))


def beliefs(folder: Folder) -> Iterator[tuple[str, list[Check]]]:
    """Figure `BP_value`: shares of belief, of which sums over the trials of a file are kept."""
    trials = folder.trials(BELIEF, slots=200)
    if trials is None:
        yield "BP_value.converge", [*(near(None, 0.0, 0.005) for _ in range(5)), shown(None, high=1e-6)]
        yield "BP_value.differ", [above(None)]
        yield "BP_value.elects", [above(None), shown(None)]
        return
    assert trials.beliefs is not None and trials.belief_blocks is not None
    sums, _, residuals = trials.beliefs
    blocks = dict(enumerate(trials.belief_blocks))
    converge = [
        near(mean_of({n: b[10:20, k].mean() / b[100:200, k].mean() - 1.0 for n, b in blocks.items()}), 0.0, 0.005)
        for k in range(5)
    ]
    yield "BP_value.converge", [*converge, shown(exact(float(residuals.max())), high=1e-6)]
    settled = {n: b[100:200, :5].mean(axis=0).tolist() for n, b in blocks.items()}
    spread = {}
    for number, own in settled.items():
        others = [sum(settled[n][k] for n in settled if n != number) for k in range(5)]
        spread[number] = own[others.index(max(others))] - own[others.index(min(others))]
    yield "BP_value.differ", [above(mean_of(spread) if len(settled) > 1 else None)]
    share = (sums / len(trials.numbers)).mean(axis=0)
    counts = np.stack([trials.elections(client) for client in range(20)], axis=1)
    correlation = trials.by_trial([float(np.corrcoef(share, trial)[0, 1]) for trial in counts])
    weight = exact(float(share.max() - share.min()) / 20)
    yield "BP_value.elects", [above(mean_of(correlation)), shown(weight)]


def democratized(folder: Folder) -> Iterator[tuple[str, list[Check]]]:
    """Figure `decen_performance`."""
    better = gain(folder, BELIEF, RANDOM)
    yield "decen_performance.random", [near(accuracy(folder, RANDOM), 0.7202, POINT)]
    tried = shown(reading(folder, BELIEF, new))
    yield "decen_performance.bp_ucb", [near(accuracy(folder, BELIEF), 0.8628, POINT), tried]
    yield "decen_performance.gain", [above(better), near(better, 0.8628 - 0.7202, POINT)]
    yield "decen_performance.gap", [below(gain(folder, OPTIMAL, BELIEF), 0.0312)]
    yield "decen_performance.below_quick_init", [near(gain(folder, QUICK, BELIEF), 0.01, 0.01)]
    yield "decen_performance.comparable", [near(gain(folder, BELIEF, QUICK), 0.0, 0.02)]
    yield "decen_performance.faster", faster(folder, BELIEF, (ROBIN, RANDOM))
    yield (
        "decen_performance.baselines_last",
        [above(gain(folder, one, low)) for one in (OPTIMAL, BELIEF, QUICK) for low in (ROBIN, RANDOM)],
    )


TABLE: dict[str, tuple[str, int, dict[float, float | None], tuple[float | None, ...]]] = {
    "optimal": (OPTIMAL, 200, {0.75: 6.0, 0.78: 7.0, 0.82: 11.0, 0.85: 19.0}, (0.7683, 0.7843, 0.8217, 0.8515)),
    "random": (RANDOM, 500, {0.75: 40.24, 0.78: 391.24, 0.82: None, 0.85: None}, (0.7519, 0.7752, None, None)),
    "quick-init": (QUICK, 500, {0.75: 9.92, 0.78: 13.55, 0.82: 26.42, 0.85: 111.22}, (0.7550, 0.7832, 0.8209, 0.8494)),
    "bp-ucb": (BELIEF, 500, {0.75: 14.09, 0.78: 23.63, 0.82: 57.95, 0.85: 131.81}, (0.7541, 0.7824, 0.8196, 0.8466)),
}
"""The paper's Table I: where our trials are, T, slots until each target, accuracies there; None for a dash."""


def table(folder: Folder) -> Iterator[tuple[str, list[Check]]]:
    """Table `comparison_table`."""
    first = {}
    for name, (series, slots, said, accuracies) in TABLE.items():
        trials = folder.trials(series, slots=slots)
        for (target, until), there in zip(said.items(), accuracies, strict=True):
            found = None if trials is None else trials.first(target)
            first[name, target] = found
            key = f"comparison_table.{name}.{target:g}"
            if until is None or there is None:
                reached = None if trials is None or found is None else share_of(found[2], len(trials.numbers))
                yield key, [below(reached, 0.05)]
                continue
            low, high = there - POINT, there + POINT
            yield (
                key,
                [
                    near(None if found is None else mean_of(found[0]), until, 0.2 * until),
                    shown(None if found is None else mean_of(found[1]), low, high),
                ],
            )

    def until_then(name: str, target: float) -> Values | None:
        """A trial that never gets there counts as 500 slots, also of the cohort that is run for 200."""
        found = first[name, target]
        return None if found is None else {n: found[0][n] if found[1][n] >= target - 1e-9 else 500.0 for n in found[0]}

    def later(one: str, other: str) -> list[Estimate | None]:
        pairs = [(until_then(one, target), until_then(other, target)) for target in (0.75, 0.78, 0.82, 0.85)]
        return [None if mine is None or others is None else mean_of(paired(mine, others)) for mine, others in pairs]

    def more(one: str, other: str) -> list[Check]:
        return [above(estimate) for estimate in later(one, other)]

    def close(name: str, other: str = "optimal", low: float = -INF) -> list[Check]:
        said = zip(TABLE[name][2].values(), TABLE[other][2].values(), strict=True)
        bounds = [1.2 * (mine - best) for mine, best in said if mine is not None and best is not None]
        return [(estimate, low, high, True) for estimate, high in zip(later(name, other), bounds, strict=True)]

    yield (
        "comparison_table.optimal_first",
        [check for one in ("random", "quick-init", "bp-ucb") for check in more(one, "optimal")],
    )
    yield "comparison_table.random_last", more("random", "quick-init") + more("random", "bp-ucb")
    yield "comparison_table.bp_after_quick_init", close("bp-ucb", "quick-init", low=0.0)
    reach = [first[name, target] for name in ("quick-init", "bp-ucb") for target in (0.75, 0.78, 0.82, 0.85)]
    yield (
        "comparison_table.both_reach",
        [above(None if found is None else share_of(found[2], len(found[0])), 0.95) for found in reach],
    )
    yield "comparison_table.both_close", [*close("quick-init"), *close("bp-ucb")]
