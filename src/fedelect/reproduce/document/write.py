"""Puts the document together."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedelect.reproduce.catalogue import EXPERIMENTS, OPTIMAL, PRESETS, Experiment, Preset, experiment
from fedelect.reproduce.claims import CLAIMS, Finding, assess
from fedelect.reproduce.document.calibration_section import calibration_lines
from fedelect.reproduce.document.claims_section import RULE, claim_lines, summary_lines
from fedelect.reproduce.document.decisions import decision_lines, first_term_lines
from fedelect.reproduce.document.verdicts import on_atlas_path, verdicts_path, write_verdicts
from fedelect.reproduce.figures import draw_from
from fedelect.reproduce.measurements import measurement_path
from fedelect.reproduce.readings import Evidence
from fedelect.reproduce.runner import AbstractLibrary
from fedelect.reproduce.series import Demand, Series

FIGURES = "reproduction"
"""Folder of the figures, below that of the document."""

ON_ATLAS = "on-atlas"
"""Folder, below that, of the figures drawn from runs on the atlas."""

_HEAD = """\
# The paper, reproduced

*From Learning to Analytics: Improving Model Efficacy with Goal-Directed Client Selection* (Tong, Chen, Fu, Zhang, Han):
every figure and table, and every claim of its numerical section, beside what came out here. This page is written by
`fedelect reproduce document` from the results in `reproduction/`; a test keeps it equal to them. Each figure is one
command; `fedelect reproduce all --preset paper` makes everything, says first how long that will take, and goes on where
it was stopped; `--preset quick` makes small versions in minutes. Clients carry the paper's numbers, from 1.

Results of the paper's main world (N = 20, K = 5, theta = 1) stand here twice. *Trained*: every slot of every trial is
trained. *On the atlas*: every one of the 15,504 cohorts was trained with three seeds, and a slot draws one of these
instead of training anew (docs/ATLAS.md); selectors and all else are the same, and 100 trials take minutes. Intervals on
the atlas are over trials *given* these three trainings: they leave out the luck of the table itself, which moves a
cohort's accuracy by about 0.001 (standard error), so that a difference of that size between the two is none."""


def write_document(
    library: AbstractLibrary,
    docs: Path,
    *,
    on_atlas: AbstractLibrary | None = None,
    preset: Preset = PRESETS["paper"],
    verdicts: Path | None = None,
) -> Path:
    """Write docs/REPRODUCTION.md, its figures, and the verdicts beside the results; nothing is run.

    Args:
        library: The results. The calibration and the verdicts are kept beside its folder.
        docs: The folder of the document.
        on_atlas: Results of the main world on its atlas, which stand beside the others; None if there are none.
        preset: How much of the results is asked for.
        verdicts: Where the verdicts are kept; beside the results if None.

    Returns:
        The document.
    """
    evidence = Evidence(library=library, preset=preset)
    findings = [assess(claim, evidence) for claim in CLAIMS]
    figures = {one.name: draw_from(one, evidence, docs / FIGURES) for one in EXPERIMENTS}
    looked_up: dict[str, Finding] = {}
    if on_atlas is not None:
        atlas_evidence = Evidence(library=on_atlas, preset=preset.on_atlas())
        judged = [assess(claim, atlas_evidence) for claim in CLAIMS if experiment(claim.where).in_main_world]
        looked_up = {finding.claim.key: finding for finding in judged}
        for one in EXPERIMENTS:
            if one.in_main_world:
                figures[one.name] += draw_from(one, atlas_evidence, docs / FIGURES / ON_ATLAS)
    optimal = evidence.curves(OPTIMAL, slots=1)
    lines = [
        _HEAD,
        "",
        "## Verdicts",
        "",
        RULE,
        "",
        *summary_lines(findings, looked_up),
        "",
        *_sections(findings, looked_up, figures),
        "## The first term of the paper's averages",
        "",
        *first_term_lines(None if optimal is None else optimal.untrained),
        "",
        "## Calibration",
        "",
        *calibration_lines(library.folder.parent / "calibration.json"),
        "",
        "## What the paper leaves open, and how it is filled in",
        "",
        *decision_lines(library.base),
        "",
        "## Results on file",
        "",
        *_on_file(evidence),
    ]
    page = docs / "REPRODUCTION.md"
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    kept = verdicts or verdicts_path(library)
    write_verdicts(kept, findings)
    if looked_up:
        write_verdicts(on_atlas_path(kept), list(looked_up.values()))
    return page


def _sections(
    findings: Sequence[Finding], looked_up: Mapping[str, Finding], figures: dict[str, list[Path]]
) -> list[str]:
    """One section for each figure or table: command, drawing, claims."""
    lines = []
    for one in EXPERIMENTS:
        belonging = [finding for finding in findings if finding.claim.where == one.name]
        lines += [
            f"## {_kind(one)} `{one.name}`",
            "",
            f"{one.title}. Command: `fedelect reproduce {one.name} --preset paper`"
            f"{', with `--on-atlas` for what is looked up in the atlas' if one.in_main_world and looked_up else ''}.",
            "",
            *_shown(one, figures[one.name]),
            *claim_lines(belonging, looked_up),
            *([""] if belonging else []),
        ]
    return lines


def _kind(one: Experiment) -> str:
    return {"figure": "Figure", "table": "Table", "ours": "Beyond the paper:"}[one.part]


def _shown(one: Experiment, paths: Sequence[Path]) -> list[str]:
    lines = []
    for path in paths:
        on_atlas = path.parent.name == ON_ATLAS
        name = f"{FIGURES}/{ON_ATLAS}/{path.name}" if on_atlas else f"{FIGURES}/{path.name}"
        if path.suffix == ".svg":
            lines += [f"![{one.title}{', on the atlas' if on_atlas else ''}]({name})", ""]
        elif path.suffix == ".md":
            lines += [path.read_text(encoding="utf-8").rstrip(), ""]
        else:
            lines += [f"As numbers: [{path.name}]({name}).", ""]
    return lines


def _on_file(evidence: Evidence) -> list[str]:
    """Which series are there, with how many trials of how many."""
    wanted: dict[tuple[Series, int], int] = {}
    for one in EXPERIMENTS:
        for demand in one.at(evidence.preset):
            key = (demand.series, demand.slots)
            wanted[key] = max(wanted.get(key, 0), demand.trials)
    lines = ["| series | slots | trials on file | trials planned |", "|---|---|---|---|"]
    for series, slots in sorted(wanted, key=lambda key: (key[0].world, key[0].selector, key[1])):
        demand = Demand(series=series, slots=slots, trials=wanted[series, slots])
        curves = evidence.curves(series, slots=slots, trials=demand.trials)
        count = 0 if curves is None else len(curves.trials)
        lines.append(f"| {series} | {slots} | {count} | {demand.trials} |")
    names = sorted({name for one in EXPERIMENTS for name in one.measurements})
    there = [name for name in names if measurement_path(evidence.library.folder, name).exists()]
    absent = [name for name in names if name not in there]
    lines += ["", f"Measurements on file: {', '.join(there) or 'none'}."]
    return [*lines, f"Not measured yet: {', '.join(absent)}."] if absent else lines
