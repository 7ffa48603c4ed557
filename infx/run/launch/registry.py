"""The digest that a tag has in its registry, by the OCI distribution API: a HEAD, with an anonymous token if asked."""

from __future__ import annotations

import re

import requests

from infx.errors import RemoteError

DEFAULT = "registry-1.docker.io"
_ACCEPT = ", ".join(f"application/vnd.{kind}+json" for kind in (
    "oci.image.index.v1", "docker.distribution.manifest.list.v2", "oci.image.manifest.v1",
    "docker.distribution.manifest.v2"))
_ANSWER_S = 30.0


def split_registry(repository: str) -> tuple[str, str]:
    """`host:port/name` → (host:port, name); a name without a host is the default registry's."""
    host, slash, name = repository.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return host, name
    return DEFAULT, repository if slash else f"library/{repository}"


def digest_of(repository: str, tag: str, *, scheme: str = "https") -> str:
    """The digest of ``repository:tag``. Raises RemoteError when the registry does not say."""
    host, name = split_registry(repository)
    url = f"{scheme}://{host}/v2/{name}/manifests/{tag}"
    try:
        reply = requests.head(url, headers={"Accept": _ACCEPT}, timeout=_ANSWER_S, allow_redirects=True)
        if reply.status_code == 401:
            token = _token(reply.headers.get("WWW-Authenticate", ""))
            headers = {"Accept": _ACCEPT, "Authorization": f"Bearer {token}"}
            reply = requests.head(url, headers=headers, timeout=_ANSWER_S, allow_redirects=True)
    except requests.RequestException as error:
        raise RemoteError(f"the registry does not answer: {type(error).__name__}", where=url,
                          hint="pin the digest in the recipe (NAME@sha256:…), then no registry is asked") from error
    digest = reply.headers.get("Docker-Content-Digest", "")
    if reply.status_code != 200 or not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise RemoteError(f"the registry names no digest (status {reply.status_code})", where=url,
                          hint="check the reference, or pin the digest in the recipe (NAME@sha256:…)")
    return digest


def _token(challenge: str) -> str:
    """An anonymous token for what a 401 asks: `Bearer realm="…",service="…",scope="…"`."""
    facts = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    if not challenge.startswith("Bearer ") or not facts.get("realm", "").startswith("https://"):
        return ""
    asked = {name: facts[name] for name in ("service", "scope") if name in facts}
    reply = requests.get(facts["realm"], params=asked, timeout=_ANSWER_S)
    body = reply.json() if reply.status_code == 200 else {}
    return str(body.get("token") or body.get("access_token") or "")
