"""The calibration: the rule, every setting tried, the choice, and the commit that fixed it."""

import shutil
import subprocess
from pathlib import Path

from paper.calibration import SLACK, Calibration, read_calibration
from paper.published import BASELINES, BASELINES_DEMOCRATIZED, BASELINES_SLOTS, BP_UCB, BP_UCB_GAP

COMMIT_LINE = "The calibration on file"
"""How the one line begins that depends on the history, not on the results."""


def calibration_lines(path: Path) -> list[str]:
    """The section, from the calibration on file; one sentence if there is none."""
    if not path.exists():
        return ["No calibration is on file yet: `python -m paper calibration` makes it."]
    calibration = read_calibration(path)
    asides = [_first_term(calibration), "", _describe_democratized(calibration)]
    return [*_rule(calibration), "", *asides, "", *_table(calibration), "", _commit(path)]


def _rule(calibration: Calibration) -> list[str]:
    chosen = calibration.choice
    return [
        "The paper does not say how large the clients' data are, how skewed, or whether a slot starts from scratch. "
        "Before any algorithm of the paper was run, each setting below was judged by two baselines alone under FL&FA: "
        "the cohort that the paper calls optimal (clients 1 to 5), which the paper has near "
        f"{BASELINES.fixed:g} at T = 200, and random selection, near {BASELINES.random:g}. A setting's distance is the "
        f"larger of its two deviations. Settings within {SLACK:g} of the smallest distance are equally near, for "
        "random selection is known no better; of these the one with the fewest training samples is taken, and of "
        "several such the one with the smallest sum of deviations.",
        "",
        f"Taken: **{chosen.candidate.name}** ({chosen.total_samples} training samples; optimal cohort "
        f"{chosen.fixed:.4f}, random {chosen.random:.4f}, untrained model {chosen.untrained:.4f}). "
        "Command: `python -m paper calibration`.",
    ]


def _first_term(calibration: Calibration) -> str:
    """Whether it matters that the first term of averages is left out."""
    taken, other = calibration.choice, calibration.choice_for(BASELINES, first_term=True)
    lower = max(
        one - averaged
        for outcome in calibration.outcomes
        for one, averaged in zip(outcome.baselines, outcome.with_first_term, strict=True)
    )
    said = (
        "the same setting is taken"
        if other == taken
        else f"**{other.candidate.name}** would be taken instead of the setting above"
    )
    return (
        "These are means over slots. A first term of 0 in an average over "
        f"{BASELINES_SLOTS} slots, as the figures and the table above count it, lowers them by at most "
        f"{lower:.4f}, and {said}."
    )


def _describe_democratized(calibration: Calibration) -> str:
    """The baselines that the paper's other figure implies, and what they would have led to."""
    taken, other = calibration.choice, calibration.choice_for(BASELINES_DEMOCRATIZED)
    return (
        "The paper's `decen_performance` (FL&DA) implies other baselines: an optimal cohort below "
        f"{BASELINES_DEMOCRATIZED.fixed:.4f} (BP-UCB's {BP_UCB:g} and its gap of less than {BP_UCB_GAP:g}) and random "
        f"selection at {BASELINES_DEMOCRATIZED.random:.4f}. Neither baseline listens, so each trains the same models "
        "under both frameworks, and no setting can meet both pairs. By that of FL&DA alone the same rule would take "
        f"**{other.candidate.name}** (optimal cohort {other.fixed:.4f}, random {other.random:.4f}, distance "
        f"{max(other.deviations(BASELINES_DEMOCRATIZED)):.4f}; the setting taken is at a distance of "
        f"{max(taken.deviations(BASELINES_DEMOCRATIZED)):.4f} from that pair). Both distances stand in the table."
    )


def _table(calibration: Calibration) -> list[str]:
    lines = [
        "| setting | training samples | optimal cohort | random | distance, FL&FA | distance, FL&DA | trials x slots |",
        "|---|---|---|---|---|---|---|",
    ]
    for outcome in calibration.outcomes:
        taken = "**" if outcome == calibration.choice else ""
        lines.append(
            f"| {taken}{outcome.candidate.name}{taken} | {outcome.total_samples} "
            f"| {outcome.fixed:.4f} ± {outcome.fixed_half_width:.4f} "
            f"| {outcome.random:.4f} ± {outcome.random_half_width:.4f} | {outcome.distance:.4f} "
            f"| {max(outcome.deviations(BASELINES_DEMOCRATIZED)):.4f} "
            f"| {outcome.trial.trials} x {outcome.trial.slots} |"
        )
    return lines


def _commit(path: Path) -> str:
    commit = commit_of(path)
    if commit is None:
        return f"{COMMIT_LINE} is in no commit that can be seen from here."
    return f"{COMMIT_LINE} was fixed by commit `{commit}`."


def commit_of(path: Path) -> str | None:
    """The commit that last changed the content of a file; None without git, outside a clone, or if it is in none."""
    git = shutil.which("git")
    if git is None:
        return None
    # A file that was only moved has status R, which the filter leaves out.
    command = [git, "log", "--format=%h", "--abbrev=10", "-1", "--follow", "--diff-filter=AM", "--", path.name]
    found = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None
