"""Rules about what cannot run or runs differently than the ladder says: caps, memory, layouts, graphs, failures."""

from __future__ import annotations

from collections.abc import Iterable

from infx.findings import Severity
from infx.lint.rule import Hit, Rule
from infx.lint.view import RecipeView
from infx.predict.capture import coverage
from infx.predict.defaults import max_model_len, max_num_batched_tokens, max_num_seqs
from infx.predict.features import State, failures

GIB = 2.0**30
MARGIN = 0.05  # by how much the predicted KV room may be off


class CapBelowConcurrency(Rule):
    """The engine runs fewer sequences at once than the point's concurrency.

    Why: the rest of the streams would queue in the engine; the point would not be what its label says.
    Mend: raise the cap to the highest concurrency that it serves, or lower the ladder.
    """

    code, title = "R-019", "server cap below concurrency"
    severity, waivable = Severity.ERROR, False
    message = "{name} is {cap}, below concurrency {concurrency}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for server in view.servers:
            cap, highest = max_num_seqs(server.deployment), max(server.concurrencies)
            if cap < highest:
                fields = {"name": view.role("sequence-cap"), "cap": cap, "concurrency": highest}
                yield Hit(view.place_of_role("sequence-cap", server), fields, server.at, f"set it to {highest} or more")


class CapMayBind(Rule):
    """An agentic point's cap leaves no room for sub-agents.

    Why: a lane may have several requests in flight at once (sub-agents); a cap near the number of lanes makes them
    queue, and the row shows the queue instead of the engine.
    Mend: leave the cap at twice the concurrency or more.
    """

    code, title = "R-020", "cap may bind with sub-agents"
    severity, waivable = Severity.WARNING, True
    message = "{name} is {cap}, below twice the {concurrency} lanes: sub-agents may queue"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        if view.recipe.scenario.kind != "agentic-coding":
            return
        for server in view.servers:
            cap, highest = max_num_seqs(server.deployment), max(server.concurrencies)
            if highest <= cap < 2 * highest:
                fields = {"name": view.role("sequence-cap"), "cap": cap, "concurrency": highest}
                yield Hit(view.place_of_role("sequence-cap", server), fields, server.at)


class ContextTooLong(Rule):
    """The engine is asked for longer sequences than the model has.

    Why: the engine refuses to start, or answers nonsense past the model's limit.
    Mend: lower it to the model's context.
    """

    code, title = "R-021", "longer than the model's context"
    severity, waivable = Severity.ERROR, False
    message = "{name} is {length}, above the {context} tokens of {model}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for server in view.servers:
            length, context = max_model_len(server.deployment), server.deployment.model.context
            if length > context:
                fields = {"name": view.role("context-limit"), "length": length, "context": context,
                          "model": view.recipe.model}  # fmt: skip
                hint = f"set it to {context} or less"
                yield Hit(view.place_of_role("context-limit", server), fields, server.at, hint)


class DoesNotFit(Rule):
    """Weights, tables and workspaces alone are above the memory of one GPU.

    Why: the engine dies at start, after the weights were loaded.
    Mend: the message lists the items; move tables to host memory, take more GPUs, a smaller chunk, fewer sequences.
    """

    code, title = "R-022", "does not fit"
    severity, waivable = Severity.ERROR, True
    message = "{used:.1f} GiB a GPU are above the {usable:.1f} GiB it may use: {items}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for server in view.servers:
            memory = server.memory
            if memory.fits is False:
                largest = sorted(memory.items, key=lambda item: -item.bytes)
                items = "; ".join(f"{item.name} {item.bytes / GIB:.1f}" for item in largest if item.bytes >= GIB)
                fields = {"used": memory.used / GIB, "usable": memory.usable / GIB, "items": items}
                yield Hit(view.mark("ladder", server.rung), fields, server.at)


class KvTooSmall(Rule):
    """The KV cache is too small for what the ladder asks.

    Why: streams would wait or be preempted and recomputed; published agentic points collapsed below the room per
    request that the model's facts name.
    Mend: lower the concurrency, take more GPUs, or free memory.
    """

    code, title = "R-023", "little KV room"
    severity, waivable = Severity.WARNING, True
    message = "about {room} KV tokens a stream at concurrency {concurrency}, below {needed} ({why})"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        held = view.catalog.models[view.recipe.model].number("kv-tokens-per-request-held", 0)
        agentic = view.recipe.scenario.kind == "agentic-coding"
        needed, why = (int(held), "where published points held") if agentic else (view.longest or 0, "one request")
        for server in view.servers:
            short = [
                (concurrency, room)
                for concurrency in server.concurrencies
                if (room := server.memory.tokens_per_request(concurrency)) is not None and room < needed * (1 - MARGIN)
            ]
            if short:
                concurrency, room = short[0]
                fields = {"room": room, "concurrency": concurrency, "needed": needed, "why": why}
                yield Hit(view.mark("ladder", server.rung, "concurrency"), fields, server.at)


class HostMemory(Rule):
    """Host memory is asked for that the machines do not have.

    Why: the engine dies while it pins memory, or the machine swaps.
    Mend: keep the tables on the GPUs, or take another label.
    """

    code, title = "R-024", "host memory exceeded"
    severity, waivable = Severity.ERROR, True
    message = "{needed:.0f} GiB of tables in host memory are above the {has:.0f} GiB of {label}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        label = view.catalog.labels.get(view.recipe.runner)
        if label is None or label.host_memory_mib is None:
            return
        for server in view.servers:
            if server.memory.host_bytes > label.host_memory_mib * 2**20:
                fields = {"needed": server.memory.host_bytes / GIB, "has": label.host_memory_mib / 1024,
                          "label": label.key}  # fmt: skip
                yield Hit(view.place_of_role("host-tables", server), fields, server.at)


class TpDoesNotDivide(Rule):
    """The tensor-parallel size does not divide what it splits.

    Why: attention heads are split evenly over the ranks; the engine refuses other sizes.
    Mend: take a divisor.
    """

    code, title = "R-025", "TP does not divide"
    severity, waivable = Severity.ERROR, False
    message = "TP {tp} does not divide the {count} {what} of {model}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        model = view.catalog.models[view.recipe.model]
        for index, rung in enumerate(view.recipe.ladder):
            for fact, what in (("heads", "attention heads"), ("ffn", "feed-forward columns")):
                count = int(model.number(fact, 0))
                if count and count % rung.tp:
                    fields = {"tp": rung.tp, "count": count, "what": what, "model": model.key}
                    yield Hit(view.mark("ladder", index, "tp"), fields)


class MoreGpusThanNode(Rule):
    """A layout needs more GPUs than a machine of the label has.

    Why: a point runs on one node.
    Mend: take a smaller layout or another label.
    """

    code, title = "R-026", "more GPUs than the node"
    severity, waivable = Severity.ERROR, False
    message = "the layout uses {gpus} GPUs; a node of {label} has {has}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        label = view.catalog.labels.get(view.recipe.runner)
        has = label.gpus_per_node if label else None
        has = has or view.catalog.hardware[view.recipe.hardware].gpus_per_node
        for index, rung in enumerate(view.recipe.ladder):
            if view.gpus(rung) > has:
                fields = {"gpus": view.gpus(rung), "label": view.recipe.runner, "has": has}
                yield Hit(view.mark("ladder", index), fields)


class NotCaptured(Rule):
    """Full decode steps are larger than the largest captured graph.

    Why: rows of a step are concurrency × (1 + drafts); steps above the captured sizes run launch by launch, and the
    curve bends there for that reason alone.
    Mend: raise the capture limit to the rows of the highest concurrency.
    """

    code, title = "R-027", "decode steps above the captured graphs"
    severity, waivable = Severity.WARNING, True
    message = "concurrency {concurrency} has {rows} rows a step; the largest captured graph has {largest}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for server in view.servers:
            if coverage(server.at_concurrency(max(server.concurrencies))).covered:
                continue
            for concurrency in server.concurrencies:
                found = coverage(server.at_concurrency(concurrency))
                if found.largest and not found.covered:
                    fields = {"concurrency": concurrency, "rows": found.needed, "largest": found.largest}
                    yield Hit(view.place_of_role("capture-limit", server), fields, server.at)
                    break


class OffloadWithoutBudget(Rule):
    """KV cache is offloaded to host memory, and the label states no host memory.

    Why: the offload's size is a share of the machine's budget, which is then unknown.
    Mend: state `host-memory-mib` and `gpus-per-node` of the label in configs/labels.yaml.
    """

    code, title = "R-028", "offload without a budget"
    severity, waivable = Severity.ERROR, False
    message = "KV offload needs the host memory of {label}, which configs/labels.yaml does not state"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        if view.recipe.kv_offload is not None and view.dram is None:
            yield Hit(view.mark("kv-offload"), {"label": view.recipe.runner})


class KnownFailure(Rule):
    """The combination is known to fail.

    Why: it was tried and recorded, with its source, in configs/engine-features.yaml; every such point is lost.
    Mend: what the record says.
    """

    code, title = "R-029", "known failure"
    severity, waivable = Severity.ERROR, False
    message = "known failure {name}: {what} ({source})"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for server in view.servers:
            for item in failures(view.catalog.failures.values(), server.deployment):
                settings = [test.of for test in item.when if test.of.startswith(("env.", "serve."))]
                place = view.mark("ladder", server.rung)
                for of in settings:
                    kind, _, name = of.partition(".")
                    place = view.place_of(kind, name.split(".")[0], server)
                fields = {"name": item.name, "what": item.what, "source": item.source}
                yield Hit(place, fields, server.at, item.hint)


class FeatureRefused(Rule):
    """A feature is set on a deployment that cannot run it.

    Why: the engine refuses to start and names one reason; here are all of them.
    Mend: unset the feature for these points, or change the deployment.
    """

    code, title = "R-030", "feature set where it cannot run"
    severity, waivable = Severity.ERROR, False
    message = "{feature} cannot run here: {reasons}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        yield from _features(view, {State.REFUSED})


class FeatureOff(Rule):
    """A feature is set, and the engine silently leaves it off or changes its setting.

    Why: the row would claim what did not run.
    Mend: unset it, or give it what it needs.
    """

    code, title = "R-031", "feature silently off or clamped"
    severity, waivable = Severity.WARNING, True
    message = "{feature} is set and {state}: {reasons}"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        yield from _features(view, {State.OFF, State.CLAMPED})


def _features(view: RecipeView, states: set[State]) -> Iterable[Hit]:
    for server in view.servers:
        for state in server.engagement.features.values():
            if not state.asked or state.state not in states:
                continue
            feature = view.catalog.features[state.name]
            asked = next((test.of for test in feature.asked_by if test.of.startswith(("env.", "serve."))), "")
            kind, _, name = asked.partition(".")
            place = view.place_of(kind, name, server) if name else view.mark("ladder", server.rung)
            fields = {"feature": state.title, "state": str(state.state), "reasons": "; ".join(state.reasons)}
            yield Hit(place, fields, server.at)


class BudgetBelowSequences(Rule):
    """The token budget of a step is below the sequences that may run, or not above their drafts.

    Why: every running sequence needs at least one token of each step, and its drafts; the engine refuses a budget
    below the sequences.
    Mend: raise the budget, or cap the sequences.
    """

    code, title = "R-032", "token budget below the sequences"
    severity, waivable = Severity.ERROR, False
    message = "{budget} tokens a step are below {rows}: {sequences} sequences × (1 + {drafts} drafts)"

    def check(self, view: RecipeView) -> Iterable[Hit]:
        for server in view.servers:
            deployment = server.deployment
            tokens = max_num_batched_tokens(deployment)
            sequences = min(max_num_seqs(deployment), max(server.concurrencies))
            rows = sequences * (1 + deployment.drafts)
            if tokens < rows:
                fields = {"budget": tokens, "rows": rows, "sequences": sequences, "drafts": deployment.drafts}
                yield Hit(view.place_of_role("token-budget", server), fields, server.at, f"set it to {rows} or more")
