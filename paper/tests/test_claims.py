"""The rule of verdicts, and what claims measure on made-up results, worked by hand."""

import dataclasses
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fedelect.equations.intervals import Interval
from paper import CLAIMS, EXPERIMENTS, PRESETS, Evidence, ResultStoreOnFile, World, assess
from paper.blocks import read_block, write_block
from paper.catalogue import LAST_FIVE, OPTIMAL, RANDOM, SUBSET_UCB, bp_ucb, frugal_quick_init, quick_init
from paper.claims import VERDICTS, Claim, Finding, Verdict, verdict_of
from paper.claims.claim import REST_UNDECIDED, select_deciding
from paper.measurements import keep_measurement
from paper.measurements.losses import Losses, RoundLosses, round_losses
from paper.measurements.optimum import Optimum
from paper.ranges import CheckOutcome, Range
from paper.tests.made_up_results import made_up_drawings, put
from paper.tests.small_store import small

WIGGLE = np.array([[-0.001], [0.001], [-0.001], [0.001]])
"""Four trials that differ a little."""


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """Drawings that do not differ, in which both algorithms have 0.8 in every slot."""
    return Evidence(
        store=ResultStoreOnFile(folder=tmp_path, base=small(), known_digest="none", block=4),
        preset=PRESETS["paper"],
        drawings=made_up_drawings((0.8, 0.8)),
    )


def claim(key: str) -> Claim:
    (found,) = (one for one in CLAIMS if one.key == key)
    return found


def judged(key: str, evidence: Evidence) -> Finding:
    return assess(claim(key), evidence)


def means(finding: Finding) -> list[float]:
    return [math.nan if one is None else one.mean for one in finding.measured]


def flat(value: float, slots: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return value + WIGGLE + np.zeros((4, slots))


def keep(evidence: Evidence, name: str, value: msgspec.Struct) -> None:
    keep_measurement(evidence.store, evidence.preset, name, value)


@pytest.mark.parametrize(
    ("mean", "half_width", "outcome"),
    [
        (0.5, 0.1, "holds"),
        (0.5, 0.2, "undecided"),
        (0.35, 0.1, "undecided"),
        (0.65, 0.06, "undecided"),
        (0.15, 0.1, "fails"),
        (0.9, 0.1, "fails"),
        (0.5, None, "undecided"),
        (math.nan, None, "not measured yet"),
    ],
)
def test_a_check_is_judged_by_the_whole_interval(mean: float, half_width: float | None, outcome: str) -> None:
    assert Range(0.3, 0.7).judge(Interval(mean, half_width, 10)) == outcome


def test_an_equal_figure_is_neither_above_nor_below() -> None:
    assert Range(low=0.0).judge(Interval(0.0, 0.0, 5)) == "fails"
    assert Range(high=0.0).judge(Interval(0.0, 0.0, 5)) == "fails"
    assert Range(low=0.0).judge(None) == "not measured yet"


def test_verdicts_follow_from_outcomes() -> None:
    assert verdict_of(["holds", "holds"]) == "holds"
    assert verdict_of(["holds", "undecided"]) == "holds in part"
    assert verdict_of(["holds", "fails"]) == "holds in part"
    assert verdict_of(["fails", "fails"]) == "does not hold"
    assert verdict_of(["undecided", "fails"]) == "does not hold"
    assert verdict_of(["undecided", "undecided"]) == "undecided"
    assert verdict_of(["holds", "not measured yet"]) == "not measured yet"


def test_checks_that_decide_nothing_do_not_change_the_verdict(evidence: Evidence) -> None:
    put(evidence.store, quick_init(), flat(0.8, 500), untrained=0.1)
    finding = judged("comparison_table.quick-init.0.75", evidence)  # 15 slots, where the paper has 9.92
    assert finding.outcomes == ("fails", "holds") and finding.verdict == "does not hold"


def test_claims_have_unique_keys_known_experiments_and_every_figure_of_the_paper_has_one() -> None:
    keys = [one.key for one in CLAIMS]
    assert len(set(keys)) == len(keys)
    known = {one.name for one in EXPERIMENTS}
    assert {one.where for one in CLAIMS} <= known
    silent = {"network", "sensitivity"}  # the paper claims nothing about them
    assert {one.where for one in CLAIMS} == known - silent
    assert all(set(one.why) <= {*VERDICTS, "too low", "too high"} and one.checks and one.says for one in CLAIMS)
    assert all(one.command == f"python -m paper {one.where} --preset paper" for one in CLAIMS)


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: one.key)
def test_whatever_the_verdict_there_is_a_sentence_on_why(one: Claim) -> None:
    deciding = sum(check.decides for check in one.checks)
    possible: list[Verdict] = ["holds", "does not hold", "undecided"]
    possible += ["holds in part"] if deciding > 1 else []
    failed: tuple[CheckOutcome, ...] = tuple("fails" for _ in one.checks)
    nothing = tuple(None for _ in one.checks)
    for verdict in possible:
        finding = Finding(claim=one, measured=nothing, judged=nothing, outcomes=failed, verdict=verdict)
        assert finding.why.endswith("."), verdict
    assert set(one.why) <= {*possible, "too low", "too high"}


def test_a_part_that_is_merely_undecided_is_not_explained_away() -> None:
    one = claim("cen_performance.gain")
    verdict: Verdict = "holds in part"
    failed = Finding(
        claim=one, measured=(None, None), judged=(None, None), outcomes=("holds", "fails"), verdict=verdict
    )
    undecided = Finding(
        claim=one, measured=(None, None), judged=(None, None), outcomes=("holds", "undecided"), verdict=verdict
    )
    assert failed.why == one.why["holds in part"]
    assert undecided.why == f"{one.why['holds']} {REST_UNDECIDED}"
    shown = claim("comparison_table.quick-init.0.75")  # its second check decides nothing
    assert select_deciding(shown, ["holds", "fails"]) == ["holds"]


def test_what_fails_on_different_sides_has_different_reasons() -> None:
    one = claim("comparison_table.bp-ucb.0.85")

    def why(slots: float) -> str:
        measured = (Interval(slots, 1.0, 100), None)
        return Finding(
            claim=one, measured=measured, judged=measured, outcomes=("fails", "fails"), verdict="does not hold"
        ).why

    assert why(20.0) == one.why["too low"] != why(400.0) == one.why["too high"]
    other = claim("comparison_table.quick-init.0.85")
    low = (Interval(1.0, 0.0, 9), None)
    finding = Finding(claim=other, measured=low, judged=low, outcomes=("fails",) * 2, verdict="does not hold")
    assert finding.side == "too low" and finding.why == other.why["does not hold"]
    both = claim("cen_selected_time.counts")
    apart = (Interval(1.0, 0.0, 9), Interval(500.0, 0.0, 9))
    assert (
        Finding(claim=both, measured=apart, judged=apart, outcomes=("fails",) * 2, verdict="does not hold").side is None
    )


def test_without_results_only_arithmetic_is_judged(evidence: Evidence) -> None:
    verdicts = {one.key: assess(one, evidence).verdict for one in CLAIMS}
    measured = {key for key, verdict in verdicts.items() if verdict != "not measured yet"}
    assert measured == {"cen_performance.initiation", "Pre2Slot.arms"}
    assert verdicts["cen_performance.initiation"] == verdicts["Pre2Slot.arms"] == "holds"


def test_accuracies_and_paired_gains_at_t_200(evidence: Evidence) -> None:
    put(evidence.store, OPTIMAL, np.full((4, 200), 0.88), untrained=0.1)
    put(evidence.store, RANDOM, flat(0.76, 200), untrained=0.1)
    put(evidence.store, quick_init(), flat(0.80, 200), untrained=0.1)
    put(evidence.store, SUBSET_UCB, flat(0.7605, 200), untrained=0.1)
    random = judged("cen_performance.random", evidence)
    assert means(random) == pytest.approx([200 * 0.76 / 201]) and random.measured[0] is not None
    assert random.measured[0].count == 4 and random.verdict == "undecided"  # 0.7562 is the end
    gain = judged("cen_performance.gain", evidence)
    assert means(gain) == pytest.approx([200 * 0.04 / 201] * 2) and gain.verdict == "holds in part"
    assert gain.measured[0] is not None and gain.measured[0].half_width == pytest.approx(0.0, abs=1e-12)  # paired
    gap = judged("cen_performance.gap", evidence)
    assert means(gap) == pytest.approx([200 * 0.08 / 201]) and gap.verdict == "does not hold"
    assert judged("cen_performance.conventional", evidence).verdict == "holds"
    assert judged("cen_performance.quick_init", evidence).verdict == "does not hold"


def test_slots_to_a_target_and_the_share_that_reaches_it(evidence: Evidence) -> None:
    put(evidence.store, quick_init(), np.array([[0.92] * 500, [0.92] * 500, [0.81] * 500, [0.5] * 500]))
    put(evidence.store, bp_ucb(), np.full((4, 500), 0.92))
    finding = judged("comparison_table.quick-init.0.75", evidence)
    # 0.92: t >= 0.75 / 0.17 = 4.41; 0.81: t >= 0.75 / 0.06 = 12.5; 0.5: never, which counts as 500.
    assert means(finding)[0] == pytest.approx((5 + 5 + 13 + 500) / 4)
    never = 500 * 0.5 / 501
    assert means(finding)[1] == pytest.approx((2 * 4.6 / 6 + 13 * 0.81 / 14 + never) / 4)
    order = judged("comparison_table.bp_after_quick_init", evidence)
    assert means(order)[0] == pytest.approx((0 + 0 - 8 - 495) / 4)
    reached = judged("comparison_table.both_reach", evidence)
    assert means(reached) == pytest.approx([0.75, 0.75, 0.5, 0.5, 1, 1, 1, 1])


def test_the_optimal_cohort_of_200_slots_is_compared_with_500(evidence: Evidence) -> None:
    put(evidence.store, OPTIMAL, np.full((4, 200), 0.92))
    for series in (RANDOM, quick_init(), bp_ucb()):
        put(evidence.store, series, flat(0.81, 500))
    finding = judged("comparison_table.optimal_first", evidence)
    assert means(finding)[3] == pytest.approx(500 - 13)  # 0.85: t >= 0.85 / 0.07; 0.81 never gets there
    assert finding.verdict == "holds"
    close = judged("comparison_table.both_close", evidence)
    assert means(close)[:4] == pytest.approx([13 - 5, 26 - 6, 500 - 9, 500 - 13], abs=2)
    # BP-UCB's bound for 0.78, 19.95 slots more, is within the interval of 20 and 21 slots.
    assert close.outcomes == (*("fails",) * 4, "holds", "undecided", *("fails",) * 2)
    assert close.verdict == "holds in part"


def test_a_cohort_that_never_gets_there_does_not_come_first_for_being_run_for_fewer_slots(evidence: Evidence) -> None:
    put(evidence.store, OPTIMAL, np.full((4, 200), 0.84), untrained=0.1)
    for series in (RANDOM, quick_init(), bp_ucb()):
        put(evidence.store, series, flat(0.8, 500), untrained=0.1)
    finding = judged("comparison_table.optimal_first", evidence)
    assert means(finding)[3] == 0.0 and finding.outcomes[3] == "fails"


def test_elections_by_group(evidence: Evidence) -> None:
    cohorts = np.zeros((4, 500, 5), dtype=np.int64)
    cohorts[:, :400] = [5, 6, 7, 8, 9]
    cohorts[:, 400:] = [0, 1, 2, 3, 4]
    cohorts[:2, 450:] = [4, 3, 2, 1, 10]
    opinions = flat(0.8, 500)
    opinions[:, 4:24], opinions[:, 400:] = 0.7, 0.9
    put(evidence.store, quick_init(), opinions, cohorts=cohorts)
    counts = judged("cen_selected_time.counts", evidence)
    iid = (2 * (50 * 5 + 50 * 4) + 2 * 500) / 4 / 5
    assert means(counts) == pytest.approx([iid, (2500 - 5 * iid) / 15])
    most = judged("cen_selected_time.most", evidence)
    per_trial = [90 - (2500 - 450) / 15, 100 - 2000 / 15]
    # Of the five client 0 is elected least by either half of the trials: 50 times in two of them, 100 in the others.
    assert means(most) == pytest.approx([sum(per_trial) / 2, 75 - 400]) and most.verdict == "does not hold"
    finds = judged("cen_selected_time.finds", evidence)
    new = (3 + 3 + 2 + 2) / 4 / 500  # cohorts in all slots of a trial
    assert means(finds) == pytest.approx([(0.5 + 0.5 + 1 + 1) / 4, new, 0.9 - 0.7])
    ratio = judged("cen_selected_time.ratio", evidence)
    assert means(ratio) == pytest.approx([iid - 2.53 * (2500 - 5 * iid) / 15]) and ratio.verdict == "does not hold"


def test_extremes_are_chosen_by_other_trials_than_they_are_valued_by(evidence: Evidence) -> None:
    """A selector that is ahead by luck in one half of the trials is not in the other."""
    cohorts = np.zeros((4, 500, 5), dtype=np.int64)
    cohorts[0::2] = [0, 5, 6, 7, 8]  # even trials: 0 is elected of the five, 5 to 8 of the others
    cohorts[1::2] = [1, 9, 10, 11, 12]
    put(evidence.store, quick_init(), flat(0.8, 500), cohorts=cohorts)
    # By odd trials 0 is elected least and 9 most, by even ones 1 and 5: each 500 against 0 where it is valued.
    apart = judged("cen_selected_time.most", evidence).measured[1]
    assert apart is not None and apart.mean == pytest.approx(500.0)


def test_the_widest_pair_of_beliefs_is_chosen_by_the_other_blocks(evidence: Evidence) -> None:
    one, other = np.full((200, 20), 0.05), np.full((200, 20), 0.05)
    one[:, 0], one[:, 1] = 0.06, 0.04
    other[:, 2], other[:, 3] = 0.06, 0.04
    put(
        evidence.store,
        bp_ucb(),
        np.tile(flat(0.8, 200), (2, 1)),
        belief_sums=4 * one,
        belief_squares=4 * one**2,
        residuals=np.zeros(200),
    )
    _, second = sorted(evidence.store.folder.rglob("trials-*.npz"))
    write_block(second, dataclasses.replace(read_block(second), belief_sums=4 * other))
    differ = judged("BP_value.differ", evidence)
    assert means(differ) == pytest.approx([0.0])  # one's luck is not the other's
    second.unlink()
    again = Evidence(store=evidence.store, preset=evidence.preset)
    assert judged("BP_value.differ", again).verdict == "not measured yet"  # there is nothing to choose by


def test_declines_are_compared_trial_by_trial(evidence: Evidence) -> None:
    half = World(upload_probability=0.5)
    levels = {quick_init(): 0.80, quick_init(half): 0.78, bp_ucb(): 0.82, bp_ucb(half): 0.75}
    for series, level in levels.items():
        put(evidence.store, series, flat(level, 200), untrained=0.1)
    finding = judged("PreTheta.pronounced", evidence)
    assert means(finding)[0] == pytest.approx(200 / 201 * (0.07 - 0.02)) and finding.verdict == "holds"
    assert means(finding)[1:] == [5.0] * 4  # i.i.d. clients in a cohort


def test_what_explains_a_decline_is_measured(evidence: Evidence) -> None:
    half = World(upload_probability=0.5)
    cohorts = np.zeros((4, 200, 5), dtype=np.int64)
    cohorts[:, :4] = [5, 6, 7, 8, 9]
    cohorts[:, 4:100] = [0, 1, 7, 8, 9]
    cohorts[:, 100:] = [0, 1, 2, 3, 9]
    opinions = np.zeros((4, 200))
    opinions[:, :4], opinions[:, 4:100], opinions[:, 100:] = 0.5, 0.7, 0.8
    put(evidence.store, quick_init(), opinions, cohorts=cohorts)
    opinions[:, 4:100] -= 0.04
    opinions[3, 100:] = np.nan
    put(evidence.store, quick_init(half), opinions, cohorts=cohorts)
    shown = means(judged("PreTheta.decline", evidence))[4:]
    assert shown == pytest.approx([0.0, math.nan, 0.04, math.nan, 0.0], nan_ok=True)
    many = World(clients=40)
    put(evidence.store, quick_init(many), opinions, cohorts=cohorts)  # its cold start takes eight slots
    random = means(judged("PreNum.decline", evidence))[4:7]
    assert random == pytest.approx([0.5, (0.5 + 0.66) / 2, math.nan], nan_ok=True)
    found = means(judged("PreNum.decline", evidence))[7:]
    expected = [(96 * 2 + 100 * 4) / 196, (92 * 2 + 100 * 4) / 192]
    assert found == pytest.approx([*expected, *[math.nan] * 4], nan_ok=True)


def test_with_mu_alike_the_order_is_shown_and_decides_nothing(evidence: Evidence) -> None:
    for make, level in ((quick_init, 0.70), (bp_ucb, 0.80), (frugal_quick_init, 0.82)):
        put(evidence.store, make(), flat(level, 200), untrained=0.1)
    alone = next(one for one in claim("PreNum.order").checks if "mu = 0.01" in one.name)
    measured = alone.measure(evidence)
    assert measured is not None and measured.mean == pytest.approx(200 / 201 * 0.02) and not alone.decides


def test_whether_the_five_are_the_optimum_is_judged_by_the_trainings_that_did_not_choose(evidence: Evidence) -> None:
    trained = {"first_five": [0.87, 0.88, 0.875], "others": 99, "not_worse": 2}
    own = (0, 1, 2, 3, 9)
    for ahead, verdict in ((0.0, "holds"), (0.02, "does not hold")):
        others = [value + ahead + luck for value, luck in zip((0.87, 0.88, 0.875), (0.0, 1e-4, -1e-4), strict=True)]
        keep(evidence, "optimum", Optimum(best_other_cohort=own, best_other=others, **trained))  # type: ignore[arg-type]
        finding = judged("1_2.c.optimal", evidence)
        assert means(finding) == pytest.approx([ahead, 2.0]) and finding.verdict == verdict


def test_quick_init_at_a_hundred_clients_refutes_its_impossibility(evidence: Evidence) -> None:
    put(evidence.store, quick_init(World(clients=100)), flat(0.7, 500))
    finding = judged("Pre2Slot.impossible", evidence)
    assert means(finding) == [4.0] and finding.verdict == "does not hold" and "EXACT" in finding.why


def test_sets_of_clients(evidence: Evidence) -> None:
    everybody = dataclasses.replace(RANDOM, world=World(budget=20))
    levels = {OPTIMAL: 0.86, LAST_FIVE: 0.5, RANDOM: 0.76, everybody: 0.855}
    for series, level in levels.items():
        put(evidence.store, series, flat(level, 50))
    assert judged("1_2.c.best", evidence).verdict == "holds"
    assert judged("1_2.c.close_to_all", evidence).verdict == "holds"
    worst = judged("1_2.c.worst", evidence)
    assert means(worst) == pytest.approx([50 / 51 * gap for gap in (0.26, 0.355, 0.36)]) and worst.verdict == "holds"


def test_losses(evidence: Evidence) -> None:
    def trial(clients: int) -> RoundLosses:
        return RoundLosses(objective=[2.0, 1.0, 0.995 - clients / 1000], selected=[1.0, 0.5, 0.4 + clients / 100])

    keep(evidence, "losses", Losses(losses={clients: [trial(clients)] * 3 for clients in (5, 10, 15, 20)}))
    converged = judged("1_2.a.converged", evidence)
    assert means(converged) == pytest.approx([0.01, 0.015, 0.02, 0.025])
    more = judged("1_2.a.more", evidence)
    assert means(more) == pytest.approx([0.005] * 3 + [-0.05] * 3) and more.verdict == "holds"
    rising = RoundLosses(objective=[1.0, 1.2], selected=[1.0, 0.999])
    keep(evidence, "losses", Losses(losses={clients: [rising] * 3 for clients in (5, 10, 15, 20)}))
    assert judged("1_2.a.converged", evidence).verdict == "does not hold"  # what rises has not converged


def test_beliefs(evidence: Evidence) -> None:
    beliefs = np.full((200, 20), 0.05)
    beliefs[:, 0] = 0.06
    beliefs[10:20, 1] = 0.054
    opinions, cohorts = np.tile(flat(0.8, 200), (2, 1)), np.broadcast_to([0, 6, 7, 8, 9], (8, 200, 5))
    put(
        evidence.store,
        bp_ucb(),
        opinions,
        cohorts=cohorts,
        belief_sums=4 * beliefs,
        belief_squares=4 * (beliefs**2 + 1e-8),
        residuals=np.full(200, 1e-12),
    )
    _, second = sorted(evidence.store.folder.rglob("trials-*.npz"))  # another level, and another client off
    other = beliefs.copy()
    other[:, 0] = 0.062
    other[10:20, 1], other[10:20, 2] = 0.056, 0.0505
    write_block(second, dataclasses.replace(read_block(second), belief_sums=4 * other))
    converge = judged("BP_value.converge", evidence)
    assert means(converge) == pytest.approx([0.0, 0.10, 0.005, 0.0, 0.0, 1e-12])
    assert converge.outcomes == ("holds", "undecided", "undecided", "holds", "holds", "holds")
    off = converge.measured[1]  # 0.08 and 0.12: Student's t, 1 degree of freedom
    assert off is not None and off.half_width == pytest.approx(12.7062 * 0.02, rel=1e-4) and off.count == 2
    differ = judged("BP_value.differ", evidence)  # client 0 less the first of the others, in each block
    assert means(differ) == pytest.approx([0.011]) and differ.measured[0] is not None
    assert differ.measured[0].half_width == pytest.approx(12.7062 * 0.001, rel=1e-4)
    elects = judged("BP_value.elects", evidence)
    counts = np.zeros(20)
    counts[[0, 6, 7, 8, 9]] = 200
    mean = ((beliefs + other) / 2).mean(axis=0)
    assert means(elects) == pytest.approx([np.corrcoef(mean, counts)[0, 1], np.ptp(mean) / 20])


def test_the_objective_is_the_mean_over_clients_and_the_selected_loss_the_mean_over_their_samples() -> None:
    made = round_losses(np.array([[1.0, 2.0, 6.0], [0.5, 1.0, 3.0]]), (0, 2), np.array([30, 99, 10]))
    assert made == RoundLosses(objective=[3.0, 1.5], selected=[(30 * 1 + 10 * 6) / 40, (30 * 0.5 + 10 * 3) / 40])
