"""Claim by claim: the paper's figure, ours, the verdict and why."""

import math
from collections.abc import Mapping, Sequence

from fedelect.equations.intervals import Interval
from paper.catalogue import PRESETS, experiment
from paper.claims import VERDICTS, Check, Claim, Finding, Verdict, verdict_of
from paper.claims.causes import CAUSES, Cause, cause_of
from paper.claims.claim import OverDrawings
from paper.ranges import CheckOutcome

RULE = """\
A claim is tested by one or more checks: each says where a mean should be. A check is judged by the mean's 95 %
interval (Student's t over drawings, trials, or what stands beside the figure; Wilson's for shares of trials, its
longer side to both sides): it holds if the whole interval is in the claimed range, fails if the whole interval is
outside, and is undecided if the interval straddles an end. A claim **holds** if all its checks hold, **holds in part**
if some hold, **does not hold** if none does and some fail, and is **undecided** otherwise. What is "shown only"
decides nothing: it stands there to explain. Two methods are compared trial by trial, for in a trial they share batch
orders and upload luck. Differences that the paper states in per cent are read as points of accuracy. Ours counts as
the paper's if an accuracy is within one point (0.01), a gap within half a point, slots within 20 %, elections within
10 %. "Close", "like" and "hardly" are one point, "much" is more than that, "slightly" and "comparable" are two points;
in the table "close" and "slightly" are at most the paper's own difference in slots and 20 % more. A loss has converged
if it falls by less than 1 % in a round, a belief if it is within 0.5 % of its late mean. A target is "reached" in more
than 95 % of the trials, "never" in fewer than 5 %. Times are one machine's: below a factor of two they count as alike;
that a cost grows with the number of cohorts would show as a factor of more than 1000. "-" stands where the paper
states no figure. A verdict "so far" rests on fewer trials than planned, and says on how many; the rest may change it.
Each claim is judged by the results of the command beside it, by the atlas that comes with fedelect where it says so,
and over drawings as follows.

The results here are of *one* drawing of the data, and between drawings means differ by more than an interval over
trials tells. So where an accuracy, or a difference of accuracies, is compared with the paper to a number of points, or
slots or elections of Quick-Init UCB or BP-UCB to a share, the drawings of the pre-registered run
(docs/REPRODUCTION.md) decide, for trained runs and for those on the atlas alike. Where they have the figure, it is
judged by their mean on the paper's scale with its interval over drawings. Where they have not, it is judged by the
mean here with an interval widened by the standard deviation between drawings of the nearest figure that they have,
which is named: what one drawing cannot tell is left open. The worlds of that run are calibrated to Table I and, for
BP-UCB, to random selection under FL&DA, so that scale and skew differ from those here. All else is said of this
drawing alone: orders, shares of trials, differences in slots, and the two baselines' slots, which are calibrated.
Conventional UCB and random selection draw alike, whatever the drawing.

Two more things to keep in mind. The checks are many, each at 95 %, and nothing is corrected for that: of a hundred
that are true about five may come out wrong. And claims that follow from one choice are not as many findings: below
they are grouped by cause, and a cause counts once."""


def summary_lines(findings: Sequence[Finding], looked_up: Mapping[str, Finding]) -> list[str]:
    """How many claims have which verdict, by training and, of the main world's, by runs on the atlas."""
    lines = ["| verdict | claims, trained | claims, on the atlas |", "|---|---|---|"]
    for verdict in VERDICTS:
        trained = [finding for finding in findings if finding.verdict == verdict]
        on_atlas = [finding for finding in looked_up.values() if finding.verdict == verdict]
        if trained or on_atlas:
            lines.append(f"| {verdict} | {_count(trained)} | {_count(on_atlas)} |")
    return [*lines, f"| all | {len(findings)} | {len(looked_up)} |"]


def cause_lines(findings: Sequence[Finding]) -> list[str]:
    """Claims grouped by cause: each cause that is evidence once, then what is none."""
    lines = ["| cause | | claims | hold, in part, do not, undecided | the cause |", "|---|---|---|---|---|"]
    for cause in CAUSES:
        belonging = [finding for finding in findings if finding.claim.key in cause.claims]
        counts = [sum(finding.verdict == verdict for finding in belonging) for verdict in VERDICTS[:4]]
        told = f"**{_of_cause(belonging)}**" if cause.counts else "no evidence"
        lines.append(f"| {cause.title} | {cause.says} | {len(belonging)} | {', '.join(map(str, counts))} | {told} |")
    return lines


def _of_cause(findings: Sequence[Finding]) -> str:
    """The verdict of all claims of a cause together, as that of all checks of a claim."""
    verdicts = {finding.verdict for finding in findings}
    if "not measured yet" in verdicts:
        return "not measured yet"
    if "holds in part" in verdicts:
        return "holds in part"
    words: dict[Verdict, CheckOutcome] = {"holds": "holds", "does not hold": "fails", "undecided": "undecided"}
    return verdict_of([outcome for verdict, outcome in words.items() if verdict in verdicts])


def _count(findings: Sequence[Finding]) -> str:
    """How many, and how many of these so far only."""
    early = sum(so_far(finding) is not None for finding in findings)
    return f"{len(findings)} ({early} so far)" if early else f"{len(findings)}"


def claim_lines(findings: Sequence[Finding], looked_up: Mapping[str, Finding]) -> list[str]:
    """A table of claims, one row each."""
    if not findings:
        return []
    lines = [
        "| claim | paper | ours (mean ± 95 % interval) | verdict | why we think so | command |",
        "|---|---|---|---|---|---|",
    ]
    for finding in findings:
        claim = finding.claim
        on_atlas = looked_up.get(claim.key)
        if on_atlas is None:
            ours, verdict = _checks(finding), _verdict(finding)
        else:
            ours = f"*trained*<br>{_checks(finding)}<br>*on the atlas*<br>{_checks(on_atlas)}"
            verdict = f"trained: {_verdict(finding)}<br>on the atlas: {_verdict(on_atlas)}"
        commands = f"`{claim.command}`" + ("" if on_atlas is None else f"<br>`{claim.command} --on-atlas`")
        cells = (claim.says, claim.paper, ours, verdict, _why(finding, on_atlas), commands)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def _why(trained: Finding, on_atlas: Finding | None) -> str:
    """One reason, or one for each where they differ."""
    reasons = {"trained": trained.why, "on the atlas": "" if on_atlas is None else on_atlas.why}
    given = {name: why for name, why in reasons.items() if why}
    if len(set(given.values())) <= 1:
        return next(iter(given.values()), "")
    return "<br>".join(f"{name}: {why}" for name, why in given.items())


def count_planned_trials(claim: Claim) -> int | None:
    """Trials of the experiment that measures a claim, at full size; None where it is no matter of trials."""
    return max((request.trials for request in experiment(claim.where).requests), default=None)


def so_far(finding: Finding) -> str | None:
    """On how many trials a verdict rests that rests on fewer than planned, such as "25 of 100 trials"; else None."""
    if finding.verdict == "not measured yet":
        return None
    short = []
    for check, measured in zip(finding.claim.checks, finding.measured, strict=True):
        planned = _plan_count(check, count_planned_trials(finding.claim))
        if measured is not None and planned is not None and 1 < measured.count < planned:
            short.append((measured.count / planned, f"{measured.count} of {planned} {check.over}"))
    return min(short)[1] if short else None


def _plan_count(check: Check, trials: int | None) -> int | None:
    """Of how many values the mean is meant to be, if trials decide over that: what only explains may have fewer."""
    if not check.decides or trials is None:
        return None
    return {"trials": trials, "blocks of trials": math.ceil(trials / PRESETS["paper"].block)}.get(check.over)


def _verdict(finding: Finding) -> str:
    early = so_far(finding)
    said = f"**{finding.verdict}**" if early is None else f"**{finding.verdict}** so far ({early})"
    return said + _explain_uncounted(cause_of(finding.claim.key))


def _explain_uncounted(cause: Cause) -> str:
    return "" if cause.counts else f", no evidence: {cause.title}"


def _checks(finding: Finding) -> str:
    texts = [
        check_text(check, measured, outcome, count_planned_trials(finding.claim), judged=judged)
        for check, measured, judged, outcome in zip(
            finding.claim.checks, finding.measured, finding.judged, finding.outcomes, strict=True
        )
    ]
    return "<br>".join(texts)


def check_text(
    check: Check,
    measured: Interval | None,
    outcome: str,
    planned: int | None = None,
    *,
    judged: Interval | None = None,
) -> str:
    """One check in a line; where fewer trials are on file than planned it says of how many.

    Args:
        check: The check.
        measured: Its figure, in one drawing.
        outcome: How it comes out.
        planned: Trials at full size.
        judged: The interval over drawings by which it is judged, where it is.
    """
    if measured is None:
        return f"{check.name}: not measured yet"
    claimed = f"claimed: {check.claimed.text(check.digits)}; {outcome}" if check.decides else "shown only"
    counted = _describe_count(check, measured, _plan_count(check, planned))
    if check.drawn is not None and judged is not None:
        counted += f"{_describe_drawn(check.drawn, judged, check.digits)}; "
    return f"{check.name}: {interval_text(measured, check.digits)} ({counted}{claimed})"


def _describe_drawn(drawn: OverDrawings, judged: Interval, digits: int) -> str:
    """The interval over drawings, such as "over 6 drawings: 0.8202 ± 0.0166"."""
    if judged.half_width is None:
        return "too few other drawings on file to judge it"
    return f"{drawn.told.format(judged.count)}: {interval_text(judged, digits)}"


def interval_text(interval: Interval, digits: int) -> str:
    """Mean and half width, such as "0.8143 ± 0.0080"; exact figures stand alone, tiny and huge ones have an exponent.

    >>> interval_text(Interval(0.81434, 0.00801, 100), 4), interval_text(Interval(15504.0, 0.0, 1), 0)
    ('0.8143 ± 0.0080', '15504')
    >>> interval_text(Interval(2.8e-9, 3.1e-11, 100), 4), interval_text(Interval(62296222.4, None, 1), 4)
    ('2.8e-09 ± 3.1e-11', '6.2e+07')
    """
    plain = interval.mean == 0.0 or 10.0**-digits <= abs(interval.mean) < 10.0**6
    form = f".{digits}f" if plain else ".1e"
    return f"{interval.mean:{form}}" + (f" ± {interval.half_width:{form}}" if interval.half_width else "")


def _describe_count(check: Check, interval: Interval, planned: int | None) -> str:
    """What the figure is over, such as "25 of 100 trials; "; empty for a single exact figure."""
    if interval.half_width == 0.0 and interval.count == 1:
        return ""
    short = planned is not None and interval.count < planned
    return f"{interval.count} of {planned} {check.over}; " if short else f"{interval.count} {check.over}; "
