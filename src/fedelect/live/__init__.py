"""A running election on a local web page: the report's page, kept up to date from the records alone."""

from fedelect.live.server import DEFAULT_PORT as DEFAULT_PORT
from fedelect.live.server import LiveServer as LiveServer
from fedelect.live.watch import News as News
from fedelect.live.watch import Watch as Watch

__all__ = ["DEFAULT_PORT", "LiveServer", "News", "Watch"]
