"""The ranking: every selector on an atlas, by what the cohorts that it elects are truly worth.

Values are those of the scenario (`fedelect.atlas.scenario_truth`): a selector learns from the table's training seeds,
and what it elects is judged by fresh ones where there are any, so that luck in the table counts for nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedelect.atlas import Atlas, Truth, scenario_truth
from fedelect.bench.play import Elections, Player
from fedelect.equations.intervals import Interval, mean_interval
from fedelect.equations.metrics import jain_index
from fedelect.loop import FrameworkName
from fedelect.processes import answers_of, places_for
from fedelect.selectors import selector_classes
from fedelect.vocabulary import Cohort, Floats, Ints, Signal

CLOSE = 0.02
"""How near to the optimum counts as there: 2 %."""

WINDOW = 10
"""Slots over whose mean a selector must be near."""

LAST_SHARE = 0.1
"""The share of the slots that counts as the end of a run."""

Progress = Callable[[int, int], None]
"""Told (selectors finished, selectors in all)."""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One selector's figures, with 95 % intervals over trials. Gaps are in percent of the optimum's value.

    Attributes:
        label: The selector's specification.
        role: "selector", or what it is a bar for the others: "first clients" or "optimum".
        framework: "fa" or "da".
        final_gap: Optimum minus the mean value of the cohorts of the last tenth of the slots.
        running_gap: The same over all slots.
        slots_to_close: The first slot from which the values of ten slots in a row are on average within 2 % of the
            optimum; T if there is none.
        regret: Pseudo-regret after T slots.
        jain_index: Fairness of the elections, in (0, 1].
        ask_ms: Milliseconds that an ask takes.
    """

    label: str
    role: str
    framework: FrameworkName
    final_gap: Interval
    running_gap: Interval
    slots_to_close: Interval
    regret: Interval
    jain_index: Interval
    ask_ms: Interval


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """All selectors on one atlas, the smallest final gap first.

    Attributes:
        scenario: Name of the atlas' scenario.
        digest: The atlas' digest.
        clients: N.
        budget: K.
        slots: T.
        trials: How many trials each.
        seed: Seed of the runs.
        optimum: What the optimal cohort is worth, with an interval over fresh training seeds.
        best: The optimal cohort.
        rows: The selectors.
    """

    scenario: str
    digest: str
    clients: int
    budget: int
    slots: int
    trials: int
    seed: int
    optimum: Interval
    best: Cohort
    rows: tuple[Ranked, ...]


_AS_IN_THE_PAPER = {
    "quick-init-ucb": ("quick-init-ucb:exploration=1.0", "quick-init-ucb:exploration=0.01"),
    "bp-ucb": ("bp-ucb:exploration=0.01",),
}

_UNKNOWN_TO_AN_ATLAS: frozenset[Signal] = frozenset({"loss", "loss_rms"})


def competitors(atlas: Atlas, truth: Truth) -> dict[str, str]:
    """The specifications of all that are ranked -> their role, see `Ranked`.

    The bars are fixed cohorts: the first K clients, the best that is known without an atlas, and the optimum.
    """
    names = [name for name in selector_classes() if name != "fixed" and name not in left_out()]
    selectors = [text for name in names for text in _AS_IN_THE_PAPER.get(name, (name,))]
    bars = {_fixed(tuple(range(atlas.config.budget))): "first clients", _fixed(atlas.cohort(truth.best)): "optimum"}
    return dict.fromkeys(selectors, "selector") | bars


def left_out() -> dict[str, str]:
    """Selectors that no atlas can serve -> what they need and it does not know."""
    lacking = {name: sorted(kind.needs & _UNKNOWN_TO_AN_ATLAS) for name, kind in selector_classes().items()}
    return {name: " and ".join(signals) for name, signals in lacking.items() if signals}


def rank_selectors(
    atlas: Atlas,
    *,
    slots: int = 200,
    trials: int = 10,
    seed: int = 1,
    more: Sequence[str] = (),
    workers: int | None = None,
    progress: Progress = lambda finished, total: None,
) -> Ranking:
    """Let every selector play on the atlas, and rank them.

    Args:
        atlas: The world.
        slots: T.
        trials: How many trials each.
        seed: Seed of the runs.
        more: Specifications of further selectors, such as "my_module:Mine".
        workers: In how many processes; one for each usable core if None. But for `ask_ms` it changes nothing.
        progress: Called when the ranking begins and whenever a selector is finished.
    """
    truth = scenario_truth(atlas)
    roles = dict.fromkeys(more, "selector") | competitors(atlas, truth)
    texts = list(roles)
    player = Player(atlas, slots=slots, trials=trials, seed=seed)
    progress(0, len(texts))
    rows = []
    for place, elections in answers_of(player, [(text,) for text in texts], workers=places_for(workers)):
        rows.append(_ranked(texts[place], roles[texts[place]], elections, truth))
        progress(len(rows), len(texts))
    rows.sort(key=lambda row: (row.final_gap.mean, row.regret.mean, row.label))
    return Ranking(
        scenario=atlas.config.name,
        digest=atlas.digest,
        clients=atlas.config.clients,
        budget=atlas.config.budget,
        slots=slots,
        trials=trials,
        seed=seed,
        optimum=truth.optimum,
        best=atlas.cohort(truth.best),
        rows=tuple(rows),
    )


def _ranked(text: str, role: str, elections: Elections, truth: Truth) -> Ranked:
    values, optimum = truth.of(elections.cohorts), truth.optimum.mean
    slots = values.shape[1]
    last = max(1, round(LAST_SHARE * slots))
    return Ranked(
        label=text,
        role=role,
        framework=elections.framework,
        final_gap=mean_interval(_gap(values[:, -last:], optimum)),
        running_gap=mean_interval(_gap(values, optimum)),
        slots_to_close=mean_interval(slots_to_close(values, optimum).astype(np.float64)),
        regret=mean_interval(truth.regret(elections.cohorts)[:, -1]),
        jain_index=mean_interval(jain_index(_counts(elections.cohorts, truth.clients))),
        ask_ms=mean_interval(elections.ask_ms),
    )


def _gap(values: Floats, optimum: float) -> Floats:
    """Percent by which the mean value falls short of the optimum: (trials, T) -> (trials,)."""
    return np.asarray(100.0 * np.round((optimum - values).mean(axis=1), 12) / optimum)


def slots_to_close(values: Floats, optimum: float) -> Ints:
    """The first slot t, from 1, such that the mean value of the slots t .. t + 9 is within 2 % of the optimum.

    Where there is no such slot it is T; runs shorter than ten slots are taken as a whole.

    Args:
        values: (trials, T) what the cohort elected in each slot is worth.
        optimum: What the best is worth.

    Returns:
        (trials,)
    """
    slots = values.shape[1]
    means = np.lib.stride_tricks.sliding_window_view(values, min(WINDOW, slots), axis=1).mean(axis=2)
    close = means >= (1.0 - CLOSE) * optimum
    return np.asarray(np.where(close.any(axis=1), np.argmax(close, axis=1) + 1, slots), dtype=np.int64)


def _counts(cohorts: Ints, clients: int) -> Ints:
    """(trials, T, K) -> (trials, N) how often each client was elected."""
    return np.stack([np.bincount(trial.ravel(), minlength=clients) for trial in cohorts])


def _fixed(cohort: Cohort) -> str:
    return "fixed:cohort=" + ",".join(map(str, cohort)) + ("," if len(cohort) == 1 else "")
