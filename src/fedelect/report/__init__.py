"""Records -> one self-contained HTML page, or figures for a paper; runs nothing."""

from fedelect.report.analysis import RunAnalysis, analyse_runs, folder_name, load_runs, make_unique
from fedelect.report.figures import write_figures
from fedelect.report.page import render, render_update, write_report
from fedelect.report.run_data import RunAccumulator, RunData

__all__ = [
    "RunAccumulator",
    "RunAnalysis",
    "RunData",
    "analyse_runs",
    "folder_name",
    "load_runs",
    "make_unique",
    "render",
    "render_update",
    "write_figures",
    "write_report",
]
