"""`python -m paper readings`: one row for each reading of the algorithms, on the atlas."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from paper.catalogue import TARGETS
from paper.published import BP_UCB, IID_ELECTIONS, QUICK_INIT, SKEWED_ELECTIONS, TABLE
from paper.readings.readings import READINGS, SLOTS, ReadingRow, play_readings


def print_readings(console: Console, atlas: Path, *, trials: int, workers: int) -> None:
    """Play all readings on an atlas and print their rows below the paper's."""
    targets = " / ".join(f"{target:.2f}" for target in TARGETS)
    table = Table(title=f"{trials} trials of {SLOTS} slots on {atlas.name}; ± is the 95 % interval over trials")
    for column in ("reading", f"slots to {targets}", "accuracy there", "T = 200", "elections i.i.d. / others"):
        table.add_column(column, justify="left" if column == "reading" else "right")
    quick, belief = TABLE["quick-init"].values(), TABLE["bp-ucb"].values()
    elections = f"{IID_ELECTIONS} / {SKEWED_ELECTIONS}"
    for name, cells, final, elected in (
        ("paper, Quick-Init UCB", quick, QUICK_INIT, elections),
        ("paper, BP-UCB", belief, BP_UCB, "-"),
    ):
        slots = " / ".join(f"{cell.slots:.1f}" for cell in cells)
        accuracy = " ".join(f"{cell.accuracy:.4f}"[1:] for cell in cells)
        table.add_row(name, slots, accuracy, f"{final:.4f}", elected, style="bold")
    for row in play_readings(READINGS, atlas, trials=trials, workers=workers):
        table.add_row(row.reading.name, *_cells(row))
    console.print(table)


def _cells(row: ReadingRow) -> tuple[str, ...]:
    half = row.at_200.half_width
    return (
        " / ".join(f"{slots:.1f}" for slots in row.slots),
        " ".join(f"{accuracy:.4f}"[1:] for accuracy in row.accuracy),
        f"{row.at_200.mean:.4f}" + ("" if half is None else f" ± {half:.4f}"),
        f"{row.iid:.0f} / {row.others:.0f}",
    )
