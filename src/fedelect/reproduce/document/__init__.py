"""docs/REPRODUCTION.md: written from the results on file, never by hand."""

from fedelect.reproduce.document.committed import committed_library
from fedelect.reproduce.document.verdicts import read_verdicts, verdicts_path
from fedelect.reproduce.document.write import write_document

__all__ = ["committed_library", "read_verdicts", "verdicts_path", "write_document"]
