"""The client against servers that answer well, oddly and badly: counts, times and kinds of failure."""

import numpy as np
import oracle_scripts as scripts
import pytest

from infx.measure.columns import CountSource
from infx.measure.request import per_request
from infx.measure.summary import summarise
from infx.measure.validity import Expected, invalid_reasons
from infx.measure.window import Span
from infx.run.load.control import Ending
from infx.run.load.spec import WindowRule


def span(output) -> Span:
    return Span(output.window.open_ns, output.window.close_ns)


def summary(output, concurrency: int = 2) -> dict:
    return summarise(output.table, span(output), gpus=1, concurrency=concurrency)


def sent_by(truth: dict) -> int:
    return sum(tokens for entry in truth["log"] for _, tokens in entry["writes"])


# -- counting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize("options", [{}, {"per_write": 4}, {"per_write": 7}], ids=str)
def test_tokens_equal_the_oracles_to_the_token(oracle, options: dict, processes: int) -> None:
    server = oracle(scripts.engine(first_s=0.002, gap_s=0.001, jitter=0.5, **options))
    output = server.load(concurrency=4, processes=processes)
    truth = server.truth()
    ended = output.table.ok
    assert output.ending is Ending.COMPLETE
    totals = output.table["output_tokens"]
    assert (totals[ended] == output.table["output_asked"][ended]).all()
    assert output.table.read_tokens.sum() == totals[totals >= 0].sum()
    whole = {}  # tokens the oracle sent, by the first ids of the prompt
    for entry in truth["log"]:
        whole[tuple(entry["request"]["prompt"]["first"])] = sum(count for _, count in entry["writes"])
    assert sum(whole.values()) >= totals[ended].sum()
    assert sorted(totals[ended])[-8:] == [20] * 8
    assert (output.table["prompt_usage"][ended] == 10).all()
    assert output.failures == {}


@pytest.mark.parametrize(
    ("kind", "source"),
    [("chunk", CountSource.USAGE_PER_READ), ("last", CountSource.USAGE_FINAL_SPREAD),
     ("final", CountSource.USAGE_FINAL_SPREAD)],
)  # fmt: skip
def test_usage_wherever_it_rides(oracle, kind: str, source: CountSource) -> None:  # P2
    output = oracle(scripts.streamed(*scripts.tokens(20, kind=kind))).load()
    ended = output.table.ok
    assert ended.sum() >= 8
    assert set(output.table["output_tokens"][ended]) == {20}
    assert set(output.table["count_source"][ended]) == {source}


def test_without_usage_tokens_are_retokenised_and_flagged_or_unknown(oracle) -> None:  # P2 (c)
    plays = scripts.streamed(*scripts.tokens(20, kind="none"))
    counted = oracle(plays).load()
    assert set(counted.table["output_tokens"][counted.table.ok]) == {20}
    assert set(counted.table["count_source"][counted.table.ok]) == {CountSource.RETOKENISED}
    unknown = oracle(plays).load(tokenize_path=None)
    assert set(unknown.table["output_tokens"][unknown.table.ok]) == {-1}
    assert summary(unknown)["output-throughput"].value is None


def test_role_only_first_event_is_no_first_token(oracle) -> None:  # P3
    rule = WindowRule(minimum_requests=2, cap_s=20)
    output = oracle(scripts.role_only(0.3, 3)).load(concurrency=1, window=rule, osl=3)
    each = per_request(output.table)
    assert np.nanmin(each.ttft_ms) >= 300
    assert set(output.table["empty_first"][output.table.ok]) == {1}


def test_bursts_have_a_chunk_gap_and_an_itl_of_their_own(oracle) -> None:  # P4
    output = oracle(scripts.engine(first_s=0.05, gap_s=0.1, per_write=4)).load(
        concurrency=1, window=WindowRule(minimum_requests=2, cap_s=20))  # fmt: skip
    made = summary(output, 1)
    assert made["tokens-per-chunk"].value == 4
    assert made["chunk-gap-mean"].value == pytest.approx(100, rel=0.1)
    assert made["itl-mean"].value == pytest.approx(25, rel=0.1)
    assert made["tpot-mean"].value == pytest.approx(25, rel=0.1)
    assert made["tpot-common-formula-mean"].value == pytest.approx(400 / 19, rel=0.1)


# -- grammar and transport -------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("comment", ["", ": keep-alive\n\n"])
@pytest.mark.parametrize("space", [True, False])
def test_legal_event_streams(oracle, end: str, comment: str, space: bool) -> None:  # P7
    events = [(comment + text).replace("\n", end) for text in scripts.tokens(20)]
    events = events if space else [text.replace("data: ", "data:") for text in events]
    output = oracle(scripts.streamed(*events)).load()
    assert output.failures == {}
    assert set(output.table["output_tokens"][output.table.ok]) == {20}


def test_events_cut_anywhere_even_inside_a_character(oracle) -> None:  # P7
    text = "".join(scripts.tokens(20)).replace('"x"', '"é漢😀"').encode()
    parts = [text[at : at + 7].decode("latin-1") for at in range(0, len(text), 7)]
    plays = [{"bytes": scripts.CHUNKED_HEAD}]
    plays += [{"bytes": f"{len(part):x}\r\n{part}\r\n", "after": 0.0001} for part in parts]
    output = oracle([{"steps": [*plays, {"bytes": "0\r\n\r\n"}]}]).load()
    assert output.failures == {}
    assert set(output.table["output_tokens"][output.table.ok]) == {20}


def test_an_event_of_ten_megabytes(oracle) -> None:  # P7
    big = scripts.event(scripts.content(False, "x" * 10_000_000, scripts.usage(20), "length"))
    output = oracle(scripts.streamed(big, scripts.event("[DONE]"))).load(
        concurrency=1, window=WindowRule(minimum_requests=2, cap_s=20))  # fmt: skip
    assert output.failures == {}
    assert set(output.table["output_tokens"][output.table.ok]) == {20}


@pytest.mark.parametrize("length", [True, False], ids=["content-length", "until close"])
def test_streams_without_chunks(oracle, length: bool) -> None:
    output = oracle(scripts.unchunked("".join(scripts.tokens(20)), length=length)).load()
    assert output.failures == {}
    assert set(output.table["output_tokens"][output.table.ok]) == {20}


def test_connections_are_used_again(oracle) -> None:  # P10
    server = oracle(scripts.engine())
    output = server.load(concurrency=4, window=WindowRule(minimum_requests=40, cap_s=20))
    assert server.truth()["connections"] == 4 + 1  # and the one that asks for the log
    assert output.table["reconnects"].sum() == 0


def test_an_idle_connection_that_the_server_closed_costs_nothing(oracle) -> None:
    good = scripts.streamed(*scripts.tokens(20))[0]
    closing = {"steps": [*good["steps"], {"after": 0.001, "close": True}]}
    output = oracle([good, closing]).load(window=WindowRule(minimum_requests=40, cap_s=20))
    assert output.failures == {}
    assert set(output.table["output_tokens"][output.table.ok]) == {20}


# -- failures --------------------------------------------------------------------------------------------------

FIRST = scripts.tokens(20)[0]


@pytest.mark.parametrize(
    ("kind", "plays"),
    [
        ("error-event", scripts.streamed(FIRST, scripts.error_event(), scripts.event("[DONE]"))),
        ("error-event", scripts.streamed(FIRST, scripts.error_event(), end="")),
        ("truncated", scripts.streamed(FIRST)),
        ("short", scripts.streamed(FIRST, scripts.event("[DONE]"))),
        ("no-token", scripts.streamed(scripts.event(scripts.content(False, "", scripts.usage(0), "stop")))),
        ("malformed-event", scripts.streamed(FIRST, "data: {oops\n\n", scripts.event("[DONE]"))),
        ("connection-lost", [{"steps": [*scripts.streamed(FIRST, end="")[0]["steps"], {"close": True}]}]),
        ("connection-lost", [{"steps": [*scripts.streamed(FIRST, end="")[0]["steps"], {"reset": True}]}]),
        ("malformed-http", scripts.steps(scripts.send("SMTP 220 hello\r\n\r\n", close=True))),
        ("not-a-stream", scripts.status(200, "OK", '{"choices": [{"text": "all at once"}]}')),
        ("http-429", scripts.status(429, "Too Many Requests", '{"error": "slow down"}', "retry-after: 1\r\n")),
        ("http-503", scripts.status(503, "Service Unavailable")),
        ("http-4xx", scripts.status(400, "Bad Request", '{"message": "too long"}')),
        ("http-5xx", scripts.status(500, "Internal Server Error")),
        ("redirect", scripts.status(307, "Temporary Redirect", "", "location: http://127.0.0.1:1/\r\n")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_bad_answer_is_a_failure_of_its_kind(oracle, kind: str, plays: list) -> None:  # P1
    output = oracle(plays).load(window=WindowRule(minimum_requests=30, cap_s=20), give_up_after=8)
    assert output.ending is Ending.FAILING
    assert set(output.failures) == {kind}
    assert sum(output.failures.values()) == output.table.failed.sum() >= 8
    assert not output.table.ok.any()
    assert kind in output.message


def test_one_request_in_twenty_fails_and_it_shows(oracle) -> None:  # P11
    good = scripts.engine(gap_s=0.001)[0]
    bad = scripts.streamed(FIRST, scripts.error_event())[0]
    output = oracle([*[good] * 19, bad]).load(concurrency=4, window=WindowRule(minimum_requests=100, cap_s=20))
    made = summary(output, 4)
    assert output.ending is Ending.COMPLETE
    assert set(output.failures) == {"error-event"}
    assert made["requests-failed"].value >= 4
    assert made["success-share"].value == 1 - made["failure-share"].value < 1
    reasons = invalid_reasons(output.table, span(output), Expected(concurrency=4))
    assert [reason.code for reason in reasons] == ["failures-above-limit"]
    assert "CUDA out of memory" in output.first_messages["error-event"]


def test_requests_that_take_too_long_are_failures(oracle) -> None:
    output = oracle(scripts.engine(first_s=30.0)).load(
        window=WindowRule(minimum_requests=4, cap_s=5), request_timeout_s=0.3, give_up_after=4)  # fmt: skip
    assert (output.ending, set(output.failures)) == (Ending.FAILING, {"timeout"})


def test_nobody_listens(oracle) -> None:
    server = oracle(scripts.engine())
    server.process.kill()
    server.process.wait()
    output = server.load()
    assert (output.ending, set(output.failures)) == (Ending.FAILING, {"connect"})
    assert not output.table.ok.any()


def test_an_engine_that_dies_in_mid_run_ends_the_load(oracle) -> None:
    server = oracle(scripts.engine(gap_s=0.005))
    output = server.load(
        window=WindowRule(duration_s=60), hooks={"on_window_open": server.process.kill})  # fmt: skip
    assert output.ending is Ending.FAILING
    assert set(output.failures) <= {"connection-lost", "connect"}
    assert output.window is not None


def test_an_engine_that_hangs_ends_the_load(oracle) -> None:
    play = scripts.streamed(*scripts.tokens(20), gap=0.001)[0]
    stuck = {"steps": [*play["steps"][:5], {"after": 600, "close": True}]}
    output = oracle([*[play] * 6, *[stuck] * 1000]).load(window=WindowRule(duration_s=60), stall_s=0.5)
    assert output.ending is Ending.HUNG
    assert output.table.cut.sum() == 2
    assert "no byte" in output.message


@pytest.mark.parametrize("processes", [0, 1])
def test_asking_to_stop_stops(oracle, processes: int) -> None:
    opened = []
    output = oracle(scripts.engine(gap_s=0.005)).load(
        window=WindowRule(duration_s=60), processes=processes,
        hooks={"on_window_open": lambda: opened.append(1), "should_stop": lambda: bool(opened)})  # fmt: skip
    assert output.ending is Ending.STOPPED
    assert output.failures == {}
    assert output.table.cut.sum() == 2
