"""Claims grouped by cause: many follow from one choice or one number, and such a cause counts once.

A claim that the calibration aimed at, that is arithmetic, or that a theorem settles is no evidence for or against the
paper's experiments. Neither is one about what cannot be computed: another computation avoids it.
"""

from dataclasses import dataclass

from paper.published import TABLE


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A common cause of some claims.

    Attributes:
        title: In a few words.
        says: In a sentence.
        claims: Keys of the claims.
        counts: Whether they are evidence; together they count once.
    """

    title: str
    says: str
    claims: tuple[str, ...]
    counts: bool = True


def _table(algorithm: str) -> tuple[str, ...]:
    return tuple(f"comparison_table.{algorithm}.{target:.2f}" for target in TABLE[algorithm])


CAUSES = (
    Cause(
        title="mu = 1 of Quick-Init UCB",
        says="On opinions from 0 to 1, mu = 1 tries a new cohort in almost every slot; in percent it acts as 0.01.",
        claims=(
            "cen_selected_time.counts",
            "cen_selected_time.ratio",
            "cen_selected_time.most",
            "cen_selected_time.finds",
            "cen_performance.quick_init",
            "cen_performance.gain",
            "cen_performance.gap",
            *_table("quick-init"),
            "decen_performance.below_quick_init",
            "decen_performance.comparable",
            "comparison_table.bp_after_quick_init",
            "comparison_table.both_reach",
            "comparison_table.both_close",
            "PreTheta.order",
            "PreTheta.pronounced",
            "PreNum.order",
            "Pre2Slot.order",
        ),
    ),
    Cause(
        title="how BP-UCB starts",
        says="Algorithm 2 has no cold-start groups and does not state r_1; the record gives it Algorithm 1's groups.",
        claims=("decen_performance.bp_ucb", "decen_performance.gap", *_table("bp-ucb")),
    ),
    Cause(
        title="two random baselines",
        says="The paper has random selection at 76.62 % under FL&FA and at 72.02 % under FL&DA; it does not listen, so "
        "one world cannot give both.",
        claims=("decen_performance.random", "decen_performance.gain"),
    ),
    Cause(
        title="selection pays",
        says="Methods that listen to opinions beat those that do not.",
        claims=(
            "cen_performance.conventional",
            "cen_performance.baselines_last",
            "cen_performance.faster",
            "decen_performance.baselines_last",
            "decen_performance.faster",
            "comparison_table.random_last",
        ),
    ),
    Cause(
        title="i.i.d. clients are worth more",
        says="What sets of clients are worth, in one drawing of the data.",
        claims=(
            "1_2.b.more",
            "1_2.b.enough",
            "1_2.c.best",
            "1_2.c.close_to_all",
            "1_2.c.optimal",
            "1_2.c.worst",
            "comparison_table.optimal_first",
        ),
    ),
    Cause(
        title="worse worlds are worse",
        says="Fewer uploads and more skewed clients lower the accuracy of every method.",
        claims=("PreTheta.decline", "PreNum.decline"),
    ),
    Cause(
        title="training loss",
        says="How the loss falls with rounds and clients; the paper states no criterion.",
        claims=("1_2.a.converged", "1_2.a.more"),
    ),
    Cause(
        title="beliefs",
        says="All clients judge one model, and the coupling is almost nothing.",
        claims=("BP_value.converge", "BP_value.differ", "BP_value.elects"),
    ),
    Cause(
        title="calibrated",
        says="The calibration aimed at these baselines, or they follow from them and the first term.",
        claims=("cen_performance.random", "cen_performance.optimal", *_table("optimal"), *_table("random")),
        counts=False,
    ),
    Cause(
        title="arithmetic",
        says="Numbers of subsets.",
        claims=("cen_performance.initiation", "Pre2Slot.arms"),
        counts=False,
    ),
    Cause(
        title="theorem",
        says="Settled by proof or by putting numbers into a formula.",
        claims=("Theorem03.sufficient", "Theorem03.met", "Theorem00.regret", "Theorem02.regret"),
        counts=False,
    ),
    Cause(
        title="avoidable by another computation",
        says="True of an implementation that lists all cohorts; the same elections come from one that does not.",
        claims=("Pre2Slot.impossible", "complexity.quick_init", "complexity.bp_ucb"),
        counts=False,
    ),
)


def cause_of(key: str) -> Cause:
    """The cause of a claim."""
    return next(cause for cause in CAUSES if key in cause.claims)
