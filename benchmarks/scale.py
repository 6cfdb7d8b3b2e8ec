"""How a slot's time and memory grow with the number of clients, where as many train and are asked as before.

    python benchmarks/scale.py                      # N = 100, 1,000 and 10,000; K = 10 train, 40 are asked
    python benchmarks/scale.py --selector set-gp --slots 60 --most 0.5    # exit code 1 if an exponent is larger

Every client has a share of its own: 25 training and 6 test samples of 20 features, 10 classes. Half of the clients are
there in a slot, and the model (softmax) goes on from slot to slot. Each N is played in a fresh process: T slots after 5
that are not counted, through `play_slot` as in any run, measures included. The exponent is that of N in a fit of log
time: 0 if N does not matter, 1 if a slot costs what N costs. The memory is the peak of the process above that of one
with the smallest N, for each client; the data alone takes 3.2 KB.
"""

import sys

if sys.path[0].endswith("benchmarks"):
    del sys.path[0]  # selectors.py there would hide the standard library's

import argparse
import json
import resource
import statistics
import subprocess
import time

import numpy as np
from threadpoolctl import threadpool_limits

from fedelect.datasets import as_dataset
from fedelect.federation import make_engine
from fedelect.loop import Replica, play_slot
from fedelect.scenario import DataConfig, ModelConfig, ScenarioConfig, build_scenario, change_scenario
from fedelect.seeds import stream
from fedelect.selectors import SelectorSpec

CLIENTS = (100, 1_000, 10_000)
TRAINING, TESTING, FEATURES, CLASSES = 25, 6, 20, 10
NOT_COUNTED = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--selector", default="random", help="which selector is asked")
    parser.add_argument("--slots", type=int, default=40, help="slots that count")
    parser.add_argument("--most", type=float, help="largest exponent that passes")
    parser.add_argument("--clients", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.clients is not None:
        print(json.dumps(measure(options.clients, options.selector, options.slots)))
        return
    figures = []
    for clients in CLIENTS:
        command = [sys.executable, __file__, "--selector", options.selector, "--slots", str(options.slots)]
        done = subprocess.run([*command, "--clients", str(clients)], check=True, capture_output=True, text=True)
        figures.append(json.loads(done.stdout))
        print_row(figures[-1], figures[0])
    seconds = [figure["slot_s"] for figure in figures]
    exponent = float(np.polyfit(np.log(CLIENTS), np.log(seconds), 1)[0])
    print(f"exponent of N in the time of a slot: {exponent:.2f}")
    if options.most is not None and exponent > options.most:
        sys.exit(f"the exponent is larger than {options.most:g}")


def measure(clients: int, selector: str, slots: int) -> dict[str, float]:
    """Seconds to build the world, median seconds of a slot, and peak memory in bytes, in this process."""
    rng = stream(1, "scale", clients)
    centres = rng.normal(size=(CLASSES, FEATURES))

    def samples(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, CLASSES, count)
        return (centres[labels] + rng.normal(size=(count, FEATURES))).astype(np.float32), labels

    shares = [(*samples(TRAINING), *samples(TESTING)) for _ in range(clients)]
    config = ScenarioConfig(
        name="scale",
        clients=clients,
        budget=10,
        rounds_per_slot=1,
        start="warm",
        data=DataConfig(source="own"),
        model=ModelConfig(kind="softmax", step=0.05, epochs=2, batch=10),
    )
    tables = {"availability": {"kind": "random", "probability": 0.5}, "survey": {"asked": 30}}
    config = change_scenario(config, tables)
    began_s = time.perf_counter()
    world = build_scenario(config, as_dataset(shares))
    built_s = time.perf_counter() - began_s
    engine = make_engine("auto", config)
    replica = Replica(selector, 0, world, SelectorSpec.of(selector).build(clients=clients, budget=10, seed=1))
    times = []
    with threadpool_limits(limits=1, user_api="blas"):
        for slot in range(1, NOT_COUNTED + slots + 1):
            began_s = time.perf_counter()
            play_slot([replica], slot=slot, framework="fa", seed=1, engine=engine)
            times.append(time.perf_counter() - began_s)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"clients": clients, "built_s": built_s, "slot_s": statistics.median(times[NOT_COUNTED:]), "peak": peak}


def print_row(figure: dict[str, float], first: dict[str, float]) -> None:
    """Print a line about one N."""
    more = figure["clients"] - first["clients"]
    each = f", {(figure['peak'] - first['peak']) / more / 1e3:.1f} KB for each client more" if more else ""
    print(
        f"N = {figure['clients']:6,.0f}: {1e3 * figure['slot_s']:6.2f} ms a slot; built in {figure['built_s']:.2f} s; "
        f"peak {figure['peak'] / 1e6:.0f} MB{each}"
    )


if __name__ == "__main__":
    main()
