"""Bytes <-> header and records, and the checks both ways.

What is written is read back before it counts, so that a value JSON cannot hold (nan, infinity, a numpy number)
is refused when it is offered, not found when it is too late.
"""

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from fedelect.errors import RunError, SchemaError
from fedelect.records.checksum import open_header, seal_header
from fedelect.records.schema import COMPARED_FIELDS, SCHEMA_VERSION, RunHeader, SlotRecord

_encoder = msgspec.json.Encoder()
_record_decoder = msgspec.json.Decoder(SlotRecord)
_header_decoder = msgspec.json.Decoder(RunHeader)

decode_record = _record_decoder.decode
"""Decode the JSON object of a record; raises `UNREADABLE`."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises on damaged text; RecursionError if it is nested too deeply."""


class _Version(msgspec.Struct):
    schema: int


def encode_record(record: SlotRecord) -> bytes:
    """`record` as a JSON object on one line; refuses what would not read back equal."""
    where = f"the record of {describe(record)}"
    try:
        line = _encoder.encode(record)
        back = decode_record(line)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise RunError(f"{where} cannot be written: {_blame(record) or error}") from error
    if back != record or back.seconds != record.seconds:
        raise RunError(f"{where} cannot be written: {_blame(record) or 'it does not read back as it was'}")
    return line


def _blame(record: SlotRecord) -> str | None:
    for name in (*COMPARED_FIELDS, "seconds"):
        value = getattr(record, name)
        for element in value if isinstance(value, tuple) else (value,):
            if isinstance(element, float) and not math.isfinite(element):
                return f"{name} holds {element!r}; only finite numbers are recorded, None where there is none"
        if type(value).__module__ == "numpy" or isinstance(value, list):
            return f"{name} is a {type(value).__name__}; give plain numbers and tuples (see `from_array`)"
    return None


def describe(record: SlotRecord) -> str:
    """Which slot a record is of, in words."""
    return f"selector {record.selector!r}, trial {record.trial}, slot {record.slot}"


def encode_header(header: RunHeader, run_id: str | None = None) -> bytes:
    """`header` as the content of run.json; refuses numbers that are not finite.

    Args:
        header: What the run is.
        run_id: The run's id, 32 hexadecimal digits; None for a new run, whose id is the hash of its header.
    """
    try:
        for path, value in _leaves(msgspec.to_builtins(header)):
            if isinstance(value, float) and not math.isfinite(value):
                raise RunError(f"the run's header cannot be written: {path} is {value!r}; use a finite number")
        text = msgspec.json.format(_encoder.encode(header), indent=2) + b"\n"
        _header_decoder.decode(text)
    except (TypeError, msgspec.MsgspecError) as error:
        raise RunError(f"the run's header cannot be written: {error}") from error
    return seal_header(text, run_id or hashlib.blake2b(text, digest_size=16).hexdigest())


def decode_header(text: bytes, where: str) -> tuple[RunHeader, str]:
    """The header in the content of run.json, and the run's id.

    Raises:
        SchemaError: It is of another version; the message names it.
        RunError: It is damaged; the message names `where`.
    """
    try:
        version = msgspec.json.decode(text, type=_Version).schema
        if version != SCHEMA_VERSION:
            raise SchemaError(
                f"{where} has schema version {version}, but this fedelect reads version {SCHEMA_VERSION}; use the "
                f"fedelect that wrote it (its version is under `provenance`), or run again in a new folder"
            )
        header, run_id = open_header(text)
        return _header_decoder.decode(header), run_id
    except SchemaError:
        raise
    except (*UNREADABLE, RunError) as error:
        raise RunError(f"{where} is damaged: {error}; restore it from a copy, or run again in a new folder") from error


def header_differences(old: RunHeader, new: RunHeader) -> list[str]:
    """Where two headers differ, provenance apart: lines such as `scenario.model.step: 1e-07 -> 1e-06`."""
    before, after = (msgspec.json.decode(_encoder.encode(header)) for header in (old, new))
    del before["provenance"], after["provenance"]
    return list(_differences("", before, after))


def record_differences(old: SlotRecord, new: SlotRecord) -> list[str]:
    """Where two records of one slot differ, timings apart: lines such as `opinions[3]: 0.5 -> 0.25`."""
    before, after = (msgspec.json.decode(_encoder.encode(record)) for record in (old, new))
    return [line for name in COMPARED_FIELDS for line in _differences(name, before[name], after[name])]


def _differences(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            inner = f"{path}.{key}" if path else key
            if key not in old or key not in new:
                yield f"{inner}: {_present(old, key)} -> {_present(new, key)}"
            else:
                yield from _differences(inner, old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from _differences(f"{path}[{number}]", a, b)
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield f"{path}: {_short_pair(old, new)}"


def _present(table: dict[str, Any], key: str) -> str:
    return _short(table[key]) if key in table else "(absent)"


_SHOWN = 77


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN + 3 else text[:_SHOWN] + "..."


def _short_pair(old: object, new: object) -> str:
    """Both values, cut where they are long, but so that the first difference is seen."""
    before, after = repr(old), repr(new)
    paired = enumerate(zip(before, after, strict=False))
    same = next((place for place, (one, other) in paired if one != other), min(len(before), len(after)))
    if same < _SHOWN - 10:
        return f"{_short(old)} -> {_short(new)}"
    cuts = (_cut(text, same - 20) for text in (before, after))
    return f"{' -> '.join(cuts)} (they differ from character {same + 1} on)"


def _cut(text: str, start: int) -> str:
    return f"...{text[start : start + _SHOWN]}{'...' if len(text) > start + _SHOWN else ''}"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        yield path, value


def _per_client(record: SlotRecord) -> list[tuple[str, tuple[float | None, ...]]]:
    """The values of a record that are one for each client, by name."""
    found = [("opinions", record.opinions), ("beliefs", record.beliefs)]
    if record.signals is not None:
        found += msgspec.structs.asdict(record.signals).items()
    return [(name, values) for name, values in found if values is not None]


class RecordCheck:
    """Checks that records fit the header of their run; call it with a record."""

    def __init__(self, header: RunHeader) -> None:
        self._labels = frozenset(header.labels)
        self._header = header

    def __call__(self, record: SlotRecord) -> None:
        """Raise RunError if `record` cannot belong to this run."""
        problem = self._problem(record)
        if problem:
            raise RunError(f"the record of {describe(record)} does not fit its run: {problem}")

    def _problem(self, record: SlotRecord) -> str | None:
        header, cohort, rounds = self._header, record.cohort, record.rounds
        if record.selector not in self._labels:
            return f"the run has no such selector, only {sorted(self._labels)}"
        if not (0 <= record.trial < header.trials and 1 <= record.slot <= header.slots):
            return f"the run has trials 0..{header.trials - 1} and slots 1..{header.slots}"
        if tuple(sorted(set(cohort))) != cohort or (cohort and not 0 <= cohort[0] <= cohort[-1] < header.clients):
            return f"cohort {cohort} is not sorted, distinct clients out of 0..{header.clients - 1}"
        if len(record.arrivals) != len(cohort) or (cohort and max(record.arrivals) > rounds):
            return f"arrivals {record.arrivals} are not one number <= {rounds} rounds for each of {cohort}"
        if record.empty_rounds > rounds:
            return f"{record.empty_rounds} empty rounds out of {rounds}"
        for name, values in _per_client(record):
            if len(values) != header.clients:
                return f"{name} must have one value for each of the {header.clients} clients, got {len(values)}"
        named = record.candidates or record.failed or record.left_out  # most often none, and then nothing is added up
        if named and max(record.candidates + record.failed + record.left_out) >= header.clients:
            return f"candidates, failed or left_out names a client outside 0..{header.clients - 1}"
        if record.status != "done" and not record.note:
            return f"a slot that is {record.status} needs a note that says why"
        return None
