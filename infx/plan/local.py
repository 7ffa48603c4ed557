"""--unofficial: a plan whose rules are relaxed, and whose servers may run an unpublished build; never publishable."""

from __future__ import annotations

from infx.plan.fingerprint import point_fingerprint, server_fingerprint
from infx.schema.plan import Plan, Point
from infx.schema.recipe import KvOffload
from infx.schema.settings import ServerConfig


def unofficial(plan: Plan, image: str | None = None) -> Plan:
    """The plan, marked; with ``image`` every server runs it, arms included, under fingerprints of its own."""
    marked = plan.model_copy(update={"unofficial": True})
    if image is None:
        return marked
    servers = {old: _server(plan, server, image) for old, server in plan.servers.items()}
    return marked.model_copy(update={
        "servers": {server.id: server for server in servers.values()},
        "points": [_point(point, servers[point.server].id) for point in plan.points],
        "blocks": [block.model_copy(update={"server": servers[block.server].id}) for block in plan.blocks],
    })


def _server(plan: Plan, server: ServerConfig, image: str) -> ServerConfig:
    offload = plan.recipe_text.get("kv-offload")
    facts = None if offload is None else KvOffload.model_validate(offload)
    identity = server_fingerprint(
        engine=server.engine, image=image, hardware=plan.hardware, precision=plan.precision,
        parallel=server.parallel, argv=server.argv, env=server.env, kv_offload=facts)
    return server.model_copy(update={"image": image, "id": identity})


def _point(point: Point, server: str) -> Point:
    return point.model_copy(update={"server": server, "fingerprint": point_fingerprint(
        server=server, workload=point.workload, concurrency=point.concurrency)})
