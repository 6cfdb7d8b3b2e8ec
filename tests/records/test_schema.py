import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.sample_runs import PROVENANCE, sample_header, sample_record

from fedelect.errors import ConfigurationError, RunError
from fedelect.records import (
    Exchange,
    Measures,
    Optimum,
    Provenance,
    RunHeader,
    SelectorEntry,
    Signals,
    SlotRecord,
    from_array,
    to_array,
)
from fedelect.records.codec import encode_record

PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("RECORDS.md", "tutorials/slot-records.md")]


def test_records_are_equal_when_all_but_the_timing_is() -> None:
    header = sample_header()
    record = sample_record(header, "best", 0, 1)
    assert record == sample_record(header, "best", 0, 1, seconds=99.0)
    assert not record != sample_record(header, "best", 0, 1, seconds=99.0)  # noqa: SIM202 - != has code of its own
    assert hash(record) == hash(sample_record(header, "best", 0, 1, seconds=None))
    assert record != "something else"


@pytest.mark.parametrize("field", [name for name in SlotRecord.__struct_fields__ if name != "seconds"])
def test_a_difference_in_any_other_field_makes_records_unequal(field: str) -> None:
    record = sample_record(sample_header(), "best", 0, 1)
    other = msgspec.structs.replace(record, **{field: "another"})
    assert record != other
    assert not record == other  # noqa: SIM201 - == has code of its own


def test_missing_values_are_null_in_writing_and_nan_in_arrays() -> None:
    array = np.array([0.5, np.nan, 1.0])
    assert from_array(array) == (0.5, None, 1.0)
    np.testing.assert_array_equal(to_array(from_array(array)), array)
    assert to_array(()).shape == (0,)
    assert all(type(value) is float for value in from_array(np.array([1, 0], dtype=np.int64)))


@pytest.mark.parametrize("values", [[0.5, np.inf], [[0.5, 0.5]], 0.5])
def test_what_is_not_one_finite_number_for_each_client_is_not_written(values: object) -> None:
    with pytest.raises(RunError, match="one finite number or nan for each client"):
        from_array(values)  # type: ignore[arg-type]


def test_every_float_survives_writing_to_the_last_bit() -> None:
    indices = (0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1e-7, 1 / 3)
    record = sample_record(sample_header(), "best", 0, 1, indices=indices)
    back = msgspec.json.decode(encode_record(record), type=SlotRecord)
    assert [value.hex() for value in back.indices] == [value.hex() for value in indices]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"indices": (float("nan"),)}, "indices holds nan"),
        ({"opinions": (float("nan"),) * 7}, "opinions holds nan"),
        ({"reward": float("inf")}, "reward holds inf"),
        ({"seconds": float("nan")}, "seconds holds nan"),
        ({"opinions": np.zeros(7)}, "opinions is a ndarray"),
        ({"reward": np.float64(0.5)}, "reward is a float64"),
        ({"trial": np.int64(0)}, "trial is a int64"),
        ({"cohort": [0, 1, 2]}, "cohort is a list"),
        ({"opinions": (1.5,) * 7}, "<= 1.0"),
        ({"beliefs": (-1.0,) * 7}, ">= 0.0"),
        ({"slot": 0}, ">= 1"),
        ({"status": "finished"}, "finished"),
        ({"rounds": "15"}, "rounds"),
    ],
)
def test_a_record_that_would_not_read_back_is_refused_by_field(changes: dict[str, object], said: str) -> None:
    with pytest.raises(RunError, match=r"cannot be written: .*" + re.escape(said)):
        encode_record(msgspec.structs.replace(sample_record(sample_header(), "best", 0, 1), **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"selectors": (SelectorEntry(label="a", kind="x"),) * 2}, "different, non-empty labels"),
        ({"selectors": (SelectorEntry(label="", kind="x"),)}, "different, non-empty labels"),
        ({"budget": 8}, "budget 8 exceeds the 7 clients"),
        ({"sizes": (1, 2)}, r"sizes must have one value for each client \(7\), got 2"),
        ({"client_names": ("a",)}, "client_names must have one value for each client"),
        ({"positions_km": ((0.0, 0.0),)}, "positions_km must have one value for each client"),
        ({"upload_probability": (1.0,)}, "upload_probability must have one value for each client"),
        ({"untrained": (0.1,)}, r"untrained must have one value for each trial \(2\), got 1"),
        ({"flaws": {"labels": (7,)}}, "flaws.labels names a client outside 0..6"),
        ({"groups": {"iid": (7,)}}, "groups.iid names a client outside 0..6"),
        ({"edges": ((0, 7),)}, "edges names a client outside 0..6"),
    ],
)
def test_a_header_that_contradicts_itself_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        sample_header(**changes)


@pytest.mark.parametrize("created", ["yesterday", "2025-01-31T12:00:00", "2025-01-31T12:00:00+02:00"])
def test_a_creation_time_that_is_not_utc_is_refused(created: str) -> None:
    with pytest.raises(ConfigurationError, match="ISO 8601 time in UTC"):
        msgspec.structs.replace(PROVENANCE, created=created).__post_init__()


def test_the_page_on_records_names_exactly_the_fields_of_the_code() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for struct in (RunHeader, SelectorEntry, Optimum, Provenance, SlotRecord, Measures, Exchange, Signals):
        section = re.search(rf"^#+ .*`{struct.__name__}`.*?$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
        assert section, f"the pages on records have no section on {struct.__name__}"
        rows = re.findall(r"^\| `(\w+)` \|", section.group(1), re.MULTILINE)
        assert rows == list(struct.__struct_fields__), struct.__name__
