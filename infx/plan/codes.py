"""The register of what checking a recipe against itself and the catalog can find."""

from __future__ import annotations

from infx.findings import Finding, Mark, Severity
from infx.sources.codes import Code

_E, _W = Severity.ERROR, Severity.WARNING

CODES: dict[str, Code] = {
    "P-001": Code(_E, "unknown model", "`model` is a key of configs/models.yaml; add the model there, with sources."),
    "P-002": Code(_E, "unknown hardware", "`hardware` is a key of configs/hardware.yaml."),
    "P-003": Code(_E, "unknown runner label", "`runner` is a label that configs/labels.yaml lists."),
    "P-004": Code(_E, "unknown engine", "`engine` names an engine module."),
    "P-005": Code(_E, "serve key with another home", "The runner, a rung or `speculative` sets this argument; a second "
                  "value in `serve` could contradict it."),
    "P-006": Code(_E, "override matches no point", "Every override must reach a point of the ladder: one that reaches "
                  "none is a typing error or a leftover."),
    "P-007": Code(_E, "point twice in the ladder", "Two rungs of one layout name the same concurrency."),
    "P-008": Code(_E, "arm changes nothing", "An arm must differ from the base in at least one point."),
    "P-009": Code(_E, "no golden acceptance length", "Agentic throughput runs accept drafts synthetically at the "
                  "golden curve of this model, thinking mode, method, draft length and sampling; there is none."),
    "P-010": Code(_E, "null where nothing is to remove", "null removes a key in an override or arm; here is none."),
    "P-011": Code(_E, "image is not immutable", "Pin by digest, release tag or nightly tag with its full commit; a "
                  "package as pypi:NAME==VERSION; placeholder:WHY while no image exists."),
    "P-012": Code(_E, "recipe key taken", "The key of a recipe is its file's stem, unique below recipes/."),
    "P-013": Code(_E, "longer than the context", "Prompt and output tokens together must fit max-model-len and the "
                  "model's own limit."),
    "P-014": Code(_E, "hardware differs from the label's", "The runner label has other hardware than named."),
    "P-015": Code(_E, "unknown trace corpus", "`traces` is a key of configs/traces.yaml."),
}


def finding(where: Mark, code: str, message: str, hint: str = "") -> Finding:
    """A Finding with the severity of the register."""
    return Finding(where, code, CODES[code].severity, message, hint)
