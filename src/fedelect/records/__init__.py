"""What happened: run folders that cannot be lost, and the figures read from them."""

from fedelect.records.provenance import Provenance, create_provenance, library_versions
from fedelect.records.reader import Run, RunFollower, follow_run, read_run, sorted_records
from fedelect.records.run_folder import Checkpoint
from fedelect.records.schema import (
    SCHEMA_VERSION,
    Exchange,
    RunHeader,
    SelectorEntry,
    Signals,
    SlotRecord,
    from_array,
    to_array,
)
from fedelect.records.summary import SelectorSummary, TargetSummary, summarise
from fedelect.records.table import (
    RunTable,
    SelectorTable,
    TableBuilder,
    best_fixed,
    curves,
    gaps_to_best_fixed,
    group_shares,
    mean_opinion,
    opinion_curves,
    read_table,
    regret_curves,
    running_mean_curves,
    selection_counts,
    tabulate,
    time_to_target,
)
from fedelect.records.writer import RunWriter, open_run

__all__ = [
    "SCHEMA_VERSION",
    "Checkpoint",
    "Exchange",
    "Provenance",
    "Run",
    "RunFollower",
    "RunHeader",
    "RunTable",
    "RunWriter",
    "SelectorEntry",
    "SelectorSummary",
    "SelectorTable",
    "Signals",
    "SlotRecord",
    "TableBuilder",
    "TargetSummary",
    "best_fixed",
    "create_provenance",
    "curves",
    "follow_run",
    "from_array",
    "gaps_to_best_fixed",
    "group_shares",
    "library_versions",
    "mean_opinion",
    "open_run",
    "opinion_curves",
    "read_run",
    "read_table",
    "regret_curves",
    "running_mean_curves",
    "selection_counts",
    "sorted_records",
    "summarise",
    "tabulate",
    "time_to_target",
    "to_array",
]
