"""docs/REPRODUCTION.md and paper/RECORD.md: written from the results on file, never by hand."""

from paper.document.committed_results import committed_results, committed_results_on_atlas
from paper.document.page import write_page
from paper.document.verdicts import read_verdicts, verdicts_path
from paper.document.write import write_record

__all__ = [
    "committed_results",
    "committed_results_on_atlas",
    "read_verdicts",
    "verdicts_path",
    "write_page",
    "write_record",
]
