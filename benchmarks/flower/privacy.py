"""What noise on opinions costs: accuracy against epsilon.

    python benchmarks/flower/privacy.py [--trials 10] [--slots 60]

Every client of the digits scenario adds the noise that `fedelect.flower.OpinionPrivacy` prescribes for the whole run
(delta 1e-6, one release a slot); Quick-Init UCB is told the noisy average. What is shown is the true mean accuracy of
the slots after the cold start, which nobody in the run sees. Prints a Markdown table.
"""

import argparse
import math

import numpy as np

from fedelect.analytics import judge
from fedelect.datasets import load_dataset
from fedelect.equations.intervals import mean_interval
from fedelect.federation import Job, make_engine
from fedelect.flower import OpinionPrivacy
from fedelect.scenario import build_scenario, preset
from fedelect.seeds import derive
from fedelect.selectors import AbstractSelector, QuickInitUcb, RandomCohort
from fedelect.vocabulary import Feedback

EPSILONS = (None, 100.0, 30.0, 10.0, 3.0, 1.0)
EXPLORATION = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--slots", type=int, default=60)
    given = parser.parse_args()
    config = preset("digits")
    world = build_scenario(config, load_dataset("digits"))
    engine = make_engine("auto", config)
    examples = [len(labels) for labels in world.test_labels]
    first = -(-world.clients // world.budget)

    def play(selector: AbstractSelector, trial: int, privacy: OpinionPrivacy | None) -> float:
        true = []
        for slot in range(1, given.slots + 1):
            selection = selector.ask()
            (training,) = engine.train(world, [Job(cohort=selection.cohort, seed=7, trial=trial, slot=slot)])
            (scores,) = engine.scores(world, [training.model])
            opinions = judge(world, scores)
            true.append(float(opinions.mean()))
            if privacy is None:
                selector.tell(selection, Feedback(opinions=opinions))
                continue
            noisy = [privacy.release(float(o), n) for o, n in zip(opinions, examples, strict=True)]
            noise = math.sqrt(sum(privacy.noise(n) ** 2 for n in examples)) / len(examples)
            selector.tell(selection, Feedback(reward=float(np.mean(noisy)), reward_noise=noise))
        return float(np.mean(true[first:]))

    def quick(trial: int) -> AbstractSelector:
        seed = derive(7, "selection", trial)
        return QuickInitUcb(clients=world.clients, budget=world.budget, exploration=EXPLORATION, seed=seed)

    print(
        f"\nN = {world.clients}, K = {world.budget}, {given.slots} slots, {given.trials} trials, "
        f"{min(examples)} to {max(examples)} evaluation examples a client, delta 1e-6, exploration {EXPLORATION}\n"
    )
    print("| epsilon of one example | epsilon of a client | noise on an opinion | noise on the average | accuracy |")
    print("| --- | --- | --- | --- | --- |")
    typical = int(np.median(examples))
    for epsilon in EPSILONS:
        privacy = None if epsilon is None else OpinionPrivacy(epsilon=epsilon, releases=given.slots, largest_noise=10.0)
        result = mean_interval(np.array([play(quick(trial), trial, privacy) for trial in range(given.trials)]))
        shown = ("none", "none", "0", "0")
        if privacy is not None:
            on_average = math.sqrt(sum(privacy.noise(n) ** 2 for n in examples)) / len(examples)
            shown = (
                f"{epsilon:g}",
                f"{privacy.client_level(typical):,.0f}",
                f"{privacy.noise(typical):.3f}",
                f"{on_average:.3f}",
            )
        print(f"| {' | '.join(shown)} | {result.mean:.3f} ± {result.half_width:.3f} |", flush=True)
    blind = [
        play(RandomCohort(clients=world.clients, budget=world.budget, seed=derive(7, "selection", trial)), trial, None)
        for trial in range(given.trials)
    ]
    result = mean_interval(np.array(blind))
    print(f"| random cohorts | | | | {result.mean:.3f} ± {result.half_width:.3f} |")


if __name__ == "__main__":
    main()
