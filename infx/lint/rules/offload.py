"""Rules about KV offload: the engine must know the backend, and its budget must be one node's."""

from __future__ import annotations

from collections.abc import Iterable

from infx.engines import ENGINES
from infx.findings import Severity
from infx.lint.rule import Hit, Rule
from infx.lint.view import RecipeView
from infx.plan.merge import canonical_serve
from infx.plan.offload import offload_budget_gb, offload_serve


class OffloadCannotBe(Rule):
    """KV offload is asked for in a way that the engine or the machine cannot give.

    Why: the row would claim an offload that never ran, or of another size than its budget says.
    Mend: take a backend that the engine module knows, keep a server within one node, and leave the keys of the
    offload out of `serve`.
    """

    code, title = "R-042", "KV offload that cannot be"
    severity, waivable = Severity.ERROR, False
    message = "{what}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        asked = view.recipe.kv_offload
        if asked is None:
            return
        known = ENGINES[view.recipe.engine].offloads
        if asked.backend not in known:
            yield Hit(view.mark("kv-offload", "backend"),
                      {"what": f"{view.recipe.engine} has no KV offload backend {asked.backend!r}"}, "",
                      f"backends: {', '.join(sorted(known)) or 'none'}")
            return
        if view.dram is None:
            return
        for index, rung in enumerate(view.recipe.ladder):
            budget = offload_budget_gb(view.recipe, rung, view.dram)
            if budget is None:
                what = f"{view.gpus(rung)} GPUs are more than a node's {view.dram.gpus_per_node}, sharing its memory"
                yield Hit(view.mark("ladder", index), {"what": what})
            elif budget < 1:
                yield Hit(view.mark("kv-offload"), {"what": "the budget of host memory rounds down to 0 GB"}, "",
                          "raise dram-utilization")
        for server in view.servers:
            ours = offload_serve(view.recipe, server.layout, view.dram)
            for key in sorted(ours.keys() & canonical_serve(server.resolved.serve).keys()):
                yield Hit(view.place_of("serve", key, server), {"what": f"`kv-offload` sets {key} itself"}, server.at,
                          "remove it from `serve`")
