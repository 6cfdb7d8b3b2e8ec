"""The page as a file: what it holds, what it never does, what it says of runs that are empty, partial or lost."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.sample_runs import PROVENANCE, measured_run, sample_record, sample_run

from fedelect.errors import ConfigurationError, RunError
from fedelect.records import RunRecords, SelectorEntry, open_run, summarise
from fedelect.report import make_unique, write_report
from fedelect.report.style import DARK_COLOURS, LIGHT_COLOURS

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Reads a page: its text, its tags, its tables, and whether tags are nested properly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[dict[str, str | None]]]] = {}
        self.text = ""
        self.scripts: list[str] = []
        self._table = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        if tag == "table":
            self._table = attributes["id"] or ""
            self.tables[self._table] = []
        if tag == "tr":
            self.tables[self._table].append([])
        if tag in ("td", "th"):
            self.tables[self._table][-1].append({"text": "", **attributes})

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts[-1] += data
        elif "style" not in self.open:
            self.text += data
        if "td" in self.open or "th" in self.open:
            cell = self.tables[self._table][-1][-1]
            cell["text"] = (cell["text"] or "") + data

    def data(self) -> dict[str, Any]:
        """What the charts are drawn from."""
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found

    def row(self, table: str, name: str) -> dict[str, dict[str, str | None]]:
        """The cells of the row of the selector `name`, by the heads of their columns; a place may stand before it."""
        heads, *rows = self.tables[f"table-{table}"]
        (found,) = [row for row in rows if (row[0]["text"] or "").lstrip("0123456789") == name]
        return {head["text"] or "": cell for head, cell in zip(heads[1:], found[1:], strict=True)}


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def figures(cell: dict[str, str | None]) -> tuple[float, float]:
    """A cell's mean and the half-width of its interval, in full; nan where there is none."""
    return float(cell.get("data-v") or "nan"), float(cell.get("data-h") or "nan")


def test_the_report_is_one_page_that_loads_nothing(tmp_path: Path) -> None:
    path = write_report(sample_run(), tmp_path / "new" / "report.html")
    assert path == tmp_path / "new" / "report.html"
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]
    page = read(path)
    assert not {"link", "img", "iframe", "object", "image", "base", "form"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href"):
                assert value is not None and value.startswith("#")
    assert re.search(r"url\((?!#)|@import", re.sub(r"<script.*?</script>", "", path.read_text(), flags=re.S)) is None


def test_the_policy_lets_the_two_scripts_run_and_nothing_else(tmp_path: Path) -> None:
    page = read(write_report(sample_run(), tmp_path / "report.html"))
    (policy,) = [a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    data, *scripts = page.scripts
    hashes = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}
    assert policy is not None and len(scripts) == 2
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == hashes
    assert "default-src 'none'" in policy and "connect-src" not in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    assert data.startswith("{")


def test_the_chart_library_is_the_one_that_was_vendored() -> None:
    vendor = resources.files("fedelect.report").joinpath("vendor")
    digest, name = vendor.joinpath("echarts.min.js.sha256").read_text().split()
    library = vendor.joinpath(name).read_bytes()
    assert hashlib.sha256(library).hexdigest() == digest
    assert b"</script" not in library and b"<!--" not in library
    for licence in ("LICENSE-echarts.txt", "LICENSE-zrender.txt", "LICENSE-tslib.txt", "NOTICE-echarts.txt"):
        assert vendor.joinpath(licence).read_text().strip()
    recipe = json.loads((Path(__file__).parents[2] / "tools" / "charts" / "package.json").read_text())
    assert f"ECharts {recipe['dependencies']['echarts']} ".encode() in library[:200]


def test_the_tables_hold_the_figures_of_the_summary_in_full(tmp_path: Path) -> None:
    run = sample_run()
    page = read(write_report(run, tmp_path / "report.html", targets=[0.5]))
    oracle = next(one for one in summarise(run) if one.label == "best").running_mean.mean
    by_opinion = {one.label: one.targets[0] for one in summarise(run, targets=[0.5], target_by="opinion")}
    for one in summarise(run, oracle=oracle, targets=[0.5]):
        assert one.running_mean_with_untrained is not None and one.regret is not None
        won = page.row("won", one.label)
        assert figures(won["mean opinion"]) == (one.running_mean.mean, one.running_mean.half_width)
        if one.label != "best":
            assert one.gap_to_best is not None
            behind = figures(won["against the best fixed cohort"])
            assert behind == pytest.approx((-one.gap_to_best.mean, one.gap_to_best.half_width))
        opinions = page.row("final", one.label)
        assert figures(opinions["last slot"])[0] == one.final_opinion.mean
        assert figures(opinions["mean with the untrained model"])[0] == one.running_mean_with_untrained.mean
        assert figures(opinions["regret"])[0] == pytest.approx(one.regret.mean)
        assert opinions["slots on record"]["data-v"] == "12"
        fairness = page.row("fairness", one.label)
        assert figures(fairness["Jain's index"])[0] == one.jain_index.mean
        assert figures(fairness["never elected in a trial"])[0] == one.never_chosen.mean
        assert figures(fairness["uploads lost"])[0] == one.upload_failures.mean
        for group in ("iid", "skewed"):
            assert figures(fairness[f"elections of {group}"])[0] == one.group_shares[group].mean
        targets = page.row("targets", one.label)
        for head, reached in (("mean 0.5", one.targets[0]), ("a slot 0.5", by_opinion[one.label])):
            assert figures(targets[head])[0] == reached.slots.mean
            assert f"{reached.reached} of 2 trials" in (targets[head]["text"] or "")
    assert PROVENANCE.command in page.text and "not complete" not in page.text
    assert "Nothing was thinned" in page.text


def test_clients_never_elected_at_all_are_named(tmp_path: Path) -> None:
    run = sample_run(client_names=("ann", "bob", "eve", "dan", "fay", "gus", "hal"))
    page = read(write_report(run, tmp_path / "report.html"))
    assert page.row("fairness", "best")["never elected at all"]["text"] == "4dan, fay, gus, hal"


def test_markup_from_the_configuration_is_shown_and_never_obeyed(tmp_path: Path) -> None:
    evil = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\"&$title"
    run = sample_run(
        selectors=(SelectorEntry(label=evil, kind=evil, parameters={evil: evil}),),
        scenario={"name": evil, evil: [evil]},
        groups={evil: (0, 1)},
        client_names=(evil,) * 7,
        framework="da",
        provenance=msgspec.structs.replace(PROVENANCE, command=evil, platform=evil, versions={evil: evil}),
    )
    path = write_report(run, tmp_path / "report.html")
    page = read(path)
    assert len(page.scripts) == 3
    assert not any("onerror" in attributes for _, attributes in page.tags)
    assert page.text.count(evil) >= 8
    assert f"{evil} in {evil}" in page.text
    assert page.data()["runs"][0]["selectors"][0]["label"] == evil
    assert page.data()["runs"][0]["clientNames"][0] == f"0 {evil}"


def test_a_folder_with_markup_in_its_name_is_shown_and_never_obeyed(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    run = sample_run()
    with open_run(tmp_path / evil, run.header) as writer:
        writer.append(run.records)
    page = read(write_report([tmp_path / evil, run], tmp_path / "report.html"))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert f"{evil} is FL&FA" in page.text


def test_runs_in_several_worlds_have_tables_of_their_own(tmp_path: Path) -> None:
    runs = [sample_run(), sample_run(seed=4), sample_run(framework="da", slots=3)]
    page = read(write_report(runs, tmp_path / "report.html"))
    assert [run["name"] for run in page.data()["runs"]] == ["small", "small (2)", "small (3)"]
    assert [world["runs"] for world in page.data()["worlds"]] == [[0], [1], [2]]
    assert "best and random compared in small, small (2) and small (3)" in page.text
    for suffix, run in zip(("", "-1", "-2"), runs, strict=True):
        shown = [figures(page.row(f"won{suffix}", one.label)["mean opinion"])[0] for one in summarise(run)]
        assert shown == [one.running_mean.mean for one in summarise(run)]
    assert page.text.count("To repeat it:") == 3


def test_runs_in_one_world_are_ranked_in_one_table_and_what_is_repeated_is_shown_once(tmp_path: Path) -> None:
    federated, democratized = sample_run(), sample_run(framework="da")
    other = [
        msgspec.structs.replace(one, opinions=(0.5,) * 7, reward=0.5) if one.selector == "random" else one
        for one in democratized.records
    ]
    runs = [federated, RunRecords(democratized.header, tuple(other))]
    page = read(write_report(runs, tmp_path / "report.html"))
    assert [world["runs"] for world in page.data()["worlds"]] == [[0, 1]]
    names = [row[0]["text"] for row in page.tables["table-won"][1:]]
    assert sorted(name.lstrip("123") for name in names if name is not None) == ["best", "random", "small (2): random"]
    assert page.row("won", "best")["loop"]["text"] == "FL&FA and FL&DA"
    assert page.row("won", "small (2): random")["loop"]["text"] == "FL&DA"
    (again,) = [one for one in page.data()["runs"][1]["selectors"] if one["label"] == "random"]
    (first,) = [one for one in page.data()["runs"][0]["selectors"] if one["label"] == "random"]
    assert again["look"] == first["look"] and again["again"] and not again["repeated"]
    assert page.data()["runs"][1]["selectors"][0]["repeated"]


def test_the_recommended_selector_is_named_with_what_it_stands_for_in_each_run(tmp_path: Path) -> None:
    kinds = {"fa": "SetGp", "da": "BpGp"}
    runs = []
    for framework, kind in kinds.items():
        own = SelectorEntry(label="auto", kind=kind), SelectorEntry(label="random", kind="RandomCohort")
        runs.append(sample_run(framework=framework, selectors=own))
    page = read(write_report(runs, tmp_path / "report.html"))
    names = [row[0]["text"] for row in page.tables["table-won"][1:]]
    shown = sorted(name.lstrip("123") for name in names if name is not None)
    assert shown == ["auto (BpGp)", "auto (SetGp)", "random"]
    assert page.row("won", "auto (BpGp)")["loop"]["text"] == "FL&DA"
    first, second = (run["selectors"][0] for run in page.data()["runs"])
    assert first["look"] == second["look"] and second["again"]


def test_an_empty_run_gives_a_page_that_says_so(tmp_path: Path) -> None:
    page = read(write_report(sample_run(until=0), tmp_path / "report.html"))
    assert "No slot is on record so far." in page.text
    assert "0 of 24 slots are on record" in page.text
    assert page.data()["runs"][0]["curveSlots"] == [] and "nan" not in page.text


def test_a_partial_run_says_how_far_it_has_got(tmp_path: Path) -> None:
    run = sample_run(until=3)
    extra = sample_record(run.header, "best", 0, 4, status="abandoned", note="the engine failed")
    page = read(write_report(RunRecords(run.header, (*run.records, extra)), tmp_path / "report.html"))
    assert "13 of 24 slots are on record (54.2 %)" in page.text
    assert "1 slot was abandoned." in page.text
    assert page.data()["runs"][0]["curveSlots"] == [1, 2, 3, 4]


@pytest.mark.parametrize(("slots", "trials"), [(1, 1), (1, 3), (6, 1)])
def test_single_slots_and_trials_give_a_page(tmp_path: Path, slots: int, trials: int) -> None:
    page = read(write_report(sample_run(slots=slots, trials=trials), tmp_path / "report.html"))
    assert ("\u00b1" in page.text) == (trials > 1)
    assert "nan" not in page.text and "not complete" not in page.text


def test_a_run_of_which_every_slot_was_abandoned_gives_a_page(tmp_path: Path) -> None:
    run = sample_run()
    lost = [sample_record(run.header, r.selector, r.trial, r.slot, status="abandoned", note="x") for r in run.records]
    page = read(write_report(RunRecords(run.header, tuple(lost)), tmp_path / "report.html"))
    assert "24 slots were abandoned." in page.text and "nan" not in page.text


def test_runs_of_other_drivers_that_know_less_give_a_page(tmp_path: Path) -> None:
    run = sample_run(source="peers", groups={}, untrained=None, scenario={}, client_names=None)
    silent = [sample_record(run.header, r.selector, r.trial, r.slot, opinions=None) for r in run.records]
    page = read(write_report(RunRecords(run.header, tuple(silent)), tmp_path / "report.html"))
    assert "Run by real processes." in page.text
    drawn = page.data()["runs"][0]["map"]
    assert not drawn["placesKnown"] and drawn["sizes"] is None
    assert all(frames["opinions"] is None for frames in drawn["frames"])
    assert all(value is not None for value in page.data()["runs"][0]["selectors"][0]["curves"]["opinion"]["mean"])


def test_the_same_run_gives_the_same_page_whether_held_or_read_from_its_folder(tmp_path: Path) -> None:
    run = sample_run()
    with open_run(tmp_path / "small", run.header) as writer:
        writer.append(run.records)
    first = write_report(run, tmp_path / "first.html").read_bytes()
    second = write_report(str(tmp_path / "small"), tmp_path / "small" / "report.html").read_bytes()
    assert first == second
    open_run(tmp_path / "small", run.header).close()


def test_colours_in_light_and_dark_come_in_pairs() -> None:
    assert len(set(LIGHT_COLOURS)) == len(set(DARK_COLOURS)) == len(LIGHT_COLOURS) == 9


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="at least one run"):
        write_report([], tmp_path / "report.html")


def test_a_place_that_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot write the report .*file/report\.html"):
        write_report(sample_run(), tmp_path / "file" / "report.html")


def test_a_run_whose_selector_was_told_a_median_says_that_the_plain_mean_is_shown(tmp_path: Path) -> None:
    run = sample_run()
    plain = read(write_report(run, tmp_path / "plain.html"))
    assert "another average" not in plain.text and "Noise" not in plain.text and "from 0 to 1" in plain.text
    changed = [
        msgspec.structs.replace(one, reward=0.75) if one.selector == "random" and one.slot < 3 else one
        for one in run.records
    ]
    page = read(write_report(RunRecords(run.header, tuple(changed)), tmp_path / "report.html"))
    assert "In 4 slots (random) the selector was told another average than the mean of the opinions" in page.text
    assert page.row("won", "random")["mean opinion"] == plain.row("won", "random")["mean opinion"]


def test_a_run_of_which_only_noisy_averages_are_on_record_says_so(tmp_path: Path) -> None:
    run = sample_run()
    silent = [msgspec.structs.replace(one, opinions=None, reward=1.5, reward_noise=0.25) for one in run.records]
    page = read(write_report(RunRecords(run.header, tuple(silent)), tmp_path / "report.html"))
    assert "Noise was added to the averages that the selectors were told (standard deviation 0.25)." in page.text
    assert "they may lie below 0 or above 1" in page.text and "from 0 to 1" not in page.text
    assert page.data()["runs"][0]["noisy"] is True


def test_noise_in_what_selectors_were_told_does_not_touch_opinions_on_record(tmp_path: Path) -> None:
    run = sample_run()
    told = [msgspec.structs.replace(one, reward=1.5, reward_noise=0.1 * one.slot) for one in run.records]
    page = read(write_report(RunRecords(run.header, tuple(told)), tmp_path / "report.html"))
    assert "(standard deviation 0.1 to 0.6)." in page.text and "another average" not in page.text
    assert "they may lie" not in page.text and "from 0 to 1" in page.text


def test_a_run_without_a_command_does_not_say_how_to_repeat_it(tmp_path: Path) -> None:
    run = sample_run(provenance=msgspec.structs.replace(PROVENANCE, command=""))
    page = read(write_report(run, tmp_path / "report.html"))
    assert "To repeat it" not in page.text and "Seed 3" in page.text


def test_names_of_runs_stay_apart_when_one_is_called_like_the_second_of_another() -> None:
    assert make_unique(["a", "a (2)", "a", "a", "a (2)"]) == ["a", "a (2)", "a (3)", "a (4)", "a (2) (2)"]
    assert make_unique(["a", "a", "a (2)"]) == ["a", "a (3)", "a (2)"]


def test_the_tables_of_a_measured_run_hold_the_figures_of_its_summary(tmp_path: Path) -> None:
    run = measured_run()
    page = read(write_report(run, tmp_path / "report.html"))
    gap = next(one.measured.oracle_gap for one in summarise(run) if one.measured is not None)
    assert gap is not None and gap.half_width is not None
    ahead = f"{100 * gap.mean:.1f} \u00b1 {100 * gap.half_width:.1f} points ahead of random"
    assert f"The oracle, which draws among the unflawed, is {ahead}." in page.text
    for table, expected in (
        ("won", {"accuracy at the end": "final_accuracy", "against random": "difference"}),
        ("won", {"10th percentile of clients": "final_low_accuracy", "flawed among the elected": "flawed_share"}),
        ("accuracy", {"slot 25": None, "10th percentile against random": "low_difference"}),
        ("costs", {"accuracy at equal bytes": "accuracy_at_equal_bytes", "evaluations a trial": "evaluations"}),
    ):
        for one in summarise(run):
            for head, name in expected.items():
                assert one.measured is not None
                figure = getattr(one.measured, name) if name else one.measured.accuracy_at[25]
                shown = page.row(table, one.label)[head].get("data-v")
                assert shown == (None if figure is None else repr(figure.mean)), (head, one.label)
    curves = page.data()["runs"][0]["selectors"][0]["curves"]
    assert curves["low accuracy"]["x"] == [25, 30] and len(curves["accuracy"]["mean"]) == 30
    assert "accuracy minus random" not in page.data()["runs"][0]["selectors"][1]["curves"]


def test_selectors_of_a_run_without_measures_are_left_out_of_their_tables(tmp_path: Path) -> None:
    page = read(write_report([sample_run(), measured_run()], tmp_path / "report.html"))
    for table in ("accuracy", "costs"):
        assert f"table-{table}" not in page.tables
        assert [row[0]["text"] for row in page.tables[f"table-{table}-1"][1:]] == ["mine", "random", "oracle"]


def test_a_gap_that_is_not_clear_gives_no_closure_and_says_so(tmp_path: Path) -> None:
    page = read(write_report(measured_run(trials=1), tmp_path / "report.html"))
    assert "not clearly more than 1 point, so no closure is stated" in page.text
    assert "closure" not in [cell["text"] for cell in page.tables["table-accuracy"][0]]


def test_a_run_without_measures_has_no_part_for_them(tmp_path: Path) -> None:
    page = read(write_report(sample_run(), tmp_path / "report.html"))
    assert "table-accuracy" not in page.tables and "Accuracy on clean data</h2>" not in page.text
    assert all(one["byBytes"] is None for one in page.data()["runs"][0]["selectors"])


def test_a_warm_run_says_that_selectors_were_told_gains_and_not_another_average(tmp_path: Path) -> None:
    run = sample_run()
    told = [msgspec.structs.replace(one, mean_opinion=one.reward, reward=0.51) for one in run.records]
    page = read(write_report(RunRecords(run.header, tuple(told)), tmp_path / "report.html"))
    assert "told what a slot gained against what was to be expected" in page.text
    assert "another average" not in page.text
    assert "Regret is measured" not in page.text and page.data()["runs"][0]["largestGap"] is None
