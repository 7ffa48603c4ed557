"""Tokens that nobody counted: the text of a response, counted by the engine's own tokenizer afterwards.

Such counts are flagged (``CountSource.RETOKENISED``): detokenised text need not give the same ids again.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import replace

import numpy as np

from infx.measure.columns import CountSource
from infx.measure.table import RequestTable
from infx.run.load.spec import LoadSpec


def retokenise(table: RequestTable, texts: dict[int, str], spec: LoadSpec, timeout_s: float = 10.0) -> RequestTable:
    """``table`` with the output tokens of the rows in ``texts``, as far as the engine answers; else as it is."""
    if not texts or spec.tokenize_path is None:
        return table
    counts = table["output_tokens"].copy()
    sources = table["count_source"].copy()
    connection = http.client.HTTPConnection(spec.host, spec.port, timeout=timeout_s)
    try:
        for row, text in texts.items():
            count = _count(connection, spec, text)
            if count is None:
                break
            counts[row], sources[row] = count, np.int8(CountSource.RETOKENISED)
    except (OSError, http.client.HTTPException):
        pass  # what is not counted stays unknown
    finally:
        connection.close()
    return replace(table, columns={**table.columns, "output_tokens": counts, "count_source": sources})


def _count(connection: http.client.HTTPConnection, spec: LoadSpec, text: str) -> int | None:
    body = json.dumps({"model": spec.model, "prompt": text, "add_special_tokens": False})
    connection.request("POST", spec.tokenize_path or "", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        return None
    try:
        found = json.loads(content).get("count")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, int) else None
