"""Puts the record together."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from paper.catalogue import EXPERIMENTS, OPTIMAL, PRESETS, Experiment, Preset, experiment
from paper.claims import CLAIMS, Finding, assess
from paper.document.calibration_section import calibration_lines
from paper.document.claims_section import RULE, cause_lines, claim_lines, summary_lines
from paper.document.committed_results import registered_folder
from paper.document.decisions import decision_lines, first_term_lines
from paper.document.on_file import measurement_lines, on_file_lines, total_line, trials_line
from paper.document.verdicts import on_atlas_path, verdicts_path, write_verdicts
from paper.evidence import Evidence
from paper.figures import draw_from
from paper.registered import read_drawings
from paper.runner import AbstractResultStore

PAGE = "RECORD.md"

FIGURES = "reproduction"
"""Folder of the figures, below that of the page."""

ON_ATLAS = "on-atlas"
"""Folder, below that, of the figures drawn from runs on the atlas."""

_HEAD = """\
# The record: every figure, table and claim of the paper

*From Learning to Analytics: Improving Model Efficacy with Goal-Directed Client Selection* (Tong, Chen, Fu, Zhang, Han):
every figure and table, and every claim that it makes of them, beside what came out here, in one drawing of the data
and with the algorithms as this project reads the print (Quick-Init UCB with mu = 1 on opinions from 0 to 1). What was
understood of it, and tested over drawings, is on one page: [docs/REPRODUCTION.md](../docs/REPRODUCTION.md). This page
is written by `python -m paper document` from the results in `paper/results/`; a test keeps it equal to them. Each
figure is one command; `python -m paper all --preset paper` makes everything, says first how long that will take, and
goes on where it was stopped (in one folder one command at a time); `--preset quick` makes small versions in minutes.
`make paper` computes every claim once more from the files of the results, by numpy and scipy alone. Clients carry the
paper's numbers, from 1; only in the names of series, which are what `fedelect run --selector` takes, they count from 0.

Results of the paper's main world (N = 20, K = 5, theta = 1) stand here twice. *Trained*: every slot of every trial is
trained. *On the atlas*: every one of the 15,504 cohorts was trained with three seeds, and a slot draws one of these
instead of training anew ([ATLAS.md](../docs/ATLAS.md)); selectors and all else are the same, and 100 trials take
minutes. Intervals on the atlas are over trials *given* these three trainings: they leave out the luck of the table
itself, which moves a cohort's accuracy by about 0.002 (standard error, on average over cohorts: `fedelect atlas show`
prints 0.0037 between seeds; less for good cohorts), so that a difference of that size between the two tells nothing."""


def write_record(
    store: AbstractResultStore,
    folder: Path,
    *,
    on_atlas: AbstractResultStore | None = None,
    preset: Preset = PRESETS["paper"],
    verdicts: Path | None = None,
) -> Path:
    """Write the record, its figures, and the verdicts beside the results; nothing is run.

    Args:
        store: The results. The calibration and the verdicts are kept beside its folder.
        folder: The folder of the page; its figures go into one below it.
        on_atlas: Results of the main world on its atlas, which stand beside the others; None if there are none.
        preset: How much of the results is asked for.
        verdicts: Where the verdicts are kept; beside the results if None.

    Returns:
        The page.
    """
    drawings = read_drawings(registered_folder(store))
    evidence = Evidence(store=store, preset=preset, drawings=drawings)
    findings = [assess(claim, evidence) for claim in CLAIMS]
    figures = {one.name: draw_from(one, evidence, folder / FIGURES) for one in EXPERIMENTS}
    looked_up: dict[str, Finding] = {}
    atlas_evidence = None
    if on_atlas is not None:
        atlas_evidence = Evidence(store=on_atlas, preset=preset.on_atlas(), drawings=drawings)
    if atlas_evidence is not None:
        judged = [assess(claim, atlas_evidence) for claim in CLAIMS if experiment(claim.where).in_main_world]
        looked_up = {finding.claim.key: finding for finding in judged}
        for one in EXPERIMENTS:
            if one.in_main_world:
                figures[one.name] += draw_from(one, atlas_evidence, folder / FIGURES / ON_ATLAS)
    optimal = evidence.curves(OPTIMAL, slots=1)
    lines = [
        _HEAD,
        "",
        "## Verdicts",
        "",
        RULE,
        "",
        *cause_lines(findings),
        "",
        "Claim by claim, without regard to causes:",
        "",
        *summary_lines(findings, looked_up),
        "",
        total_line(evidence),
        "",
        *_sections(findings, looked_up, figures, evidence, atlas_evidence),
        "## The first term of the paper's averages",
        "",
        *first_term_lines(None if optimal is None else optimal.untrained),
        "",
        "## Calibration",
        "",
        *calibration_lines(store.folder.parent / "calibration.json"),
        "",
        "## What the paper leaves open, and how it is filled in",
        "",
        *decision_lines(store.base),
        "",
        "## Results on file",
        "",
        "Trained:",
        "",
        *on_file_lines(evidence),
        "",
        *measurement_lines(evidence),
        *_on_atlas_lines(atlas_evidence),
    ]
    page = folder / PAGE
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    kept = verdicts or verdicts_path(store)
    write_verdicts(kept, findings)
    if looked_up:
        write_verdicts(on_atlas_path(kept), list(looked_up.values()))
    return page


def _sections(
    findings: Sequence[Finding],
    looked_up: Mapping[str, Finding],
    figures: dict[str, list[Path]],
    evidence: Evidence,
    atlas_evidence: Evidence | None,
) -> list[str]:
    """One section for each figure or table: command, drawing, claims."""
    lines = []
    for one in EXPERIMENTS:
        belonging = [finding for finding in findings if finding.claim.where == one.name]
        trained = [path for path in figures[one.name] if path.parent.name != ON_ATLAS]
        on_atlas = [path for path in figures[one.name] if path.parent.name == ON_ATLAS]
        lines += [f"## {_kind(one)} `{one.name}`", "", f"{one.title}.", ""]
        if atlas_evidence is None or not on_atlas:
            lines += [f"Command: `{_command(one)}`. {trials_line(one, evidence)}", "", *_list_shown(one, trained)]
        else:
            lines += [f"**Trained**: `{_command(one)}`. {trials_line(one, evidence)}", "", *_list_shown(one, trained)]
            lines += [f"**On the atlas** (looked up, not trained): `{_command(one)} --on-atlas`. "]
            lines[-1] += trials_line(one, atlas_evidence)
            lines += ["", *_list_shown(one, on_atlas)]
        lines += [*claim_lines(belonging, looked_up), *([""] if belonging else [])]
    return lines


def _command(one: Experiment) -> str:
    return f"python -m paper {one.name} --preset paper"


def _on_atlas_lines(atlas_evidence: Evidence | None) -> list[str]:
    if atlas_evidence is None:
        return []
    mains = [one for one in EXPERIMENTS if one.in_main_world]
    return ["", "On the atlas:", "", *on_file_lines(atlas_evidence, only=mains)]


def _kind(one: Experiment) -> str:
    return {"figure": "Figure", "table": "Table", "ours": "Beyond the paper:"}[one.part]


def _list_shown(one: Experiment, paths: Sequence[Path]) -> list[str]:
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
