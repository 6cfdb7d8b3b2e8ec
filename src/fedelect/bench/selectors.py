"""Rank selectors on an atlas, by the value of the cohorts that they elect.

The table is the world that selectors play in: a slot draws one of its training seeds, so the value of a cohort is
exactly the mean over them (`fedelect.atlas.table_truth`), and the optimum is exact. Alternatively `scenario_truth`
values the best cohorts by fresh trainings; it charges selectors for luck in the table, which they cannot see. Every
ranking also states the optimum of the scenario.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedelect._processes import run_tasks, worker_count
from fedelect.atlas import Atlas, Truth, scenario_truth, table_truth
from fedelect.bench.figures import Figures, figures_of, has_come_close
from fedelect.bench.play import Elections, Player
from fedelect.bench.specs import REFERENCE, benchmark_specs
from fedelect.equations.intervals import Interval, mean_interval, paired_difference
from fedelect.errors import ConfigurationError
from fedelect.loop import FrameworkName
from fedelect.vocabulary import Cohort, Progress, ignore_progress

_SHIPPED = (
    "r-labels2-N12-K4",
    "r-labels3-N12-K4",
    "r-dir01-N12-K4",
    "r-dir05-own-N15-K3",
    "r-unequal-N15-K5",
    "r-lossy-N12-K4",
)


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One selector's figures (`Figures`), with 95 % intervals over trials.

    Attributes:
        label: The selector's specification.
        role: "selector", or a fixed cohort for comparison: "first clients", or "optimum", the best cohort by `truth`.
        framework: "fa" or "da".
        final_gap: Percent, over the last tenth of the slots.
        running_gap: Percent, over all slots.
        slots_to_close: Slots to within 2 % of the optimum; trials that never got there count as T.
        trials_close: How many trials got there.
        regret: After T slots.
        jain_index: Fairness.
        ask_ms: CPU time of an ask.
        running_difference: Running gap minus that of the reference in the same trials, percent of the optimum; above 0
            the reference is the better one.
        final_difference: The same of the final gap.
    """

    label: str
    role: str
    framework: FrameworkName
    final_gap: Interval
    running_gap: Interval
    slots_to_close: Interval
    trials_close: int
    regret: Interval
    jain_index: Interval
    ask_ms: Interval
    running_difference: Interval
    final_difference: Interval


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """All selectors on one atlas, the smallest running gap first.

    Attributes:
        scenario: Name of the atlas' scenario.
        digest: The atlas' digest.
        clients: N.
        budget: K.
        slots: T.
        trials: How many trials each.
        seed: Seed of the runs.
        optimum: Value of the optimal cohort by `truth`; gaps are to this.
        optimum_exact: Whether that is exact, as in the table, or an estimate with an interval.
        best: The optimal cohort by `truth`.
        scenario_optimum: Value of the scenario's optimum by fresh seeds (`scenario_truth`).
        scenario_best: That cohort.
        reference: The selector that the others are compared with.
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
    optimum_exact: bool
    best: Cohort
    scenario_optimum: Interval
    scenario_best: Cohort
    reference: str
    rows: tuple[Ranked, ...]


def shipped_worlds() -> dict[str, Path]:
    """Return the small worlds of the published comparison whose atlases come with fedelect: name -> file."""
    return {name: Path(__file__).parent / "shipped" / f"{name}.npz" for name in _SHIPPED}


def rank_selectors(
    atlas: Atlas,
    *,
    slots: int = 200,
    trials: int = 10,
    seed: int = 1,
    full: bool = False,
    only: Sequence[str] = (),
    truth: Callable[[Atlas], Truth] = table_truth,
    workers: int | None = None,
    progress: Progress = ignore_progress,
) -> Ranking:
    """Play every selector on the atlas, and rank them.

    Args:
        atlas: The world.
        slots: T.
        trials: How many trials each.
        seed: Seed of the runs.
        full: Each selector also with its default where tuning prefers another setting (`default_specs`).
        only: Specifications of the selectors to rank, such as "my_module:Mine", beside the reference, random and the
            fixed cohorts; empty for all that fedelect offers.
        truth: Returns the values of cohorts.
        workers: In how many processes; one for each usable core if None. But for `ask_ms` it changes nothing.
        progress: Called with (finished, total) selectors when the ranking begins and whenever a selector is finished.

    Raises:
        ConfigurationError: A number is out of range, or a selector cannot be ranked.
        SelectorError: A selector failed.
    """
    if seed < 0:
        raise ConfigurationError(f"seed: got {seed}; allowed: a whole number >= 0")
    known, scenario = truth(atlas), scenario_truth(atlas)
    roles = benchmark_specs(atlas, known, full=full, only=only)
    texts = list(roles)
    player = Player(atlas, slots=slots, trials=trials, seed=seed)
    progress(0, len(texts))
    played: dict[str, tuple[Elections, Figures]] = {}
    close: dict[str, int] = {}
    for place, elections in run_tasks(player.elections, [(text,) for text in texts], workers=worker_count(workers)):
        values = known.of(elections.cohorts)
        close[texts[place]] = int(has_come_close(values, known.optimum.mean).sum())
        played[texts[place]] = elections, figures_of(elections, values, known.optimum.mean, known.clients)
        progress(len(played), len(texts))
    _, reference = played[REFERENCE]
    rows = [
        rank_trials(text, roles[text], elections.framework, figures, close[text], reference)
        for text, (elections, figures) in played.items()
    ]
    rows.sort(key=lambda row: (row.running_gap.mean, row.final_gap.mean, row.label))
    return Ranking(
        scenario=atlas.config.name,
        digest=atlas.digest,
        clients=atlas.config.clients,
        budget=atlas.config.budget,
        slots=slots,
        trials=trials,
        seed=seed,
        optimum=known.optimum,
        optimum_exact=known.exact,
        best=atlas.cohort(known.best),
        scenario_optimum=scenario.optimum,
        scenario_best=atlas.cohort(scenario.best),
        reference=REFERENCE,
        rows=tuple(rows),
    )


def rank_trials(
    text: str, role: str, framework: FrameworkName, figures: Figures, trials_close: int, reference: Figures
) -> Ranked:
    """Compute intervals over the trials, and of the differences to the reference in the same trials."""
    return Ranked(
        label=text,
        role=role,
        framework=framework,
        final_gap=mean_interval(figures.final_gap),
        running_gap=mean_interval(figures.running_gap),
        slots_to_close=mean_interval(figures.slots_to_close),
        trials_close=trials_close,
        regret=mean_interval(figures.regret),
        jain_index=mean_interval(figures.jain_index),
        ask_ms=mean_interval(figures.ask_ms),
        running_difference=paired_difference(figures.running_gap, reference.running_gap),
        final_difference=paired_difference(figures.final_gap, reference.final_gap),
    )
