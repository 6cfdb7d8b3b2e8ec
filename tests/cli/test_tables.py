"""The summary of a run on the console."""

import io

from rich.console import Console
from tests.sample_runs import measured_run, sample_run

from fedelect.cli.tables import LEAST_FIRST, print_summary
from fedelect.records import RunRecords, summary_table, tabulate


def printed(run: RunRecords, width: int) -> list[str]:
    text = io.StringIO()
    print_summary(summary_table(tabulate(run)), Console(width=width, file=text))
    return text.getvalue().splitlines()


def test_a_wide_console_shows_every_measure() -> None:
    lines = printed(measured_run(), 160)
    assert not any("Left out" in line for line in lines)
    (mine,) = [line.split() for line in lines if line.split()[:1] == ["mine"] and "[" in line]
    (cells,) = [row for row in summary_table(tabulate(measured_run())).blocks[1].cells if row[0] == "mine"]
    assert mine == " ".join(cells).split()


def test_a_narrow_console_leaves_out_the_least_needed_measures_and_names_them() -> None:
    lines = printed(measured_run(), 80)
    text = " ".join(" ".join(lines).split())
    missing = text.partition("Left out, for the console is narrow: ")[2].partition(" mine is first")[0].split(", ")
    there = [name for name in LEAST_FIRST if name in summary_table(tabulate(measured_run())).blocks[1].columns]
    assert missing and missing == there[: len(missing)]
    assert all(len(line) <= 80 for line in lines) and "…" not in text
    assert any(line.split()[:1] == ["mine"] and "[" in line for line in lines), "closure is never left out"
    assert "closure: share" in text and "evaluations: " not in text, "only what is shown is explained"
    assert "evaluations: a trial" in " ".join(" ".join(printed(measured_run(), 160)).split())


def test_a_run_without_measures_is_one_table() -> None:
    lines = printed(sample_run(), 80)
    assert sum("───" in line for line in lines) == 1 and "clean" not in " ".join(lines)


def test_names_are_not_broken_at_60_columns() -> None:
    lines = printed(measured_run(), 60)
    names = {line.split()[0] for line in lines if line.strip()}
    assert {"mine", "random", "oracle"} <= names
    assert all(len(line) <= 60 for line in lines)
