"""The request table and its file: nothing is lost, damage and newer versions are refused."""

import io

import numpy as np
import pytest

from infx.errors import ResultsError
from infx.measure.summary import summarise
from infx.measure.table import RequestTable
from infx.measure.window import Span


def test_file_round_trip_gives_the_same_summary(table_of) -> None:  # P60
    table = table_of(*({"sent": i, "reads": [(i + 5 + 3 * k, 1 + k % 2) for k in range(i % 4)]} for i in range(50)))
    again = RequestTable.from_bytes(table.to_bytes())
    assert all((table[name] == again[name]).all() for name in table.columns)
    window = Span(1, 60_000_000)
    assert summarise(again, window, gpus=1, concurrency=1) == summarise(table, window, gpus=1, concurrency=1)


def test_select_and_order_keep_reads_with_their_requests(table_of) -> None:
    table = table_of(*({"sent": i, "reads": [(10 * i + k, 1) for k in range(i)]} for i in range(5)))
    odd = table.select(np.array([False, True, False, True, False]))
    assert list(np.diff(odd.offsets)) == [1, 3]
    back = table.select_order(np.array([4, 3, 2, 1, 0]))
    assert list(np.diff(back.offsets)) == [4, 3, 2, 1, 0]
    assert list(back.read_ns[:4]) == list(table.read_ns[-4:])
    assert list(back["sent_ns"]) == list(table["sent_ns"][::-1])


def test_no_request_at_all() -> None:
    table = RequestTable.from_batches([])
    assert len(table) == 0
    assert len(RequestTable.from_bytes(table.to_bytes())) == 0
    assert table.failures() == {}


def test_damaged_and_newer_files_are_refused(table_of) -> None:
    good = table_of({"sent": 1, "reads": [(2, 1)]}).to_bytes()
    for bad in (b"", b"PK\x03\x04junk", good[: len(good) // 2]):
        with pytest.raises(ResultsError):
            RequestTable.from_bytes(bad)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, version=np.array(99))
    with pytest.raises(ResultsError, match="version 99"):
        RequestTable.from_bytes(buffer.getvalue())
