"""What `engine.py` runs: groups of entries that take turns, and what each does in its turn."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.contenders.work import Visit, Work, visit

STACKED = ("stacked-epoch", "stacked-round", "stacked-slot")
CONTENDERS = ("torch-loop", "fedjax", "pfl", "flower", "flower-8")
SAMPLES = (200, 600, 3000)
REPLICAS = (1, 8, 25, 100)

# Seconds of a slot, roughly, against the plain loop's: for the estimate of the time only.
_COST = {"torch-loop": 5.0, "fedjax": 2.4, "pfl": 4.5, "flower": 6.0, "flower-8": 2.0}
_START_SECONDS = {"flower": 30.0, "flower-8": 30.0, "torch-loop": 12.0, "pfl": 12.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One timed turn: replicas side by side for some slots.

    Attributes:
        name: Name in the tables.
        replicas: M of all processes together for an engine that takes replicas; otherwise slots of each process.
        slots: T, one after the other.
    """

    name: str
    replicas: int
    slots: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One contender in one setting.

    Attributes:
        contender: Its name.
        work: What it works on.
        processes: How many side by side.
        threads: How many in each.
        runs: What it does in its turn.
        growth: Which point of the growth table it is for; empty elsewhere.
    """

    contender: str
    work: Work
    processes: int = 1
    threads: int = 1
    runs: tuple[Run, ...]
    growth: str = ""

    @property
    def label(self) -> str:
        """Contender and setting."""
        setting = f" x{self.processes}" if self.processes > 1 else ""
        setting += f" ({self.threads} threads)" if self.threads > 1 else ""
        return f"{self.contender}{setting}{self.growth and f' {self.growth}'}"

    @property
    def start_seconds(self) -> float:
        """Guess of the time until it is warm."""
        return _START_SECONDS.get(self.contender, 4.0) + 2.0 * self.seconds(Run(name="", replicas=1))

    def seconds(self, run: Run) -> float:
        """Guess of the time of a run."""
        if self.contender == "sgemm":
            return 3.0
        slot = 0.7 * self.work.samples / 600 * self.work.budget / 5
        stacked = self.contender in STACKED
        share = 0.15 if self.work.samples < 2000 else 0.3
        cost = share / self.processes if stacked else _COST.get(self.contender, 1.0)
        return slot * cost * run.replicas * run.slots

    def shares(self, run: Run, round_: int) -> list[list[Visit]]:
        """The visits of each process in a round.

        Replicas are dealt out to the processes and are the same in each round; what runs slot by slot takes the next
        trials.
        """
        if self.contender in STACKED or self.growth:
            dealt = [range(number, run.replicas, self.processes) for number in range(self.processes)]
        else:
            firsts = [(round_ * self.processes + number) * run.replicas for number in range(self.processes)]
            dealt = [range(first, first + run.replicas) for first in firsts]
        slots = range(1, run.slots + 1)
        return [[visit(self.work, trial, slot) for slot in slots for trial in trials] for trials in dealt]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Entries that are all alive at once and take turns.

    Attributes:
        name: "core D=600", "machine D=600" or "growth".
        work: What its slots are.
        entries: In order of their turns.
        rounds: How often everybody has its turn.
    """

    name: str
    work: Work
    entries: tuple[Entry, ...]
    rounds: int

    @property
    def round_seconds(self) -> float:
        """Guess of the time of a round."""
        return sum(entry.seconds(run) for entry in self.entries for run in entry.runs)

    @property
    def start_seconds(self) -> float:
        """Guess of the time until all are warm."""
        return sum(entry.start_seconds for entry in self.entries)


def core_group(work: Work, replicas: Sequence[int], rounds: int, only: Sequence[str]) -> Group:
    """Everybody on one core."""
    some, one = _turn(work), (Run(name="", replicas=1),)
    runs = {"sgemm": one, "flower": one, "flower-8": (Run(name="", replicas=8),)}
    batches = tuple(Run(name=f"M={count}", replicas=count) for count in replicas)
    entries = [
        Entry(contender=name, work=work, runs=batches if name in STACKED else runs.get(name, some))
        for name in _choose(("lean-numpy", *STACKED, *CONTENDERS), only)
    ]
    return Group(name=f"core D={work.samples}", work=work, entries=tuple(entries), rounds=rounds)


def machine_group(work: Work, replicas: Sequence[int], rounds: int, only: Sequence[str], cores: int) -> Group:
    """Everybody on all cores, by processes side by side and by threads within one; and the plain loop on one core."""
    some, one, eight = _turn(work), (Run(name="", replicas=1),), (Run(name="", replicas=8),)
    batches = tuple(Run(name=f"M={count}", replicas=count) for count in replicas if count >= cores)
    side_by_side = {"sgemm": one, "plain": some, "flower": one, "flower-8": eight}
    side_by_side |= {name: some for name in ("torch-loop", "fedjax", "pfl")} | dict.fromkeys(STACKED, batches)
    threaded = {"torch-loop": some, "fedjax": some, "pfl": some, "flower-8": eight}
    names = _choose((*STACKED, *CONTENDERS), only)
    entries = [Entry(contender="plain", work=work, runs=some)]
    entries += [Entry(contender=name, work=work, runs=side_by_side[name], processes=cores) for name in names]
    entries += [
        Entry(contender=name, work=work, runs=runs, threads=cores) for name, runs in threaded.items() if name in names
    ]
    return Group(name=f"machine D={work.samples}", work=work, entries=tuple(entries), rounds=rounds)


def growth_group(base: Work, rounds: int, only: Sequence[str], factors: Sequence[int]) -> Group:
    """Our engines at a base point (M = 8 replicas, T = 2 slots) and with one number at a time multiplied."""
    entries = []
    for name in _choose(STACKED, only)[2:]:
        there = [Run(name="base", replicas=8, slots=2)]
        there += [Run(name=f"T x{factor}", replicas=8, slots=2 * factor) for factor in factors]
        there += [Run(name=f"M x{factor}", replicas=8 * factor, slots=2) for factor in factors]
        entries.append(Entry(contender=name, work=base, runs=tuple(there), growth="base"))
        for axis, field in (("N", "clients"), ("K", "budget"), ("D", "samples")):
            for factor in factors:
                numbers = {each: getattr(base, each) for each in ("clients", "budget", "samples")}
                numbers[field] *= factor
                point = f"{axis} x{factor}"
                runs = (Run(name=point, replicas=8, slots=2),)
                entries.append(Entry(contender=name, work=Work(**numbers, skew=base.skew), runs=runs, growth=point))
    return Group(name="growth", work=base, entries=tuple(entries), rounds=rounds)


def _choose(names: Sequence[str], only: Sequence[str]) -> list[str]:
    """The yardsticks and those asked for; all if none is."""
    return ["sgemm", "plain", *(name for name in names if not only or name in only)]


def _turn(work: Work) -> tuple[Run, ...]:
    return (Run(name="", replicas=max(1, min(3, 1500 // work.samples))),)
