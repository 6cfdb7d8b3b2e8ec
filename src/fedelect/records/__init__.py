"""What happened: run folders that cannot be lost, and the figures read from them."""

from fedelect.records.reader import Run as Run
from fedelect.records.reader import RunFollower as RunFollower
from fedelect.records.reader import follow_run as follow_run
from fedelect.records.reader import read_run as read_run
from fedelect.records.reader import sorted_records as sorted_records
from fedelect.records.run_folder import Checkpoint as Checkpoint
from fedelect.records.schema import SCHEMA_VERSION as SCHEMA_VERSION
from fedelect.records.schema import Exchange as Exchange
from fedelect.records.schema import Provenance as Provenance
from fedelect.records.schema import RunHeader as RunHeader
from fedelect.records.schema import SelectorEntry as SelectorEntry
from fedelect.records.schema import Signals as Signals
from fedelect.records.schema import SlotRecord as SlotRecord
from fedelect.records.schema import from_array as from_array
from fedelect.records.schema import to_array as to_array
from fedelect.records.summary import SelectorSummary as SelectorSummary
from fedelect.records.summary import TargetSummary as TargetSummary
from fedelect.records.summary import summarise as summarise
from fedelect.records.table import RunTable as RunTable
from fedelect.records.table import SelectorTable as SelectorTable
from fedelect.records.table import TableBuilder as TableBuilder
from fedelect.records.table import best_fixed as best_fixed
from fedelect.records.table import curves as curves
from fedelect.records.table import gaps_to_best_fixed as gaps_to_best_fixed
from fedelect.records.table import group_shares as group_shares
from fedelect.records.table import mean_opinion as mean_opinion
from fedelect.records.table import opinion_curves as opinion_curves
from fedelect.records.table import read_table as read_table
from fedelect.records.table import regret_curves as regret_curves
from fedelect.records.table import running_mean_curves as running_mean_curves
from fedelect.records.table import selection_counts as selection_counts
from fedelect.records.table import tabulate as tabulate
from fedelect.records.table import time_to_target as time_to_target
from fedelect.records.writer import RunWriter as RunWriter
from fedelect.records.writer import open_run as open_run

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
    "curves",
    "follow_run",
    "from_array",
    "gaps_to_best_fixed",
    "group_shares",
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
