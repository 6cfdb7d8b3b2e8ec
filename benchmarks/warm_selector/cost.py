"""Time of an ask and a tell of `SoundCycle` with all its signals, median of the last slots, in milliseconds.

python benchmarks/warm_selector/cost.py
"""

import statistics
import time

import numpy as np

from fedelect.seeds import stream
from fedelect.selectors import SoundCycle
from fedelect.vocabulary import UPDATE_SIZE, Feedback

SIZES = ((100, 10, 100), (1000, 20, 200), (10_000, 50, 600))
"""N, K, slots: more than two cycles, so that there are verdicts."""

MEASURED = 60


def main() -> None:
    """Print a line for each size."""
    for clients, budget, slots in SIZES:
        selector = SoundCycle(clients=clients, budget=budget, seed=1)
        asks, tells = [], []
        for slot in range(slots):
            start = time.perf_counter()
            selection = selector.ask()
            asked = time.perf_counter()
            rng = stream(1, "cost", slot)
            updates = np.full((clients, UPDATE_SIZE), np.nan)
            updates[list(selection.cohort)] = rng.standard_normal((budget, UPDATE_SIZE))
            feedback = Feedback(opinions=rng.random(clients), loss=rng.random(clients) + 0.1, updates=updates)
            before = time.perf_counter()
            selector.tell(selection, feedback)
            asks.append(1e3 * (asked - start))
            tells.append(1e3 * (time.perf_counter() - before))
        ask, tell = (statistics.median(times[-MEASURED:]) for times in (asks, tells))
        print(f"N = {clients}, K = {budget}: ask {ask:.2f}, tell {tell:.2f}, longest tell {max(tells[-MEASURED:]):.1f}")


if __name__ == "__main__":
    main()
