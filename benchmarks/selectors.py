"""What a selector costs: lazy and exact against enumeration, and belief propagation against other libraries.

    python benchmarks/selectors.py            # all tables
    python benchmarks/selectors.py --quick    # small sizes only
    OPENBLAS_NUM_THREADS=1 python benchmarks/selectors.py --asks     # only what an ask and a tell cost, all selectors
    OPENBLAS_NUM_THREADS=1 python benchmarks/selectors.py --page     # the same, and the table in docs/results/costs.md

Times are wall clock on whatever machine this runs on; ratios are taken side by side in one run. Every size runs in a
process of its own, whose peak memory includes Python and numpy. Others are measured if they are installed: pgmpy comes
with `make setup`; for PGMax, `pip install jax numba tqdm` and `pip install --no-deps pgmax` (its other requirements are
heavy and not needed here).
"""

import os
import sys

if sys.path[0].endswith("benchmarks"):
    sys.path[0] = os.path.dirname(sys.path[0])  # this file would hide the standard library's `selectors`

import argparse
import itertools
import json
import math
import multiprocessing
import platform
import resource
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedelect import Feedback
from fedelect.equations.beliefs import local_field, settle
from fedelect.selectors import AbstractSelector, QuickInitUcb, SubsetUcb, selector_classes
from fedelect.testing.sample_feedback import noisy_feedback

SIZES = [(20, 5, 500), (100, 5, 500), (10_000, 50, 2000), (1_000_000, 100, 1000)]
ASKED = [(100, 10, 60), (10_000, 50, 24)]
PAGE = Path(__file__).parents[1] / "docs" / "results" / "costs.md"
BEGIN, END = "<!-- costs: begin -->", "<!-- costs: end -->"
ENUMERATED = [(20, 5, 500), (40, 5, 500), (60, 5, 200)]


class World:
    """Additive worth of clients plus noise; opinions of all N, drawn outside the timed part."""

    def __init__(self, clients: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.worth = self.rng.random(clients)
        self.spread = self.rng.uniform(-0.05, 0.05, clients)

    def opinions(self, cohort: tuple[int, ...]) -> NDArray[np.float64]:
        """(N,) what the clients think of the model that this cohort trained."""
        level = self.worth[list(cohort)].mean() + 0.02 * self.rng.standard_normal()
        opinions: NDArray[np.float64] = np.clip(level + self.spread, 0.0, 1.0)
        return opinions


class Enumerating:
    """Quick-Init UCB as the paper writes it: one numpy arg-max over the table of all arms."""

    def __init__(self, clients: int, budget: int, exploration: float, scores: NDArray[np.float64]) -> None:
        flat = itertools.chain.from_iterable(itertools.combinations(range(clients), budget))
        count = math.comb(clients, budget)
        self.arms = np.fromiter(flat, dtype=np.int32, count=count * budget).reshape(count, budget)
        self.mean = scores[self.arms].mean(axis=1)
        self.pulls = np.ones(count)
        self.exploration = exploration

    def ask(self, slot: int) -> int:
        """The row of the best arm."""
        return int(np.argmax(self.mean + self.exploration * np.sqrt(math.log(slot) / self.pulls)))

    def tell(self, arm: int, reward: float) -> None:
        """Add a reward to the arm in this row."""
        self.pulls[arm] += 1
        self.mean[arm] += (reward - self.mean[arm]) / self.pulls[arm]


def in_a_process(task: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run the task in a fresh process, so that its peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(task, arguments)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_slot(selector: AbstractSelector, world: World) -> float:
    """Seconds of one ask + tell, reading all opinions included."""
    began = time.perf_counter()
    selection = selector.ask()
    asked = time.perf_counter() - began
    opinions = world.opinions(selection.cohort)
    began = time.perf_counter()
    selector.tell(selection, Feedback(opinions=opinions))
    return asked + time.perf_counter() - began


def cost(kind: str, clients: int, budget: int, slots: int) -> dict[str, Any]:
    """Cold start, per-slot percentiles, memory and state size of one selector."""
    makers: dict[str, type[QuickInitUcb] | type[SubsetUcb]] = {"quick-init-ucb": QuickInitUcb, "subset-ucb": SubsetUcb}
    began = time.perf_counter()
    selector = makers[kind](clients=clients, budget=budget, exploration=1.0, seed=7)
    built = time.perf_counter() - began
    world = World(clients, seed=1)
    # The bookkeeping of the cold start, without reading N opinions in each of its slots.
    cold = built
    for _ in range(-(-clients // budget)):
        reward = float(world.worth[list(selector.ask().cohort)].mean())
        began = time.perf_counter()
        selector.tell(selector.ask(), Feedback(reward=reward))
        cold += time.perf_counter() - began
    times = np.array([one_slot(selector, world) for _ in range(slots)])
    state = json.dumps(selector.state())
    return {
        "cold_s": cold,
        "first_ms": 1e3 * times[0],
        "p50_ms": 1e3 * float(np.percentile(times, 50)),
        "p99_ms": 1e3 * float(np.percentile(times, 99)),
        "peak_mb": peak_mb(),
        "state_kb": len(state) / 1e3,
    }


def ask_and_tell(name: str, clients: int, budget: int, slots: int) -> dict[str, Any]:
    """Median and worst milliseconds of processor time of an ask and of a tell after the cold start."""
    kind = selector_classes()[name]
    extra: dict[str, Any] = {"cohort": range(budget)} if name == "fixed" else {"budget": budget, "seed": 7}
    extra |= {"exploration": 0.1} if kind in (QuickInitUcb, SubsetUcb) else {}
    selector = kind(clients=clients, **extra)
    for _ in range(-(-clients // budget) if hasattr(selector, "_cold") else 0):  # its cold start
        selection = selector.ask()
        selector.tell(selection, noisy_feedback(selection, clients))
    asks, tells = [], []
    for _ in range(slots):
        began = time.process_time()
        selection = selector.ask()
        asks.append(1e3 * (time.process_time() - began))
        feedback = noisy_feedback(selection, clients)
        began = time.process_time()
        selector.tell(selection, feedback)
        tells.append(1e3 * (time.process_time() - began))
    return {
        "ask": float(np.median(asks)),
        "worst_ask": max(asks),
        "tell": float(np.median(tells)),
        "worst_tell": max(tells),
    }


def replica_slot() -> dict[str, Any]:
    """Median milliseconds of processor time of a replica-slot of the mlp, as `modules.py` measures it, one thread."""
    import torch
    from benchmarks.modules import make_contender, make_world

    torch.set_num_threads(1)
    train, survey = make_contender("torch-layers", make_world("mlp"))
    times = []
    for _ in range(8):
        began = time.process_time()
        survey(train(8))
        times.append(1e3 * (time.process_time() - began) / 8)
    return {"ms": float(np.median(times[1:]))}


Costs = dict[str, dict[str, Any]]
"""Name of a selector -> what `ask_and_tell` found."""


def print_asks(sizes: list[tuple[int, int, int]]) -> tuple[float, list[Costs]]:
    """Print what an ask and a tell of every selector cost; return it for each size, after what training costs."""
    slot = in_a_process(replica_slot)["ms"]
    print(f"A replica-slot of the mlp, N = 100, K = 10, training and survey: {slot:.1f} ms")
    found = []
    for clients, budget, slots in sizes:
        print(f"\nAn ask and a tell, N = {clients}, K = {budget}, {slots} slots: median and worst processor time, ms")
        costs: Costs = {}
        for name in selector_classes():
            costs[name] = got = in_a_process(ask_and_tell, name, clients, budget, slots)
            row = "".join(f"{got[column]:10.2f}" for column in ("ask", "worst_ask", "tell", "worst_tell"))
            print(f"{name:24}{row}", flush=True)
        print(f"more than the mlp's replica-slot: {', '.join(slow_names(costs, slot)) or 'none'}")
        found.append(costs)
    return slot, found


def slow_names(costs: Costs, slot: float) -> list[str]:
    """Selectors of which an ask and a tell together take longer than a replica-slot of the mlp."""
    return [name for name, got in costs.items() if got["ask"] + got["tell"] > slot]


def make_section(slot: float, found: list[Costs]) -> str:
    """What stands between the marks of the page: a table of all selectors at all sizes."""
    columns = [f"N = {clients:,}, K = {budget}: {what}" for clients, budget, _ in ASKED for what in ("ask", "tell")]
    lines = ["| method | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in selector_classes():
        cells = [
            f"{got[name][what]:.2f} ({got[name]['worst_' + what]:.2f})" for got in found for what in ("ask", "tell")
        ]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    slow = [", ".join(f"`{name}`" for name in slow_names(costs, slot)) or "none" for costs in found]
    sizes = [f"N = {clients:,}" for clients, _, _ in ASKED]
    said = "; ".join(f"at {size}: {names}" for size, names in zip(sizes, slow, strict=True))
    measured = f"A replica-slot of the mlp at N = 100, K = 10, training and survey, took {slot:.1f} ms in the same run."
    return f"{BEGIN}\n{measured} An ask and a tell take longer {said}.\n\n" + "\n".join(lines) + f"\n{END}"


def write_page(slot: float, found: list[Costs]) -> None:
    """Put the table into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + make_section(slot, found) + rest.partition(END)[2])


def against_enumeration(clients: int, budget: int, slots: int) -> dict[str, Any]:
    """Median seconds of one ask + tell for both, in turns of 20 slots, both reading opinions through `Feedback`."""
    lazy = QuickInitUcb(clients=clients, budget=budget, exploration=1.0, seed=7)
    world = World(clients, seed=1)
    cold = -(-clients // budget)
    for _ in range(cold):
        one_slot(lazy, world)
    before = peak_mb()
    listed = Enumerating(clients, budget, 1.0, lazy.scores)
    ours, theirs = [], []
    for turn in range(cold + 1, cold + slots + 1, 20):
        ours += [one_slot(lazy, world) for _ in range(20)]
        theirs += [one_enumerated_slot(listed, world, slot) for slot in range(turn, turn + 20)]
    return {
        "ours_ms": 1e3 * float(np.median(ours)),
        "theirs_ms": 1e3 * float(np.median(theirs)),
        "table_mb": peak_mb() - before,
    }


def one_enumerated_slot(listed: Enumerating, world: World, slot: int) -> float:
    """Seconds of one ask + tell of the enumerating version."""
    began = time.perf_counter()
    arm = listed.ask(slot)
    asked = time.perf_counter() - began
    opinions = world.opinions(tuple(listed.arms[arm].tolist()))
    began = time.perf_counter()
    reward = Feedback(opinions=opinions).reward
    assert reward is not None
    listed.tell(arm, reward)
    return asked + time.perf_counter() - began


def random_graph(clients: int, degree: int, seed: int) -> NDArray[np.int64]:
    """(M, 2) random links with the given mean degree, i < j, sorted, no repeats."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, clients, (clients * degree // 2 + clients // 50, 2))
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0)[: clients * degree // 2]


def beliefs(clients: int, degree: int, tolerance: float) -> dict[str, Any]:
    """Seconds until dense belief propagation has settled."""
    edges = random_graph(clients, degree, seed=2)
    rng = np.random.default_rng(3)
    fields = local_field(rng.uniform(0.2, 0.9, clients))
    couplings = rng.uniform(-0.3, 0.3, len(edges))
    began = time.perf_counter()
    settling = settle(fields, edges, couplings, rounds=500, damping=0.0, tolerance=tolerance)
    return {
        "seconds": time.perf_counter() - began,
        "rounds": len(settling.residuals),
        "outcome": type(settling.outcome).__name__,
        "beliefs": settling.beliefs.tolist() if clients <= 2000 else None,
        "links": len(edges),
    }


def random_tree(clients: int, seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    parents = [int(rng.integers(0, child)) for child in range(1, clients)]
    return np.array(sorted((parent, child) for child, parent in enumerate(parents, start=1)))


def rivals_on_a_tree(clients: int) -> dict[str, Any]:
    """Ours and pgmpy's exact message passing on one tree; the largest difference of a marginal."""
    edges = random_tree(clients, seed=4)
    rng = np.random.default_rng(5)
    fields = local_field(rng.uniform(0.2, 0.9, clients))
    couplings = rng.uniform(-0.5, 0.5, len(edges))
    began = time.perf_counter()
    ours = settle(fields, edges, couplings, rounds=clients, damping=0.0, tolerance=1e-12).beliefs
    seconds = time.perf_counter() - began
    found: dict[str, Any] = {"ours_s": seconds}
    try:
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.inference import BeliefPropagationWithMessagePassing
        from pgmpy.models import FactorGraph
    except ImportError:
        return found
    graph, names = FactorGraph(), [f"x{client}" for client in range(clients)]
    graph.add_nodes_from(names)
    factors = [
        DiscreteFactor([name], [2], [math.exp(-field), math.exp(field)])
        for name, field in zip(names, fields.tolist(), strict=True)
    ]
    for (i, j), coupling in zip(edges.tolist(), couplings.tolist(), strict=True):
        up, down = math.exp(coupling), math.exp(-coupling)
        factors.append(DiscreteFactor([names[i], names[j]], [2, 2], [up, down, down, up]))
    graph.add_factors(*factors)
    graph.add_edges_from([(name, factor) for factor in factors for name in factor.variables])
    began = time.perf_counter()
    marginals = BeliefPropagationWithMessagePassing(graph).query(names)
    found["pgmpy_s"] = time.perf_counter() - began
    theirs = np.array([marginals[name].values[1] for name in names])
    found["pgmpy_difference"] = float(np.abs(theirs - ours).max())
    return found


def median_s(task: Callable[[], object]) -> float:
    """Median seconds of five calls."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        task()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def pgmax_on_a_graph(clients: int, degree: int, rounds: int) -> dict[str, Any]:
    """Ours and PGMax for the same number of rounds on one loopy graph, compilation left out."""
    edges = random_graph(clients, degree, seed=2)
    rng = np.random.default_rng(3)
    fields = local_field(rng.uniform(0.2, 0.9, clients))
    couplings = rng.uniform(-0.1, 0.1, len(edges))
    ours = settle(fields, edges, couplings, rounds=rounds, damping=0.0).beliefs
    found: dict[str, Any] = {"ours_s": median_s(lambda: settle(fields, edges, couplings, rounds=rounds, damping=0.0))}
    try:
        import jax
        import jax.extend.backend
        from pgmax import fgraph, fgroup, infer, vgroup
    except ImportError as error:
        return found | {"missing": str(error)}
    if not hasattr(jax.lib, "xla_bridge"):  # PGMax 0.6.1 looks here for what newer jax keeps elsewhere
        jax.lib.xla_bridge = types.SimpleNamespace(get_backend=jax.extend.backend.get_backend)
    variables = vgroup.NDVarArray(num_states=2, shape=(clients,))
    graph = fgraph.FactorGraph(variable_groups=variables)
    potentials = np.stack([np.array([[j, -j], [-j, j]]) for j in couplings.tolist()])
    graph.add_factors(
        fgroup.PairwiseFactorGroup(
            variables_for_factors=[[variables[i], variables[j]] for i, j in edges.tolist()],
            log_potential_matrix=potentials,
        )
    )
    machine = infer.build_inferer(graph.bp_state, backend="bp")
    arrays = machine.init(evidence_updates={variables: np.stack([-fields, fields], axis=1)})

    def settled(state: Any) -> Any:
        return machine.get_beliefs(machine.run(state, num_iters=rounds, damping=0.0, temperature=1.0))[variables]

    run = jax.jit(settled)
    log_beliefs = np.asarray(run(arrays))  # compiles
    found["pgmax_s"] = median_s(lambda: jax.block_until_ready(run(arrays)))
    theirs = 1.0 / (1.0 + np.exp(log_beliefs[:, 0] - log_beliefs[:, 1]))
    return found | {"difference": float(np.abs(theirs - ours).max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--asks", action="store_true", help="only what an ask and a tell of every selector cost")
    parser.add_argument("--page", action="store_true", help="the same, and put the table into docs/results/costs.md")
    options = parser.parse_args()
    quick = options.quick and not options.page
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}\n")
    slot, found = print_asks(ASKED[: 1 if quick else None])
    if options.page:
        write_page(slot, found)
    if options.asks or options.page:
        return
    print()
    print("One ask + tell after the cold start (reading N opinions included)")
    columns = ("N", 8), ("K", 4), ("T", 5), ("cold s", 8), ("p50 ms", 8), ("p99 ms", 8), ("peak MB", 8), ("state kB", 9)
    print(f"{'selector':15}", *(f"{name:>{width}}" for name, width in columns))
    for clients, budget, slots in SIZES[: 2 if quick else None]:
        for kind in ("quick-init-ucb", "subset-ucb"):
            got = in_a_process(cost, kind, clients, budget, slots)
            print(
                f"{kind:15} {clients:8} {budget:4} {slots:5} {got['cold_s']:8.3f} {got['p50_ms']:8.3f} "
                f"{got['p99_ms']:8.3f} {got['peak_mb']:8.0f} {got['state_kb']:9.1f}"
            )
    print("\nQuick-Init UCB against one numpy arg-max over all arms (median ms, in turns of 20 slots)")
    print(f"{'N':>4} {'K':>3} {'arms':>9} {'lazy ms':>8} {'enum. ms':>9} {'ratio':>7} {'table MB':>9}")
    for clients, budget, slots in ENUMERATED[: 1 if quick else None]:
        got = in_a_process(against_enumeration, clients, budget, slots)
        ratio = got["theirs_ms"] / got["ours_ms"]
        print(
            f"{clients:4} {budget:3} {math.comb(clients, budget):9} {got['ours_ms']:8.3f} {got['theirs_ms']:9.3f} "
            f"{ratio:7.1f} {got['table_mb']:9.0f}"
        )
    print("\nBelief propagation, dense, mean degree 8, couplings within 0.3, to a residual of 1e-6")
    for clients in (1000, 10_000) if quick else (1000, 10_000, 100_000):
        got = in_a_process(beliefs, clients, 8, 1e-6)
        print(
            f"N = {clients:7}: {got['seconds']:7.3f} s, {got['rounds']} rounds, {got['links']} links, {got['outcome']}"
        )
    print("\nOn a random tree, against pgmpy's exact message passing")
    for clients in (50, 200):
        got = in_a_process(rivals_on_a_tree, clients)
        line = f"N = {clients:4}: ours {1e3 * got['ours_s']:.2f} ms"
        if "pgmpy_s" in got:
            line += (
                f", pgmpy {1e3 * got['pgmpy_s']:.0f} ms ({got['pgmpy_s'] / got['ours_s']:.0f} times), "
                f"largest difference {got['pgmpy_difference']:.1e}"
            )
        print(line if "pgmpy_s" in got else line + "; pgmpy is not installed")
    print("\nOn a loopy graph, mean degree 8, 50 rounds, against PGMax (compiled beforehand)")
    for clients in (100, 1000) if quick else (100, 1000, 10_000):
        got = in_a_process(pgmax_on_a_graph, clients, 8, 50)
        line = f"N = {clients:6}: ours {1e3 * got['ours_s']:.1f} ms"
        if "pgmax_s" in got:
            line += f", PGMax {1e3 * got['pgmax_s']:.1f} ms, largest difference {got['difference']:.1e}"
        print(line if "pgmax_s" in got else f"{line}; PGMax is not installed ({got['missing']})")


if __name__ == "__main__":
    main()
