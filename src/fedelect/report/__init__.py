"""Records -> one self-contained HTML page; runs nothing."""

from fedelect.report.page import write_report as write_report

__all__ = ["write_report"]
