"""Reading of a run for a few metrics: the same results, with those values alone; damage is still explained."""

import json

import pytest

from infx.errors import ResultsError
from infx.results.load import load_run
from tests.fakes import run_folder


def test_only_the_asked_metrics_are_held(tmp_path):
    path = run_folder.write(tmp_path, failed=("tp2/c64",))
    whole, thin = load_run(path), load_run(path, frozenset({"tpot-p50"}))
    assert [r.point for r in thin.results] == [r.point for r in whole.results]
    assert [r.status for r in thin.results] == [r.status for r in whole.results]
    for a, b in zip(whole.results, thin.results, strict=True):
        assert b.visits[0].metrics == {k: v for k, v in a.visits[0].metrics.items() if k == "tpot-p50"}
        assert b.visits[0].engine == {}
        assert (a.visits[0].counts, a.visits[0].reasons) == (b.visits[0].counts, b.visits[0].reasons)
    assert len(whole.results[0].visits[0].metrics) > 10


@pytest.mark.parametrize(("text", "message"), [
    ("{", "damaged: not JSON"), ("[]", "no format-version"), ('{"format-version": 99}', "newer than this infx"),
    ('{"format-version": 1, "visits": [3]}', "damaged"), ('{"format-version": 1, "visits": 7}', "damaged"),
])
def test_damage_is_explained_as_ever(tmp_path, text, message):
    path = run_folder.write(tmp_path)
    file = next(path.glob("points/*/*/*/result.json"))
    file.write_text(text)
    with pytest.raises(ResultsError, match=message):
        load_run(path, frozenset({"tpot-p50"}))


def test_a_kept_value_is_still_checked(tmp_path):
    path = run_folder.write(tmp_path)
    file = next(path.glob("points/*/*/*/result.json"))
    data = json.loads(file.read_text())
    data["visits"][0]["metrics"]["tpot-p50"]["value"] = None
    file.write_text(json.dumps(data))
    with pytest.raises(ResultsError, match="a null value needs a reason"):
        load_run(path, frozenset({"tpot-p50"}))
