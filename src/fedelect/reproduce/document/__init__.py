"""docs/REPRODUCTION.md: written from the results on file, never by hand."""

from fedelect.reproduce.document.verdicts import read_verdicts, verdicts_path
from fedelect.reproduce.document.write import write_document

__all__ = ["read_verdicts", "verdicts_path", "write_document"]
