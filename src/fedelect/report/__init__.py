"""Records -> one self-contained HTML page, or figures for a paper; runs nothing."""

from fedelect.report.figures import write_figures as write_figures
from fedelect.report.gather import Gathered as Gathered
from fedelect.report.gather import Gathering as Gathering
from fedelect.report.page import render as render
from fedelect.report.page import update_of as update_of
from fedelect.report.page import write_report as write_report
from fedelect.report.reading import Reading as Reading
from fedelect.report.reading import gather_all as gather_all
from fedelect.report.reading import name_of_folder as name_of_folder
from fedelect.report.reading import read_all as read_all
from fedelect.report.reading import unique_names as unique_names

__all__ = [
    "Gathered",
    "Gathering",
    "Reading",
    "gather_all",
    "name_of_folder",
    "read_all",
    "render",
    "unique_names",
    "update_of",
    "write_figures",
    "write_report",
]
