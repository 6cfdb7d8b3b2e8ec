"""A running election on a local web page: the report's page, kept up to date from the records alone."""

from fedelect.report.live.server import DEFAULT_PORT, LiveServer
from fedelect.report.live.watcher import PageUpdate, RunWatcher

__all__ = ["DEFAULT_PORT", "LiveServer", "PageUpdate", "RunWatcher"]
