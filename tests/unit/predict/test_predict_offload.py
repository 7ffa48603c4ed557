"""The DRAM budget of KV offload, by hand."""

from __future__ import annotations

import pytest

from infx.predict.offload import dram_budget_gb, offloaded_tokens


@pytest.mark.parametrize(
    "host, utilization, gpus, budget",
    [
        (2_063_837, 0.20, 4, 216),  # 2,164,089… GB × 0.2 × 4 ÷ 8 = 216.4
        (2_063_837, 1.0, 8, 2164),
        (9_000_000, 0.5, 2, 374),  # capped at 3 TB: 2,999,998,… MB × 0.5 ÷ 4 = 374.99
        (1, 0.5, 1, 0),
    ],
)
def test_the_engine_gets_its_gpus_share_of_the_node(host, utilization, gpus, budget):
    got = dram_budget_gb(host_memory_mib=host, dram_utilization=utilization, gpus=gpus, gpus_per_node=8)
    assert got == budget


@pytest.mark.parametrize("change", [{"dram_utilization": 0.0}, {"dram_utilization": 1.1}, {"host_memory_mib": 0},
                                    {"gpus": 9}, {"gpus": 0}])
def test_impossible_shares_are_refused(change):
    facts = {"host_memory_mib": 1000, "dram_utilization": 0.5, "gpus": 4, "gpus_per_node": 8}
    with pytest.raises(ValueError):
        dram_budget_gb(**{**facts, **change})


def test_tokens_of_a_budget():
    assert offloaded_tokens(216, 890.0) == 242_696_629
    with pytest.raises(ValueError):
        offloaded_tokens(1, 0.0)
