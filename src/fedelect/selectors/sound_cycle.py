"""Equal turns for all clients but those that look flawed and whose leaving out does no harm; for warm starts.

Base: shuffled cycles. Suspects: a mixture of two kinds of clients (`two_kinds`) over readings of each client, most in
the slots in which it trains. Verdict: *points* against the suspects as a group, by witnesses of different kinds; with
`CONVICTED` points they are left out, with `ACCUSED` points if a trial does not speak for them, below `KEPT` they are
back. Clients whose training gains nothing are left out for a while. Those whose reported losses stand out, or the most
suspicious ones where no losses come, are tried without an accusation. docs/theory/sound-cycle.md explains it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from fedelect.rules import pack, unpack
from fedelect.seeds import stream
from fedelect.selectors.base import AbstractSelector, Available, Choice
from fedelect.selectors.crossover import CrossoverTrial, member_effects, pack_cohorts, unpack_cohorts
from fedelect.selectors.readings import RecentUpdates, find_behind, read_losses, read_opinions, read_reports
from fedelect.selectors.two_kinds import Channels, score
from fedelect.selectors.witnesses import (
    Arrays,
    Mask,
    ask_drops,
    ask_gains,
    ask_goal,
    ask_losses,
    ask_updates,
    excess_gains,
    gainless_odds,
    misses_training,
    weighted_mean,
)
from fedelect.vocabulary import Feedback, Floats, Ints, Selection, Signal, as_int

FIRST_VERDICT = 10
"""First slot with a verdict: before it, rare classes look flawed."""

INTRODUCTION = 4.0
"""Cycles at the beginning in which those whose reported loss stays behind are spread thinly."""

MOST_BEHIND = 0.2
"""Largest share of a cohort, at least one client, that they are given there."""

CONVICTED, ACCUSED, KEPT = 3, 2, 1
"""Points at which suspects are left out, at which a trial decides, and at which those left out stay so."""

BY_TRIAL = 2.0
"""Value of `proven` after a trial."""

CURED, LEAST_ABOVE, GAINS = 0.4, 0.3, 2.5
"""Suspects by their reports alone are tried if what their reported log loss is above the others' by is `LEAST_ABOVE` or
more, if own training leaves more than the share `CURED` of that, and if their own gain is less than `GAINS` deviations
above the others': rare data is cured by own training, and gains most."""

CLEARED = 6.0
"""Own gain, in deviations above the others, at which a client is never left out."""

PAUSE, LONGEST_PAUSE, PARDON = 16.0, 32.0, 8.0
"""Cycles that a client is left out at first and at most (the pause doubles), and cycles for which it is acquitted."""

BANNED_PAUSE, GAINLESS_PAUSE = 8.0, 3.0
"""Cycles left out at first after a trial, and where training gains nothing: one reading more may change that."""

MOST_GAINLESS = 0.45
"""Largest share of the clients that is left out because their training gains nothing."""

GAINLESS_WITH_LOSSES = 1.5
"""Log odds above which a client counts as one of them where losses come, which are better witnesses; else 0."""

MEMORY = 150
"""Slots from which the effect of suspects on the others is estimated."""

FIRST_TRIAL, FIRST_TRIAL_CYCLES = 16, 2.5
"""Where no losses come, no trial before this slot and this many cycles: single clients become known slowly."""

DRIFT = 10.0
"""Fall of the opinions in a slot, in units of a usual change, that ends a trial without a verdict."""

FEW_GAINLESS = 0.1
"""Share of the clients above which those whose training gains nothing are enough, and no trial begins."""

TRIED = 0.25
"""Share of the clients that are in, the most suspicious ones, that a trial tries as a group."""

_LEAST_DRIFT = 0.2  # of an opinion
_LOSS_DEVIATION = 0.2  # least deviation of log losses among the sound
_REPORTS, _FROM_LOSSES = frozenset({"report"}), frozenset({"report", "loss"})  # kinds of values
_TRIAL_REST = 4.0  # cycles before a client that was acquitted is tried again
_LONGEST_REST = 5  # doublings of the time between trials that find nothing


class SoundCycle(AbstractSelector):
    """Shuffled cycles over the clients that look sound; the others return now and then, and are judged again."""

    advice: ClassVar[str] = "The model goes on from slot to slot, and some clients may have wrong data or updates."
    version: ClassVar[int] = 6
    resizes = True
    needs: ClassVar[frozenset[Signal]] = frozenset({"opinions"})
    uses: ClassVar[frozenset[Signal]] = frozenset({"loss", "updates"})
    initial_arrays: ClassVar[Mapping[str, float]] = {
        "turn": 0.0,  # 1: has had its turns in this cycle, or is left out of it
        "owed": 0.0,  # turns that it missed while on trial, and trains besides its own
        "out": 0.0,  # 1: left out
        "wait": 0.0,  # cycles until a client that is left out trains again
        "pause": 0.0,  # cycles it was last left out for
        "pardon": 0.0,  # cycles for which it cannot be left out
        "elected": 0.0,  # slots
        "trained": 0.0,  # slots from which something was learnt
        "losses": 0.0,  # readings of its loss
        "height": 0.0,  # log loss minus the median log loss of all that report in the slot, smoothed
        "told_heights": 0.0,  # weight of the readings in `told_height`
        "told_height": 0.0,  # log loss minus that median in slots in which it did not train; weighted sum
        "loss": 0.0,  # log loss, smoothed
        "first_loss": 0.0,  # log loss at its first reading
        "first_level": 0.0,  # level of that median at its first reading
        "learnt": math.nan,  # what its log loss has fallen by, in units of what the level has fallen by
        "report": math.nan,  # log loss last reported, trained or not
        "report_level": math.nan,  # what sound clients reported in that slot
        "first_report": math.nan,  # the same of its first report
        "first_report_level": math.nan,
        "away": math.nan,  # log loss last reported when it did not train, less what sound clients reported
        "drops": 0.0,  # weight of the readings in `drop`
        "drop": 0.0,  # of that difference by its own training
        "gains": 0.0,  # weight of the readings in `gain`
        "gain": 0.0,  # in units of what members usually gain at that time
        "last_gain": 0.0,  # the last one of these readings
        "after": 0.0,  # opinion after its own training, minus the mean of all; weight as for `gain`
        "updates": 0.0,  # weight of the readings in `cosine` and `length`
        "cosine": 0.0,
        "length": 0.0,
        "silent": 0.0,  # worthless updates in a row
        "proven": 0.0,  # 1: left out by points; `BY_TRIAL`: by a trial where losses come, or of the accused
        "gainless": 0.0,  # 1: left out because its training gains nothing
        "banned": 0.0,  # 1: left out by a trial
        "rest": 0.0,  # cycles until it may be on trial again
        "opinion": math.nan,  # last one known
        "level": math.nan,  # smoothed opinion
        "own": math.nan,  # smoothed opinion less what all have in common, from slots in which it did not train
        "level_before": math.nan,  # when clients were first left out
    }

    def __init__(self, *, clients: int, budget: int, seed: int) -> None:
        super().__init__(clients=clients, budget=budget, seed=seed)
        self._cohorts: list[list[int]] = []  # the last MEMORY + 1 that were told
        self._changes: list[float] = []  # in opinion, of those outside these and the cohorts before them
        self._loss_level = math.nan  # median log loss of all that report, smoothed
        self._recent = RecentUpdates.empty()
        self._usual_gain = math.nan  # median absolute gain of the members of a slot, smoothed
        self._introduced = False
        self._trial: CrossoverTrial | None = None
        self._acquittals = 0  # trials in a row that found nothing
        self._next_trial = 0  # slot

    @property
    def left_out(self) -> tuple[int, ...]:
        """The clients that are left out now, sorted."""
        return tuple(np.flatnonzero(self.arrays["out"]).tolist())

    def _choose(self, slot: int, available: Available) -> Choice:
        candidates, resting = self._candidates(available), self._resting(slot)
        if not self._introduced and not np.isnan(self.arrays["report"]).all():
            first = self._introduce(candidates[~resting[candidates]], slot)
        else:
            free = (self.arrays["turn"] == 0.0) & ~resting
            first = self._shuffle(candidates[free[candidates]], slot, "first")[: self.size]
        others = self._shuffle(np.setdiff1d(candidates, first), slot, "others")
        others = others[np.lexsort((resting[others], self.arrays["wait"][others]))]  # those left out come last
        return tuple(sorted([*first.tolist(), *others[: self.size - first.size].tolist()])), ()

    def _introduce(self, candidates: Ints, slot: int) -> Ints:
        """Those elected least; among them few whose reported loss stays behind, once all others had a turn."""
        elected = self.arrays["elected"]
        inside = self._shuffle(candidates[self.arrays["out"][candidates] == 0.0], slot, "first")
        inside = inside[np.argsort(elected[inside], kind="stable")]
        behind = find_behind(self.arrays)[inside]
        late, others = inside[behind], inside[~behind]
        least = elected[others[0]] if others.size else 0.0
        waits = others.size >= self.size and least == 0.0
        count = 0 if waits else max(1, int(MOST_BEHIND * self.size))
        due = late[elected[late] <= least]  # nobody has more turns for being behind
        return np.concatenate([due[:count], others, due[count:], late[due.size :]])[: self.size]

    def _end_introduction(self) -> None:
        """Begin a cycle, in which those who had fewer turns so far have them besides their own."""
        self._introduced = True
        if np.isnan(self.arrays["report"]).all():
            return
        inside, elected = self.arrays["out"] == 0.0, self.arrays["elected"]
        self.arrays["turn"][inside] = 0.0
        self.arrays["owed"][inside] = (elected[inside].max(initial=0.0) - elected)[inside]

    def _learn(self, selection: Selection, feedback: Feedback) -> None:
        members = np.array(selection.cohort)
        assert feedback.opinions is not None
        before = np.array(self._cohorts[-1] if self._cohorts else [], dtype=np.int64)
        change, self._usual_gain = read_opinions(
            self.arrays, members, feedback.opinions, before=before, usual=self._usual_gain
        )
        if feedback.loss is not None:
            self._loss_level = read_losses(self.arrays, members, feedback.loss, level=self._loss_level)
            read_reports(self.arrays, members, feedback.loss)
        if feedback.updates is not None:
            self._recent.read(self.arrays, members, feedback.updates)
        self.arrays["trained"][members] += 1.0
        cohorts = [*self._cohorts, list(selection.cohort)][-MEMORY - 1 :]
        changes = [*self._changes, change][-MEMORY - 1 :]
        self._take_turns(members, selection.slot)
        self._judge(selection.slot, cohorts, changes)
        if not self._introduced and self.arrays["elected"].sum() >= INTRODUCTION * self.clients:
            self._end_introduction()
        self._cohorts, self._changes = cohorts, changes
        if self._trial is not None and self._has_drifted():
            self._trial = None  # the drift would be blamed on the group, or credited to it
        if self._trial is not None and selection.slot >= self._trial.start:
            self._trial.read(members, feedback.opinions)
            self._end_trial(selection.slot, self._trial)
        if self._trial is None:
            self._begin_trial(selection.slot)
        elif not self._trial.accused and self._hears_losses():
            self._extend_trial(selection.slot, self._trial, self._most_suspicious(selection.slot))

    def _abandon(self, selection: Selection) -> None:
        self._take_turns(np.array(selection.cohort), selection.slot)

    def _resting(self, slot: int) -> Mask:
        """(N,) who sits out this slot for a trial."""
        if self._trial is None or not self._trial.sits_out(slot):
            return np.zeros(self.clients, dtype=np.bool_)
        return self._trial.group

    def _take_turns(self, members: Ints, slot: int) -> None:
        """Mark the members' turns; begin a new cycle if one of them has trained in this one already."""
        arrays = self.arrays
        arrays["elected"][members] += 1.0
        probed = members[arrays["out"][members] > 0.0]
        again = members[arrays["turn"][members] > 0.0]
        if again.size:  # the cycle has ended, and these are the first of the next one
            arrays["owed"][self._resting(slot) & (arrays["turn"] == 0.0)] += 1.0
            for name in ("wait", "pardon", "rest"):
                arrays[name] = np.maximum(arrays[name] - 1.0, 0.0)
            arrays["turn"] = (arrays["wait"] > 0.0).astype(np.float64)
            members = again
        repaid = arrays["owed"][members] > 0.0
        arrays["owed"][members[repaid]] -= 1.0
        arrays["turn"][members[~repaid]] = 1.0
        longer = np.minimum(2.0 * arrays["pause"][probed], LONGEST_PAUSE)
        gains = (arrays["gainless"][probed] > 0.0) & (arrays["last_gain"][probed] > 0.0)
        arrays["pause"][probed] = np.where(gains, GAINLESS_PAUSE, longer)
        arrays["wait"][probed] = arrays["pause"][probed]

    def _shuffle(self, clients: Ints, slot: int, purpose: str) -> Ints:
        order = stream(self.seed, "cycle", slot, purpose).permutation(self.clients)
        return clients[np.argsort(order[clients])]

    def _judge(self, slot: int, cohorts: list[list[int]], changes: list[float]) -> None:
        """Leave out the suspects if the witnesses say so, and those whose updates are worthless; let others return."""
        arrays = self.arrays
        if not self._is_due(slot, len(cohorts[-1])):
            return
        out = arrays["out"] > 0.0
        if misses_training(arrays, out & (arrays["silent"] < 2.0)):
            arrays["pardon"][out] = PARDON
        accused, clearly = self._accuse(slot, cohorts, changes)
        proven = clearly | (accused & (arrays["proven"] > 0.0))
        arrays["proven"] = np.where(proven, np.maximum(arrays["proven"], 1.0), 0.0)
        if self._trial is not None and self._trial.accused and not (self._trial.group & ~proven).any():
            self._trial = None
        self._charge(slot, accused & ~proven & ~out, cohorts)
        convicted = proven | (arrays["banned"] > 0.0) | (arrays["silent"] >= 2.0)
        if self._trial is not None and not self._trial.accused and (convicted & ~out).any():
            self._trial = None  # what it measures has changed
        gainless = self._find_gainless(cohorts, changes) if self._may_judge(slot) else arrays["gainless"] > 0.0
        gainless &= ~convicted
        arrays["gainless"] = gainless.astype(np.float64)
        convicted |= gainless
        self._leave_out(convicted & ~out, np.where(gainless, GAINLESS_PAUSE, PAUSE))
        freed = out & ~convicted
        arrays["wait"][freed] = arrays["out"][freed] = 0.0

    def _is_due(self, slot: int, size: int) -> bool:
        """Whether this slot has a verdict: where a cycle is long, one in each tenth of it is enough."""
        return slot % math.ceil(math.ceil(self.clients / size) / 10) == 0

    def _leave_out(self, new: Mask, pauses: Floats) -> None:
        """Leave out these clients at first for `pauses` (N,) cycles."""
        arrays = self.arrays
        if new.any() and not arrays["out"].any():
            arrays["level_before"] = arrays["level"].copy()
        arrays["pause"][new] = arrays["wait"][new] = pauses[new]
        arrays["out"][new], arrays["turn"][new], arrays["owed"][new] = 1.0, 1.0, 0.0

    def _charge(self, slot: int, accused: Mask, cohorts: list[list[int]]) -> None:
        """Put those that witnesses accuse on trial, or add them to those who are, if they can sit out a block yet."""
        if not accused.any():
            return
        if self._trial is not None:
            self._extend_trial(slot, self._trial, accused)
            group = self._trial.group
            self._trial.accused |= bool(2 * np.count_nonzero(group & accused) >= np.count_nonzero(group))
            return
        cycle = math.ceil(np.count_nonzero(self.arrays["out"] == 0.0) / len(cohorts[-1]))
        self._trial = CrossoverTrial(accused, self.arrays["own"], start=slot + 1, cycle=cycle, accused=True)

    def _extend_trial(self, slot: int, trial: CrossoverTrial, new: Mask | None) -> None:
        """Add clients to a trial, if they can sit out a block yet."""
        if new is None:
            return
        group = trial.group | new
        if trial.is_open(slot) and np.count_nonzero(group) <= self.clients / 2:
            trial.group = group

    def _accuse(self, slot: int, cohorts: list[list[int]], changes: list[float]) -> tuple[Mask, Mask]:
        """(N,) the suspects, if witnesses say that they are flawed; and (N,) the same if enough do to need no trial."""
        arrays = self.arrays
        proven = arrays["proven"] > 0.0
        channels = self._read_channels(slot)
        if channels is None:
            return proven, proven
        suspects, by_losses = channels.suspects(without=_REPORTS), channels.suspects(only=_FROM_LOSSES)
        if not (suspects | by_losses).any():
            return suspects, suspects
        skip = math.ceil(self.clients / len(cohorts[0])) if len(cohorts) <= MEMORY else 0

        def ask(witness: Callable[[Arrays, Mask, Mask], int], kind: str) -> int:
            """Ask about those whom the other kinds of values name, so that nobody is a suspect and a proof by one."""
            named = suspects & channels.suspects(without=_REPORTS | {kind}) if kind in channels.kinds else suspects
            return witness(arrays, named, (arrays["trained"] >= 2.0) & ~named & (arrays["silent"] < 2.0))

        others = (arrays["trained"] >= 2.0) & ~suspects & (arrays["silent"] < 2.0)
        gains = ask(ask_gains, "gain")
        points = (
            ask_losses(arrays, suspects, others)
            + ask_drops(arrays, suspects, others)
            + ask(ask_updates, "update")
            + ask_goal(suspects, cohorts, changes, skip=skip)
        )
        free = (arrays["pardon"] == 0.0) & (excess_gains(arrays, others) < CLEARED)
        named, tried = suspects & free, proven & (arrays["proven"] == BY_TRIAL) & free
        kept = named & proven & (points + max(gains, 0) >= KEPT)  # gains of before they were out do not acquit
        kept |= tried & (suspects | by_losses)
        if points + gains >= ACCUSED:
            kept |= named
        return kept, named & (points + gains >= CONVICTED)

    def _find_gainless(self, cohorts: list[list[int]], changes: list[float]) -> Mask:
        """(N,) the clients whose training gains nothing."""
        arrays = self.arrays
        known = arrays["gains"] > 0.0
        if not known.any():
            return np.zeros(self.clients, dtype=np.bool_)
        effects = member_effects(cohorts, np.array(changes), clients=self.clients)
        odds = np.where(known & (arrays["pardon"] == 0.0), gainless_odds(arrays["gain"], effects, known), -math.inf)
        most = int(MOST_GAINLESS * self.clients)
        least = GAINLESS_WITH_LOSSES if self._hears_losses() else 0.0
        gainless: Mask = odds > max(least, float(np.sort(odds)[-most - 1]))
        return gainless

    def _has_drifted(self) -> bool:
        """Whether the opinions outside fell in this slot by far more than they usually move."""
        change = self._changes[-1]
        if math.isnan(change):
            return False
        usual = float(np.nanmedian(np.abs(self._changes)))
        return bool(change < -max(DRIFT * usual, _LEAST_DRIFT))

    def _begin_trial(self, slot: int) -> None:
        """Put the most suspicious clients on trial, or those whose time out is over."""
        arrays = self.arrays
        due = (arrays["banned"] > 0.0) & (arrays["wait"] == 0.0)
        group = due if due.any() else self._most_suspicious(slot)
        if group is None:
            return
        for name in ("banned", "out"):
            arrays[name][due] = 0.0
        cycle = math.ceil(np.count_nonzero(arrays["out"] == 0.0) / len(self._cohorts[-1]))
        self._trial = CrossoverTrial(group, arrays["own"], start=slot + 1, cycle=cycle)

    def _most_suspicious(self, slot: int) -> Mask | None:
        """(N,) the group to try next; None if it is not time, or if there is nobody to try."""
        arrays = self.arrays
        inside = arrays["out"] == 0.0
        gainless = arrays["gainless"] > 0.0
        by_points = ~inside & (arrays["banned"] == 0.0) & (arrays["silent"] < 2.0) & ~gainless
        if slot < self._next_trial or by_points.any() or np.count_nonzero(gainless) > FEW_GAINLESS * self.clients:
            return None
        hears = self._hears_losses()
        if hears and not self._is_due(slot, len(self._cohorts[-1])):
            return None
        channels = self._read_channels(slot)
        if channels is None:
            return None
        if hears:
            return self._suspected(channels)
        if slot < max(FIRST_TRIAL, FIRST_TRIAL_CYCLES * self.clients / self.budget):
            return None
        count = int(np.count_nonzero(inside))
        size = min(round(TRIED * count), self.clients // 2 - (self.clients - count), count - len(self._cohorts[-1]))
        known = arrays["gains"] > 0.0
        free = self._shuffle(np.flatnonzero(inside & known & (arrays["rest"] == 0.0)), slot, "trial")
        if size < 1 or free.size < size:
            return None
        effects = member_effects(self._cohorts, np.array(self._changes), clients=self.clients)
        after = weighted_mean(arrays["after"], arrays["gains"])
        evidence = channels.scores.sum(axis=0) + score(-effects, known) + score(-after, known)
        group = np.zeros(self.clients, dtype=np.bool_)
        group[free[np.argsort(-evidence[free], kind="stable")[:size]]] = True
        return group

    def _suspected(self, channels: Channels) -> Mask | None:
        """(N,) the suspects by their reports who are in and whom own training does not cure; None if there are none."""
        arrays = self.arrays
        suspects = channels.suspects(only=_REPORTS)
        others = (arrays["trained"] >= 2.0) & ~suspects & (arrays["silent"] < 2.0)
        inside = arrays["out"] == 0.0
        group = suspects & inside & (arrays["rest"] == 0.0) & (arrays["pardon"] == 0.0)
        least = len(self._cohorts[-1])
        if not group.any() or not others.any() or np.count_nonzero(inside & ~group) < least:
            return None
        reported = weighted_mean(arrays["told_height"], arrays["told_heights"])
        above, left = (
            float(np.median(values[group]) - np.median(values[others])) for values in (reported, arrays["height"])
        )
        gains = float(np.median(excess_gains(arrays, others)[group]))
        return group if above > LEAST_ABOVE and left > CURED * above and gains < GAINS else None

    def _end_trial(self, slot: int, trial: CrossoverTrial) -> None:
        """Leave the group out if it was harmful; acquit it if it was not; else go on."""
        outcome, arrays = trial.judge(slot), self.arrays
        if outcome == "undecided":
            return
        group, self._trial = trial.group, None
        if trial.accused and outcome == "acquitted":
            arrays["pardon"][group & (arrays["proven"] == 0.0)] = PARDON
        elif trial.accused or (outcome == "harmful" and self._hears_losses()):
            arrays["proven"][group] = BY_TRIAL
            self._leave_out(group & (arrays["out"] == 0.0), np.full(self.clients, PAUSE))
            self._acquittals, self._next_trial = 0, slot + 1
        elif outcome == "harmful":
            arrays["banned"][group] = 1.0
            self._leave_out(group, np.clip(2.0 * arrays["pause"], BANNED_PAUSE, LONGEST_PAUSE))
            self._acquittals, self._next_trial = 0, slot + 1
        else:
            arrays["pause"][group & (arrays["out"] == 0.0)] = 0.0
            arrays["rest"][group] = _TRIAL_REST
            self._next_trial = slot + 1 + (2 ** min(self._acquittals, _LONGEST_REST) - 1) * trial.block
            self._acquittals += 1

    def _hears_losses(self) -> bool:
        """Whether most clients that trained twice reported their losses."""
        twice = self.arrays["trained"] >= 2.0
        heard = int(np.count_nonzero(twice & (self.arrays["losses"] >= 2.0)))
        return 2 * heard >= max(1, int(np.count_nonzero(twice)))

    def _may_judge(self, slot: int) -> bool:
        """Whether it is late enough for a verdict, and most clients have trained twice."""
        trained = self.arrays["trained"]
        twice = int(np.count_nonzero(trained >= 2.0))
        return slot >= FIRST_VERDICT and twice >= max(4.0, 0.7 * int(np.count_nonzero(trained)))

    def _read_channels(self, slot: int) -> Channels | None:
        """Scores of all clients; None as long as too few have trained twice."""
        arrays = self.arrays
        if not self._may_judge(slot):
            return None
        judged = (arrays["trained"] >= 2.0) & (arrays["silent"] < 2.0)
        channels = [
            ("loss", arrays["height"], arrays["losses"] >= 2.0, _LOSS_DEVIATION),
            (
                "report",
                weighted_mean(arrays["told_height"], arrays["told_heights"]),
                arrays["told_heights"] > 0.0,
                _LOSS_DEVIATION,
            ),
            ("loss", -arrays["learnt"], ~np.isnan(arrays["learnt"]), _LOSS_DEVIATION),
            ("gain", -weighted_mean(arrays["gain"], arrays["gains"]), arrays["gains"] > 0.0, 1e-9),
            ("update", -weighted_mean(arrays["cosine"], arrays["updates"]), arrays["updates"] > 0.0, 1e-9),
            ("update", np.abs(weighted_mean(arrays["length"], arrays["updates"])), arrays["updates"] > 0.0, 1e-9),
        ]
        kinds, scores, known = [], [], []
        for kind, values, readings, least in channels:
            which = readings & ((arrays["trained"] >= 1.0) & (arrays["silent"] < 2.0) if kind == "report" else judged)
            if np.count_nonzero(which) >= max(4.0, 0.5 * np.count_nonzero(judged)):
                kinds.append(kind)
                scores.append(score(values, which, least=least))
                known.append(which)
        return Channels(tuple(kinds), np.array(scores), np.array(known)) if kinds else None

    def _memory(self) -> dict[str, Any]:
        return {
            "told": len(self._changes),
            **pack_cohorts(self._cohorts),
            "changes": pack(np.array(self._changes), "<f8"),
            "levels": pack(np.array([self._loss_level, self._usual_gain]), "<f8"),
            "introduced": self._introduced,
            "recent": self._recent.state(),
            "trial": None if self._trial is None else self._trial.state(),
            "acquittals": self._acquittals,
            "next_trial": self._next_trial,
        }

    def _recall(self, memory: dict[str, Any]) -> None:
        told = as_int("told", memory["told"])
        self._cohorts = unpack_cohorts(memory, told, clients=self.clients)
        self._changes = unpack(memory["changes"], "<f8", size=told, what="changes").tolist()
        self._loss_level, self._usual_gain = unpack(memory["levels"], "<f8", size=2, what="levels").tolist()
        self._introduced = bool(memory["introduced"])
        self._recent = RecentUpdates.restore(memory["recent"], clients=self.clients)
        trial = memory["trial"]
        self._trial = None if trial is None else CrossoverTrial.restore(trial, clients=self.clients)
        self._acquittals = as_int("acquittals", memory["acquittals"])
        self._next_trial = as_int("next_trial", memory["next_trial"])
