"""What the paper states in figures, by the label of its figure or table. Accuracies are shares, not per cent."""

from typing import NamedTuple

import numpy as np

RANDOM_CENTRAL = 0.7662
"""`cen_performance`: random selection at T = 200 under FL&FA."""

QUICK_INIT = 0.8657
"""`cen_performance`: Quick-Init UCB at T = 200."""

QUICK_INIT_GAP = 0.0144
"""`cen_performance`: by how much Quick-Init UCB is below the optimal cohort, which is therefore at 0.8801."""

RANDOM_DEMOCRATIZED = 0.7202
"""`decen_performance`: random selection at T = 200 under FL&DA."""

BP_UCB = 0.8628
"""`decen_performance`: BP-UCB at T = 200."""

BP_UCB_GAP = 0.0312
"""`decen_performance`: BP-UCB is less than this below the optimal cohort."""


class Baselines(NamedTuple):
    """Values of the two baselines at T = 200.

    Attributes:
        fixed: The cohort that the paper calls optimal.
        random: Random selection.
    """

    fixed: float
    random: float


BASELINES = Baselines(0.88, 0.77)
"""Under FL&FA, in round figures; the calibration aims at these: 86.57 % + 1.44 points, and 76.62 %."""

BASELINES_DEMOCRATIZED = Baselines(BP_UCB + BP_UCB_GAP, RANDOM_DEMOCRATIZED)
"""Under FL&DA, the former an upper end; nothing aims at these."""

BASELINES_SLOTS = 200
"""T of both."""

IID_ELECTIONS = 228.95
"""`cen_selected_time`: how often Quick-Init UCB elects a client that holds i.i.d. data; T = 500."""

SKEWED_ELECTIONS = 90.34
"""`cen_selected_time`: how often it elects one of the others."""

COUPLING_SCALE = 1e-3
"""C of the coupling: -30 dB."""

BELIEF_SLOTS = 10
"""`BP_value`: slots in which beliefs converge, about."""

ROUNDS_TO_CONVERGE = 15
"""`1_2` (a): the training loss has converged when the communication round is over this."""

ENOUGH_CLIENTS = 15
"""`1_2` (b): more clients than this do not improve the model much."""

SUBSETS = 15_504
"""`cen_performance`: slots that conventional UCB needs before it has tried every cohort."""

MANY_ARMS = 1e7
"""`Pre2Slot`: the cohorts at N = 100 are more than this."""


class TableCell(NamedTuple):
    """One algorithm and target of `comparison_table`.

    Attributes:
        slots: Slots until the target is reached.
        accuracy: Accuracy there; None where the paper prints a dash.
    """

    slots: float
    accuracy: float | None


TABLE: dict[str, dict[float, TableCell]] = {
    "optimal": {
        0.75: TableCell(6.00, 0.7683),
        0.78: TableCell(7.00, 0.7843),
        0.82: TableCell(11.00, 0.8217),
        0.85: TableCell(19.00, 0.8515),
    },
    "random": {
        0.75: TableCell(40.24, 0.7519),
        0.78: TableCell(391.24, 0.7752),
        0.82: TableCell(500.00, None),
        0.85: TableCell(500.00, None),
    },
    "quick-init": {
        0.75: TableCell(9.92, 0.7550),
        0.78: TableCell(13.55, 0.7832),
        0.82: TableCell(26.42, 0.8209),
        0.85: TableCell(111.22, 0.8494),
    },
    "bp-ucb": {
        0.75: TableCell(14.09, 0.7541),
        0.78: TableCell(23.63, 0.7824),
        0.82: TableCell(57.95, 0.8196),
        0.85: TableCell(131.81, 0.8466),
    },
}
"""`comparison_table`, by algorithm and target accuracy."""


class FittedFirstTerm(NamedTuple):
    """Fit to the optimal column of `comparison_table`.

    Attributes:
        first: The term before the first slot, u.
        later: Accuracy of every slot, r.
        largest_error: Largest deviation of (u + t r) / (t + 1) from the four figures.
    """

    first: float
    later: float
    largest_error: float


def fitted_first_term() -> FittedFirstTerm:
    """Least squares fit of the running mean (u + t r) / (t + 1) to the paper's optimal column."""
    cells = [cell for cell in TABLE["optimal"].values() if cell.accuracy is not None]
    slots = np.array([cell.slots for cell in cells])
    accuracy = np.array([cell.accuracy for cell in cells], dtype=np.float64)
    design = np.stack([1.0 / (slots + 1.0), slots / (slots + 1.0)], axis=1)
    (first, later), *_ = np.linalg.lstsq(design, accuracy, rcond=None)
    error = np.abs(design @ np.array([first, later]) - accuracy).max()
    return FittedFirstTerm(float(first), float(later), float(error))
