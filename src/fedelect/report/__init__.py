"""Records -> one self-contained HTML page, or figures for a paper; runs nothing."""

from fedelect.report.figures import write_figures
from fedelect.report.gather import RunAccumulator, RunData
from fedelect.report.page import render, update_of, write_report
from fedelect.report.reading import Reading, gather_all, name_of_folder, read_all, unique_names

__all__ = [
    "Reading",
    "RunAccumulator",
    "RunData",
    "gather_all",
    "name_of_folder",
    "read_all",
    "render",
    "unique_names",
    "update_of",
    "write_figures",
    "write_report",
]
