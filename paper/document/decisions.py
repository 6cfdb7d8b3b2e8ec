"""What the paper leaves open and how it is filled in here: prose for the document."""

from fedelect.scenario import ScenarioConfig
from paper.published import BP_UCB, BP_UCB_GAP, QUICK_INIT, QUICK_INIT_GAP, TABLE, fitted_first_term


def decision_lines(base: ScenarioConfig) -> list[str]:
    """The decisions as a list; figures of the scenario are read from it."""
    data, model, beliefs = base.data, base.model, base.beliefs
    skew = f"{data.classes_per_client} classes each" if data.skew == "labels" else f"Dirichlet({data.alpha:g})"
    return [
        f"- **Data**: clients hold {data.samples[0]} to {data.samples[1]} training samples of MNIST; the first "
        f"{data.iid_clients} hold i.i.d. data (also when N > 20), the others {skew}. Every client judges on its own "
        "share of the test set, which follows the global distribution. One drawing of data and places "
        f"(scenario seed {base.seed}) serves all trials; intervals are over selection, batch orders and upload luck, "
        "not over drawings of the data, unless a figure says so. The first 20 clients hold the same training data at "
        "every N, and test shares shrink as N grows, for they are dealt from the same 10,000 samples. A sample is "
        "dealt once as long as its class lasts: at N = 60 a few, at N = 80 and 100 many are held by more than one "
        "client.",
        f"- **Start**: {base.start}. Every slot trains {base.rounds_per_slot} rounds from the same initial model, "
        "so rewards are stationary, as the paper's analysis assumes. Batch orders are drawn once for each "
        f"{model.shuffle}: that was set before the calibration, for speed, and all its settings share it.",
        "- **Average accuracy** is the running mean of the slots' mean opinions with 0 as first term, in all figures "
        "and in the table.",
        '- **"Optimal"** is the cohort of clients 1 to 5, as in the paper. Of all 15,504 cohorts, '
        "trained for the atlas, it is the best by fresh trainings, which cannot tell three others from it (`fedelect "
        "atlas show src/fedelect/atlas/shipped/paper.npz`). It is stationary, so it is run for 200 slots, also in the "
        "table for T = 500.",
        "- **Quick-Init UCB**: clients are split at random into N / K cold-start groups; a cohort's initial mean is "
        "the mean of its members' group rewards and counts as one pull. Ties are broken by the selector's own chance, "
        "never by client number: the paper's best clients carry the lowest numbers, and ties by number could leak the "
        "answer (what they do is measured in `sensitivity`).",
        "- **BP-UCB**: the same cold start; a client's mean is over its own opinions in the slots in which it was "
        "elected; beliefs are divided by their sum over clients. Ties: a hash of seed, slot and client.",
        "- **Conventional UCB** tries every cohort once, in random order, before it uses its index.",
        "- **Round-robin**: five sets, the first {1, 2, 11, 16, 20} as in the paper, four random.",
        "- **Random** draws K of N uniformly, as the paper defines it first, not one of five predefined sets, as it "
        "says later; so does set 2 of `1_2` (c), anew in every slot. It and round-robin do not listen, so they choose "
        "and train the same under FL&FA and FL&DA and are run once.",
        f'- **Beliefs**: the reading "{beliefs.reading}" with C = {beliefs.coupling_scale:g} and distances in km, '
        f"{beliefs.rounds} parallel rounds of messages{_describe_damping(beliefs.damping)}, along the links of figure "
        "`network`. As printed, the paper's equations leave every belief at 1/2 or without a bound: docs/BELIEFS.md.",
        "- **Training loss** in `1_2` is judged as the mean over all N clients of the loss on their own data, which is "
        "how the paper defines what federated learning minimises; the loss over the samples of those who train is "
        "shown beside it. T = 50 there is ours, the paper states none.",
        "- **Accuracy in `Pre2Slot`**, which the paper there does not call average, is judged as the average up to "
        "T = 500 all the same; that of slot 500 alone is shown beside it.",
        "- **Quick-Init UCB with mu = 0.01** in `PreTheta`, `PreNum` and `Pre2Slot` is ours, 25 trials: it shows what "
        "is left of the difference from BP-UCB when both explore alike.",
        "- **Quick-Init UCB in `decen_performance`** needs the server; it is the FL&FA run on the same seeds.",
        "- **Changed after results had been seen**, in three reviews of this page:",
        "  - When all trials on the atlas and half of the trained ones of the table were on file, the rule of verdicts "
        'came to count a claim of which no check holds and some fail as not holding (it was "undecided"); "lowest" and '
        '"worst" came to be compared with all methods that they name; "close" in the table got its meaning, and the '
        "claim was added; slots to a target came to allow for rounding.",
        "  - The loss of `1_2` was first to be the one over the samples of those who train. It was changed before it "
        "was measured, but after five trainings had shown that the two losses point in opposite directions: read that "
        "verdict with the figures of both.",
        "  - When all trials but those of N = 80 and 100 were on file, conventional UCB came to be compared with the "
        '"lowest" only to a point, for the paper calls it like random selection; beliefs client by client and over '
        "blocks of trials, for the spread between trials had hidden what happens within them, and without the residual "
        'of the messages; "slightly" in the table and "much worse" got their ends; a gap smaller than the paper\'s '
        "came to count as the paper's; the sentence that Quick-Init UCB finds the optimal set lost the part on how "
        "often clients are elected, which is a claim of its own now. That turned three verdicts on trained runs: that "
        "the baselines are lowest under FL&FA, and that beliefs converge, from holding in part to holding; that "
        "Quick-Init UCB finds the optimal set from holding in part to not holding.",
        "  - Then, too, claims of the abstract, the introduction and the conclusion were added that had been left out "
        "(that set 4 is optimal, that both converge faster, that they are comparable), and Quick-Init UCB with "
        "mu = 0.01 to the sweeps, which decides nothing.",
        "  - When the pre-registered run was complete, what is compared with the paper to a tolerance came to be "
        "judged over its drawings, not over trials of the one drawing here. That turned 15 verdicts on trained runs: "
        "13 to undecided; that BP-UCB is within 3.12 % of the optimal solution, from holding to not holding; and that "
        "the baselines are lowest under FL&FA, from holding to holding in part.",
        "- **Trials**: 100 as in the paper, but 25 in `Pre2Slot` and of what only explains. Trial r of every method "
        "shares its luck with trial r "
        "of every other.",
    ]


def _describe_damping(damping: float) -> str:
    return f" damped by {damping:g}" if damping else ", not damped"


def first_term_lines(untrained: float | None) -> list[str]:
    """What the paper's optimal column says about its own running mean, computed."""
    fit = fitted_first_term()
    cells = ", ".join(f"{cell.accuracy:.4f} at slot {cell.slots:.0f}" for cell in TABLE["optimal"].values())
    ours = "" if untrained is None else f" (the untrained model's accuracy is {untrained:.3f} here)"
    return [
        f"The optimal column of the paper's table ({cells}) fits a running mean (u + t r) / (t + 1) with a first term "
        f"u = {fit.first:.4f} and slots of accuracy r = {fit.later:.4f} by least squares, to within "
        f"{fit.largest_error:.5f}. So the paper seems to count a first term of 0 rather than the untrained model's "
        f"accuracy of about 0.1{ours}, and its optimal cohort is at {fit.later:.3f} in every slot. At T = 200 that is "
        f"an average of {(fit.first + 200 * fit.later) / 201:.4f}, above the {QUICK_INIT + QUICK_INIT_GAP:.4f} that "
        f"its figure `cen_performance` implies and below the {BP_UCB + BP_UCB_GAP:.4f} that `decen_performance` "
        "allows.",
    ]
