"""Our own figures beside the paper's theory: `convergence`, `complexity`."""

import statistics
from pathlib import Path

from fedelect.reproduce.catalogue import Experiment
from fedelect.reproduce.figures.sheet import BP_UCB_LOOK, LOOKS, QUICK_INIT_LOOK, new_sheet, say
from fedelect.reproduce.measurements.complexity import ComplexityTable
from fedelect.reproduce.measurements.convergence import ConvergenceTable
from fedelect.reproduce.readings import Evidence

PAPER_SCALE = 1e-3
"""The paper's C, -30 dB."""


def draw_convergence(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`convergence`: on how many topologies each condition promises convergence, and on how many it happens."""
    path = folder / f"{one.name}.svg"
    table = evidence.measurement("convergence", ConvergenceTable)
    with new_sheet(path, title=one.title) as sheet:
        (axes,) = sheet.axes
        if table is None:
            say(axes, "not measured yet: convergence")
            sheet.footer.append(f"preset {evidence.preset.name}: 0 trials so far")
            return [path]
        scales = [row.scale for row in table.rows]
        counts = {
            "Theorem 2 as printed (without C) promises": [row.theorem_as_printed_holds for row in table.rows],
            "Theorem 2 with C promises": [row.theorem_holds for row in table.rows],
            "Corollary 1 promises": [row.corollary_holds for row in table.rows],
            f"settled within {table.rounds} rounds": [row.settled for row in table.rows],
            "settled within 10 rounds": [row.settled_in_ten for row in table.rows],
        }
        for (name, values), look in zip(counts.items(), LOOKS, strict=False):
            axes.plot(scales, values, color=look.colour, linestyle=look.line, marker=look.marker, label=name)
        axes.axvline(PAPER_SCALE, color="black", linewidth=0.6, linestyle=(0, (6, 4)))
        axes.text(PAPER_SCALE, 1.0, " paper: C = 0.001", transform=axes.get_xaxis_transform(), fontsize=7, va="bottom")
        axes.set_xscale("log")
        axes.set_xlabel("C of the coupling -C d^β")
        axes.set_ylabel("topologies")
        axes.legend(loc="best")
        sheet.footer += [
            f"preset {evidence.preset.name}: {table.rows[0].topologies} trials, each a topology of N = {table.clients} "
            f"clients with random opinions, for each C; no slots. Settled: residual below {table.tolerance:g}.",
        ]
    return [path]


def draw_complexity(one: Experiment, evidence: Evidence, folder: Path) -> list[Path]:
    """`complexity`: the paper's operations, and the time a decision takes here."""
    path = folder / f"{one.name}.svg"
    table = evidence.measurement("complexity", ComplexityTable)
    with new_sheet(path, title=one.title, panels=2, width=11) as sheet:
        if table is None:
            for axes in sheet.axes:
                say(axes, "not measured yet: complexity")
            sheet.footer.append(f"preset {evidence.preset.name}: 0 trials so far")
            return [path]
        counted, measured = sheet.axes
        clients = [row.clients for row in table.rows]
        operations = (
            ("Quick-Init UCB: T |A|²", [row.quick_init_operations for row in table.rows], QUICK_INIT_LOOK),
            ("BP-UCB: T N³", [row.bp_ucb_operations for row in table.rows], BP_UCB_LOOK),
        )
        for name, counts, look in operations:
            counted.plot(clients, counts, color=look.colour, linestyle=look.line, marker=look.marker, label=name)
        times = (
            ("Quick-Init UCB", [row.quick_init_ms for row in table.rows], QUICK_INIT_LOOK),
            ("BP-UCB", [row.bp_ucb_ms for row in table.rows], BP_UCB_LOOK),
        )
        for name, milliseconds, look in times:
            middle = [statistics.median(row) for row in milliseconds]
            fastest = [median - min(row) for median, row in zip(middle, milliseconds, strict=True)]
            slowest = [max(row) - median for median, row in zip(middle, milliseconds, strict=True)]
            bars = {"color": look.colour, "linestyle": look.line, "marker": look.marker, "capsize": 3}
            measured.errorbar(clients, middle, yerr=[fastest, slowest], label=name, **bars)
        for axes, name in ((counted, "operations, as the paper counts them"), (measured, "ms a decision, median")):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("number of clients N")
            axes.set_ylabel(name)
            axes.legend(loc="upper left")
        sheet.footer += [
            f"preset {evidence.preset.name}: {len(table.rows[0].quick_init_ms)} trials (repetitions) for each N, T = "
            f"{table.slots} decisions after the cold start, K = {table.budget}. Right: ask and tell on one machine; "
            "bars from the fastest to the slowest repetition; trust orders of magnitude.",
        ]
    return [path]
