"""What lies earn: the liars' share of the elections, against the same run in which they are honest.

    python -m benchmarks.warm_selector.lies [TRIALS]

20 clients, 5 of them train, 80 slots, in a world without flaws and in one with 20 % random labels. Differences are in
percent of K/N, with 95 % intervals over trials.
"""

import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fedelect import load_run
from fedelect.bench.user_worlds import UserWorld
from fedelect.equations.intervals import mean_interval
from fedelect.simulator import Plan, simulate, specify_selectors
from fedelect.vocabulary import Floats, Ints

SEED, TRIALS = 77, 12
LIES = ("praise", "blame", "no-loss")
LIARS = (1, 4)

_SMALL = {"clients": 20, "budget": 5}
WORLDS = (
    UserWorld(name="l-none", what="nobody is flawed", changes=_SMALL),
    UserWorld(
        name="l-random", what="20 % random labels", changes={**_SMALL, "flaws": {"random_labels": {"share": 0.2}}}
    ),
)


def cases() -> Iterator[tuple[str, int, str]]:
    """Yield (class, liars, lie)."""
    for name, liars, lie in itertools.product(("Lied", "LiedOpinions"), LIARS, LIES):
        if name == "Lied" or lie != "no-loss":
            yield name, liars, lie


def spec(name: str, liars: int, lie: str) -> str:
    """Return the text of a selector."""
    return f"benchmarks.warm_selector.variants:{name}:liars={liars},lie={lie}"


def main() -> None:
    """Play all cases in each world and print a line for each."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    print("| world | signals | liars | lie | share, percent of K/N more | most in a trial |\n" + "|---" * 6 + "|")
    for world in WORLDS:
        config = world.config(SEED)
        texts = [spec(name, 0, "praise") for name in ("Lied", "LiedOpinions")] + [spec(*case) for case in cases()]
        plan = Plan(
            config=config,
            framework="fa",
            selectors=specify_selectors(texts),
            slots=config.slots,
            trials=trials,
            seed=SEED,
        )
        with tempfile.TemporaryDirectory() as folder:
            simulate(plan, world.load(), Path(folder) / "run", command="benchmarks.warm_selector.lies")
            run = load_run(Path(folder) / "run")
            for name, liars, lie in cases():
                shares = [count(run.cohorts(spec(*one)), liars) for one in ((name, liars, lie), (name, 0, "praise"))]
                more = 100 * (shares[0] - shares[1]) * config.clients / config.budget
                found = mean_interval(more)
                signals = "opinions" if name == "LiedOpinions" else "all"
                print(
                    f"| {world.name} | {signals} | {liars} | {lie} | {found.mean:+.1f} "
                    f"[{found.low:+.1f}, {found.high:+.1f}] | {more.max():+.1f} |",
                    flush=True,
                )


def count(cohorts: Ints, liars: int) -> Floats:
    """(trials,) mean share of the slots in which each of the first `liars` clients trained, of (trials, slots, K)."""
    share: Floats = ((cohorts >= 0) & (cohorts < liars)).sum(axis=(1, 2)) / (liars * cohorts.shape[1])
    return share


if __name__ == "__main__":
    main()
