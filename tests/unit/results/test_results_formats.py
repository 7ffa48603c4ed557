"""Each format by a small file of its shape: what is taken, what is null and why, and what only looks finished."""

import csv
import io
import json

import pytest
import run_folder as fake

from infx.errors import InputError, UsageError
from infx.results.formats import import_path
from infx.results.formats.export_csv import export_csv
from infx.results.formats.export_inferencex import export_inferencex
from infx.results.formats.imported import CORE
from infx.results.formats.names import families
from infx.results.load import load_run
from infx.schema.metrics import METRICS
from infx.schema.result import Status

VLLM = {
    "date": "20260101-000000", "backend": "vllm", "model_id": "org/demo-model", "tokenizer_id": "org/demo-model",
    "num_prompts": 20, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 4, "duration": 10.0,
    "completed": 20, "total_input_tokens": 2000, "total_output_tokens": 400, "request_throughput": 2.0,
    "request_goodput:": None, "output_throughput": 40.0, "total_token_throughput": 240.0,
    "input_lens": [100] * 20, "output_lens": [20] * 20,
    "mean_ttft_ms": 51.0, "median_ttft_ms": 50.0, "p90_ttft_ms": 60.0, "p99_ttft_ms": 70.0, "std_ttft_ms": 5.0,
    "mean_tpot_ms": 10.5, "median_tpot_ms": 10.0, "mean_itl_ms": 30.0, "median_itl_ms": 29.0, "p99_itl_ms": 44.0,
    "mean_e2el_ms": 250.0, "median_e2el_ms": 240.0,
}
SGLANG = {
    "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"), "max_concurrency": None,
    "duration": 5.0, "completed": 10, "num_prompts": 10, "total_input_tokens": 100, "total_output_tokens": 50,
    "total_output_tokens_retokenized": 49, "request_throughput": 2.0, "output_throughput": 10.0,
    "mean_e2e_latency_ms": 80.0, "median_e2e_latency_ms": 79.0, "mean_ttft_ms": 9.0, "median_ttft_ms": 8.0,
    "median_tpot_ms": 3.0, "median_itl_ms": 2.9, "accept_length": 2.5,
}
AGG = {
    "hw": "mi355x", "conc": 8, "image": "org/image:1", "model": "org/demo-model", "infmax_model_prefix": "demo",
    "framework": "vllm", "precision": "fp4", "spec_decoding": "none", "disagg": False, "isl": 1024, "osl": 128,
    "is_multinode": False, "tp": 4, "pp": 2, "ep": 1, "dp_attention": "false", "tput_per_gpu": 360.0,
    "output_tput_per_gpu": 40.0, "input_tput_per_gpu": 320.0, "median_ttft": 0.05, "median_tpot": 0.02,
    "median_intvty": 50.0, "p90_intvty": 40.0, "std_intvty": 1414.6, "median_itl": 0.06, "median_e2el": 2.0,
    "power_valid": 0, "joules_per_output_token": 0,
}
AGENTIC = {
    "hw": "cluster:demo", "conc": 3, "image": "org/image:1", "model": "org/demo-model", "framework": "vllm",
    "precision": "fp4", "tp": 2, "is_multinode": False, "num_requests_total": 12, "num_requests_successful": 8,
    "request_accounting": {"records_total": 12, "records_profiled": 8, "records_warmup_dropped": 3,
                           "records_error_dropped": 1, "error_categories": {"ServerDisconnectedError": 1}},
    "request_metrics": {
        "qps": {"mean": 0.1},
        "latency": {"ttft": {"mean": 1.5, "p50": 1.0, "p90": 3.0}, "e2el": {"p50": 9.0},
                    "itl": {"p50": 0.013}, "tpot": {"p50": 0.013}, "intvty": {"p50": 76.0, "p90": 69.0}},
        "throughput": {"total": {"tokens_per_second": 5400.0}, "output": {"tokens_per_second": 60.0},
                       "per_gpu": {"total_tput_tps": 2700.0, "output_tput_tps": 30.0}, "duration_seconds": 3500.0},
        "cache": {"theoretical_cache_hit_rate": 0.93},
    },
    "server_metrics": {"present": True, "cache": {"gpu_cache_hit_rate": 0.92}, "kv_cache": {"gpu_usage_pct": 0.1}},
}
AIPERF = {
    "schema_version": "1.2", "aiperf_version": "0.8.0", "was_cancelled": False, "error_summary": [],
    "request_count": {"unit": "requests", "avg": 40.0},
    "time_to_first_token": {"unit": "ms", "avg": 20.0, "p50": 18.0, "p90": 30.0, "p99": 40.0},
    "request_latency": {"unit": "ms", "avg": 200.0, "p50": 190.0},
    "inter_token_latency": {"unit": "ms", "avg": 5.0, "p50": 4.9},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 58.0},
    "e2e_output_token_throughput": {"unit": "tokens/sec/user", "p50": 50.0, "p90": 69.0},
    "output_token_throughput_per_user": {"unit": "tokens/sec/user", "p50": 76.0, "p90": 82.0},
    "input_config": {"endpoint": {"model_names": ["org/demo-model"]}, "loadgen": {"concurrency": 1}},
}
PERF = {
    "load_summary": {"count": 60, "schedule_delay": {"mean": 0.001}, "requested_rate": 1.0},
    "successes": {
        "count": 60,
        "latency": {"request_latency": {"mean": 0.7, "median": 0.75}, "time_to_first_token": {"median": 0.04},
                    "time_per_output_token": {"median": 0.006}, "inter_token_latency": {"median": 0.0001},
                    "normalized_time_per_output_token": {"median": 0.012}},
        "throughput": {"output_tokens_per_sec": 62.5, "total_tokens_per_sec": 265.0, "requests_per_sec": 1.0},
        "prompt_len": {"mean": 200.0}, "output_len": {"mean": 60.0},
    },
    "failures": {"count": 0, "request_latency": None, "prompt_len": None},
}
GUIDE = {
    "metadata": {"version": 2},
    "benchmarks": [{
        "type_": "generative_benchmark",
        "config": {"strategy": {"type_": "concurrent", "streams": 16}, "backend": {"model": "org/demo-model"}},
        "metrics": {
            "request_totals": {"successful": 30, "errored": 2, "incomplete": 4, "total": 36},
            "time_to_first_token_ms": {"successful": {"mean": 12.0, "median": 11.0, "percentiles": {"p90": 15.0}}},
            "request_latency": {"successful": {"median": 0.25}},
            "inter_token_latency_ms": {"successful": {"mean": 1.15}},
            "output_tokens_per_second": {"successful": {"mean": 320.0}},
        },
    }],
}


def points_of(tmp_path, content, name="result.json"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return import_path(path)


def one(tmp_path, content, name="result.json"):
    (point,) = points_of(tmp_path, content, name)
    return point


def known(point):
    return {name: value.value for name, value in point.metrics.items() if value.value is not None}


def codes(point):
    return [reason.code for reason in point.reasons]


def test_vllm_figures_stand_under_the_names_that_fit_their_definitions(tmp_path):
    point = one(tmp_path, VLLM)
    assert (point.format, point.model, point.concurrency, point.status) == (
        "vllm-bench-serve", "org/demo-model", 4, Status.OK)
    assert known(point) == {
        "ttft-mean": 51.0, "ttft-p50": 50.0, "ttft-p90": 60.0, "ttft-p99": 70.0, "tpot-common-formula-mean": 10.5,
        "tpot-common-formula-p50": 10.0, "chunk-gap-mean": 30.0, "chunk-gap-p50": 29.0, "chunk-gap-p99": 44.0,
        "e2el-mean": 250.0, "e2el-p50": 240.0, "output-throughput-whole-wall": 40.0,
        "total-throughput-whole-wall": 240.0, "request-throughput": 2.0,
    }
    assert point.metrics["ttft-p50"].n == 20
    assert point.metrics["tpot-p50"].reason == "the tool divides by output tokens - 1: see tpot-common-formula"
    assert point.metrics["output-throughput-per-gpu"].reason == "the file does not say how many GPUs served it"
    assert point.facts["detailed"] is False
    assert set(CORE) <= set(point.metrics)


@pytest.mark.parametrize("content", [VLLM, SGLANG, AGG, AGENTIC, AIPERF, PERF, GUIDE])
def test_every_format_states_every_core_metric_with_a_unit_or_a_reason(tmp_path, content):
    point = one(tmp_path, content)
    for name in CORE:
        value = point.metrics[name]
        assert value.unit == METRICS[name].unit
        assert (value.value is None) == bool(value.reason)
    stated = json.dumps(content)
    assert point.metrics["interactivity-median"].value is None, "no file states our interactivity"
    assert "interactivity" not in stated


def test_a_detailed_file_counts_its_errors(tmp_path):
    detailed = {**VLLM, "completed": 18, "request_throughput": 1.8, "itls": [[0.1]] * 20,
                "errors": [""] * 18 + ["reset", "reset"]}
    point = one(tmp_path, detailed)
    assert point.facts["detailed"] is True
    assert point.counts == {"sent": 20, "ok": 18, "failed": 2}
    assert point.status is Status.INVALID and "2 of 20 requests did not complete" in point.reasons[0].message


def test_a_failure_that_looks_finished_is_named_and_gives_no_figure(tmp_path):
    zeros = {key: 0.0 if key.endswith(("_ms", "throughput")) else value for key, value in VLLM.items()}
    point = one(tmp_path, {**zeros, "completed": 0, "num_prompts": 640, "duration": 0.7})
    assert point.status is Status.FAILED and codes(point) == ["nothing-completed"]
    assert "0 of 640" in point.reasons[0].message
    assert known(point) == {} and point.foreign == {}


def test_a_zero_in_a_good_file_is_no_figure(tmp_path):
    point = one(tmp_path, {**VLLM, "median_tpot_ms": 0.0, "median_e2el_ms": float("nan")})
    zero = point.metrics["tpot-common-formula-p50"]
    assert zero.value is None and zero.reason == "median_tpot_ms is 0 in the file, which no measurement gives"
    assert point.metrics["e2el-p50"].reason == "median_e2el_ms is nan in the file"
    assert point.metrics["ttft-p50"].value == 50.0


@pytest.mark.parametrize("change", [{"duration": 20.0}, {"total_output_tokens": 500}])
def test_a_file_that_disagrees_with_itself_is_invalid(tmp_path, change):
    point = one(tmp_path, {**VLLM, **change})
    assert point.status is Status.INVALID and "file-disagrees-with-itself" in codes(point)


def test_sglang_lines_are_points_and_infinity_is_read(tmp_path):
    lines = json.dumps(SGLANG) + "\n" + json.dumps({**SGLANG, "completed": 7, "request_throughput": 1.4}) + "\n"
    assert "Infinity" in lines
    first, second = points_of(tmp_path, lines, "result.jsonl")
    assert first.facts["request_rate"] == "inf" and first.concurrency is None
    assert first.source.endswith("result.jsonl:1") and second.source.endswith(":2")
    assert known(first) == {"ttft-mean": 9.0, "ttft-p50": 8.0, "tpot-common-formula-p50": 3.0, "e2el-mean": 80.0,
                            "e2el-p50": 79.0, "output-throughput-whole-wall": 10.0, "request-throughput": 2.0,
                            "acceptance-length": 2.5}
    assert first.foreign["median_itl_ms"] == 2.9
    assert second.status is Status.INVALID
    json.loads(first.model_dump_json())


def test_an_aggregate_is_in_seconds_and_its_interactivity_stays_its_own(tmp_path):
    point = one(tmp_path, AGG)
    assert known(point) == {"ttft-p50": 50.0, "tpot-common-formula-p50": 20.0, "chunk-gap-p50": 60.0,
                            "e2el-p50": 2000.0, "total-throughput-whole-wall-per-gpu": 360.0,
                            "output-throughput-whole-wall-per-gpu": 40.0}
    assert point.gpus == 8
    assert (point.foreign["median_intvty"], point.foreign["p90_intvty"]) == (50.0, 40.0)
    assert "std_intvty" not in point.foreign
    assert point.metrics["energy-per-output-token"].reason == "no valid power in the file"
    assert codes(point) == ["failures-unknown"]
    assert known(one(tmp_path, {**AGG, "power_valid": 1, "joules_per_output_token": 0.5}))[
        "energy-per-output-token"] == 0.5


def test_an_agentic_aggregate_judges_success_without_warm_up(tmp_path):
    """P12: its request total counts warm-up."""
    point = one(tmp_path, AGENTIC)
    assert point.counts == {"sent": 9, "ok": 8, "failed": 1, "warm-up": 3}
    assert point.status is Status.INVALID
    assert codes(point) == ["failures-above-limit", "request-errors"]
    assert known(point)["prefix-hit-share"] == 0.92 and known(point)["theoretical-hit-share"] == 0.93
    assert known(point)["ttft-p90"] == 3000.0
    assert point.metrics["tpot-p50"].value is None and point.foreign["latency.itl.p50"] == 0.013
    clean = {**AGENTIC, "request_accounting": {"records_profiled": 8, "records_error_dropped": 0}}
    assert one(tmp_path, clean).status is Status.OK


def test_an_aiperf_rate_keeps_its_fast_end_to_itself(tmp_path):
    """P61: p90 of a rate is its fast end."""
    point = one(tmp_path, AIPERF)
    assert known(point)["e2e-interactivity-median"] == 50.0
    assert point.metrics["interactivity-at-p90-tpot"].value is None
    assert point.foreign["output_token_throughput_per_user.p90"] == 82.0
    assert point.foreign["inter_token_latency.p50"] == 4.9 and point.metrics["itl-p50"].value is None


def test_an_aiperf_folder_without_a_clean_end_is_not_ok(tmp_path):
    folder = tmp_path / "aiperf_artifacts"
    folder.mkdir()
    (folder / "profile_export.jsonl").write_text('{"metadata":{}}\n' * 3)
    (unfinished,) = import_path(tmp_path)
    assert unfinished.status is Status.FAILED and "3 requests were recorded" in unfinished.reasons[0].message
    (folder / "profile_export_aiperf.json").write_text(json.dumps(AIPERF))
    assert codes(import_path(folder)[0]) == ["exit-unknown"]
    (tmp_path / "driver.log").write_text("all done\ndriver exit=127\n")
    (bad,) = import_path(folder)
    assert bad.status is Status.INVALID and "exit status 127" in bad.reasons[0].message
    (tmp_path / "driver.log").write_text("exit code: 0\n")
    assert import_path(folder)[0].status is Status.OK
    (folder / "profile_export_aiperf.json").write_text(json.dumps({**AIPERF, "was_cancelled": True}))
    assert import_path(folder)[0].status is Status.INTERRUPTED


def test_inference_perf_and_guidellm(tmp_path):
    perf = one(tmp_path, PERF)
    assert known(perf) == {"e2el-mean": 700.0, "e2el-p50": 750.0, "ttft-p50": 40.0, "tpot-common-formula-p50": 6.0,
                           "chunk-gap-p50": 0.1, "output-throughput-whole-wall": 62.5,
                           "total-throughput-whole-wall": 265.0, "request-throughput": 1.0,
                           "input-length-mean": 200.0, "output-length-mean": 60.0}
    guide = one(tmp_path, GUIDE)
    assert (guide.concurrency, guide.status) == (16, Status.INVALID)
    assert guide.counts == {"ok": 30, "failed": 2, "cut": 4, "sent": 32}
    assert known(guide) == {"ttft-mean": 12.0, "ttft-p50": 11.0, "ttft-p90": 15.0, "e2el-p50": 250.0}
    assert guide.foreign["output_tokens_per_second.mean"] == 320.0


@pytest.mark.parametrize(
    ("name", "model", "flag"),
    [
        ("gptoss_fp4_h200_conc4.json", "deepseek-ai/DeepSeek-R1-0528", ["named-for-another-model"]),
        ("gpt-oss/run_conc4.json", "deepseek-ai/DeepSeek-R1", ["named-for-another-model"]),
        ("dsr1_fp8_conc4.json", "deepseek-ai/DeepSeek-R1", []),
        ("minimaxm2.5_8k1k_conc4.json", "MiniMaxAI/MiniMax-M2.5", []),
        ("kimik2.5_conc64.json", "moonshotai/Kimi-K2.5", ["named-for-another-concurrency"]),
        ("bench_c4.json", "m8b", []),
        ("isl1024_osl1024.json", "m8b", []),
    ],
)
def test_a_file_named_for_something_else_is_flagged(tmp_path, name, model, flag):
    assert [c for c in codes(one(tmp_path, {**VLLM, "model_id": model}, name)) if c.startswith("named")] == flag


def test_families_are_words_not_parts_of_words():
    assert families("gpt-oss-120b") == {"gpt-oss"}
    assert families("Qwen/Qwen3.5-397B") == {"qwen"}
    assert families("sglang_fp4_tp4") == set()


def test_what_is_no_result_is_refused(tmp_path):
    for content, words in [("{]", "not JSON"), ("", "empty"), ('{"a": 1}', "of no known format")]:
        with pytest.raises(InputError, match=words):
            points_of(tmp_path, content)
    with pytest.raises(InputError, match="damaged inferencex-agentic"):
        points_of(tmp_path, {"hw": 1, "conc": 2, "request_metrics": 3})
    with pytest.raises(UsageError, match="guidellm"):
        import_path(tmp_path / "result.json", "guidelm")
    with pytest.raises(InputError, match="not of format guidellm"):
        (tmp_path / "v.json").write_text(json.dumps(VLLM))
        import_path(tmp_path / "v.json", "guidellm")


def test_an_export_to_the_aggregate_is_read_back_with_the_same_figures(tmp_path):
    loaded = load_run(fake.write(tmp_path, simulated=False, failed=("tp4/c64",)))
    export = export_inferencex(loaded)
    assert export.skipped == {f"{fake.RECIPE}/tp4/c64": "failed"}
    for key, row in export.rows.items():
        point = one(tmp_path, row, "agg.json")
        visit = loaded.chosen(key).visits[0]
        for name, value in known(point).items():
            assert value == pytest.approx(visit.metrics[name].value, rel=1e-12), name
        assert {"ttft-p50", "e2el-p90", "tpot-common-formula-p50", "total-throughput-whole-wall-per-gpu"} <= set(
            known(point))
        assert (point.concurrency, point.gpus) == (loaded.chosen(key).concurrency, loaded.chosen(key).gpus)
    row = export.rows[f"{fake.RECIPE}/tp2/c8"]
    assert row["median_intvty"] == pytest.approx(1000 / (1.01 * 8.8)) and row["std_intvty"] is None
    assert row["hw"] == "mi355x" and "not_publishable" not in row
    simulated = export_inferencex(load_run(fake.write(tmp_path / "s"))).rows[f"{fake.RECIPE}/tp2/c8"]
    assert simulated["hw"] == "simulated-mi355x" and simulated["not_publishable"] is True


def test_csv_has_a_row_a_point_and_empty_cells_for_what_is_not_there(tmp_path):
    loaded = load_run(fake.write(tmp_path, tps=(2,), failed=("c8",), skipped=("c64",)))
    rows = list(csv.DictReader(io.StringIO(export_csv([loaded]))))
    assert [(r["concurrency"], r["status"]) for r in rows] == [("1", "ok"), ("8", "failed"), ("64", "missing")]
    assert float(rows[0]["ttft-p50 [ms]"]) == fake.curve(2, 1)["ttft-p50"]
    assert float(rows[0]["ttft-p50 high"]) == fake.curve(2, 1)["ttft-p50"] * 1.02
    assert rows[1]["ttft-p50 [ms]"] == "" and rows[2]["ttft-p50 [ms]"] == ""
    assert "engine-died" in rows[1]["reasons"]
