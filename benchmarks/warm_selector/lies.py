"""What lies earn: the liars' share of the elections, against the same run in which they are honest.

    python -m benchmarks.warm_selector.lies [DRAWS]

20 clients, 5 of them train, 80 slots; in each draw of the world one run. The liars are unflawed: a flawed client that
is left out when honest can lie itself back to equal turns, and to no more. Differences are in percent of K/N, with
95 % intervals over draws.
"""

import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fedelect import load_run
from fedelect.bench.user_worlds import UserWorld
from fedelect.equations.intervals import mean_interval
from fedelect.scenario import build_scenario
from fedelect.simulator import Plan, simulate, specify_selectors

SEED, DRAWS = 77, 60
LIES = ("praise", "blame", "no-loss")
LIARS = (1, 4)

_SMALL = {"clients": 20, "budget": 5}
WORLDS = (
    UserWorld(name="nobody is flawed", what="", changes=_SMALL),
    UserWorld(name="20 % random labels", what="", changes={**_SMALL, "flaws": {"random_labels": {"share": 0.2}}}),
)

Case = tuple[str, int, str]
"""(class, liars, lie)."""


def cases() -> Iterator[Case]:
    """Yield all cases; without losses nobody can lie about them."""
    for name, liars, lie in itertools.product(("Lied", "LiedOpinions"), LIARS, LIES):
        if name == "Lied" or lie != "no-loss":
            yield name, liars, lie


def play(world: UserWorld, seed: int) -> dict[Case, float]:
    """Return by how much the liars' share rose in one draw of a world, in percent of K/N."""
    config, data = world.config(seed), world.load()
    sound = np.flatnonzero(~build_scenario(config, data).flawed).tolist()

    def text(name: str, liars: Sequence[int], lie: str) -> str:
        lied = f",liars={','.join(map(str, liars))}" if liars else ""
        return f"benchmarks.warm_selector.variants:{name}:lie={lie}{lied}"

    honest = {name: text(name, (), "praise") for name in ("Lied", "LiedOpinions")}
    told = {case: text(case[0], sound[: case[1]], case[2]) for case in cases()}
    plan = Plan(
        config=config,
        framework="fa",
        selectors=specify_selectors([*honest.values(), *told.values()]),
        slots=config.slots,
        trials=1,
        seed=seed,
    )
    with tempfile.TemporaryDirectory() as folder:
        simulate(plan, data, Path(folder) / "run", command="python -m benchmarks.warm_selector.lies")
        run = load_run(Path(folder) / "run")
        turns = {label: np.bincount(run.cohorts(label).ravel(), minlength=config.clients) for label in run.selectors}
    fair = config.slots * config.budget / config.clients
    return {
        case: 100 * float((turns[told[case]] - turns[honest[case[0]]])[sound[: case[1]]].mean()) / fair for case in told
    }


def main() -> None:
    """Play all cases in each world and print a line for each."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    print("| world | signals | liars | lie | share, percent of K/N more | most in a draw |\n" + "|---" * 6 + "|")
    for world in WORLDS:
        rises = [play(world, SEED + draw) for draw in range(draws)]
        for case in cases():
            values = [one[case] for one in rises]
            found = mean_interval(values)
            signals = "opinions" if case[0] == "LiedOpinions" else "all"
            print(
                f"| {world.name} | {signals} | {case[1]} | {case[2]} "
                f"| {found.mean:+.1f} [{found.low:+.1f}, {found.high:+.1f}] | {max(values):+.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
