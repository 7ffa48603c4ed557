"""Owns talking to the code host: requests with retries, pages, rate limits; artefacts verified by hash; one comment.

The token comes from the environment alone, goes to the API's own host alone and is in no message. What the host says is
returned as parsed JSON; what it means is for the pure modules of this room.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests

from infx.errors import BusyError, InputError, RemoteError, UsageError
from infx.schema.version import __version__

API = "https://api.github.com"
TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
"""Environment names of the token, first one first."""

ATTEMPTS = 5
"""How often a request is tried in all where the host fails or limits."""

SECONDARY_WAIT_S = 60.0
"""First wait where a limit comes without a time; doubled each time."""

LONGEST_WAIT_S = 900.0
"""A limit that ends later than this is an error that says when it ends."""

WORKFLOW_BOT = "github-actions[bot]"
TIMEOUT_S = (10.0, 60.0)
PAGE = 100
LARGEST_ARTEFACT = 2 << 30
LARGEST_ANSWER = 64 << 20


@dataclass(frozen=True)
class Artefact:
    """What a run kept: ``digest`` is ``sha256:…`` of its zip file as the host recorded it at upload."""

    id: int
    name: str
    size: int
    digest: str | None
    expired: bool


@dataclass
class Client:
    """One repository's API. ``now`` and ``sleep`` are the clock, ``waits`` the seconds waited so far, for people."""

    repository: str
    token: str | None = field(repr=False)
    api: str = API
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    waits: list[float] = field(default_factory=list)
    session: requests.Session = field(default_factory=requests.Session, repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], repository: str, **more: Any) -> Client:
        """The client of a workflow or a shell: GITHUB_TOKEN or GH_TOKEN, GITHUB_API_URL.

        Raises UsageError without a token, or for one that cannot be sent; its characters are never printed.
        """
        token = next((environment[name].strip() for name in TOKENS if environment.get(name, "").strip()), None)
        if token is None:
            raise UsageError("no token in the environment", allowed=" or ".join(TOKENS),
                             hint="in a workflow: env: {GITHUB_TOKEN: ${{ github.token }}}")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise UsageError("the token in the environment has characters that no token has",
                             hint="set it again, without line ends inside")
        api = environment.get("GITHUB_API_URL", "").rstrip("/") or API
        parts = urlsplit(api)
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1"):
            raise UsageError(f"{api}: a token is sent by https alone", where="GITHUB_API_URL")
        return cls(repository, token, api, **more)

    def get(self, path: str, **query: object) -> Any:
        """Parsed JSON of ``path``, below the repository unless it begins with ``/``."""
        return self._json(self._send("GET", self._url(path), params=query))

    def pages(self, path: str, key: str | None = None, **query: object) -> Iterator[dict[str, Any]]:
        """The items of every page; ``key`` names the list in answers that wrap it."""
        url, params = self._url(path), {"per_page": PAGE, **query}
        seen = set()
        while url:
            if url in seen:
                raise RemoteError("the code host's pages go in a circle", where=self._shown(url))
            seen.add(url)
            answer = self._send("GET", url, params=params)
            body = self._json(answer)
            found = body.get(key) if key is not None and isinstance(body, dict) else body
            if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
                raise RemoteError(f"the answer has no list{f' {key!r}' if key else ''}", where=self._shown(url),
                                  hint="is GITHUB_API_URL the API of the code host?")
            yield from found
            url, params = self._next(answer), {}

    def send(self, method: str, path: str, body: object) -> Any:
        """POST, PUT or PATCH ``body`` as JSON. Not repeated where the host may have acted on it already."""
        return self._json(self._send(method, self._url(path), json=body))

    def artefacts(self, run: int) -> list[Artefact]:
        """The artefacts of a workflow run."""
        return [Artefact(int(item["id"]), str(item["name"]), int(item.get("size_in_bytes") or 0), item.get("digest"),
                         bool(item.get("expired")))
                for item in self.pages(f"actions/runs/{run}/artifacts", "artifacts")]

    def download(self, artefact: Artefact) -> bytes:
        """The zip file of an artefact, after its sha256 was found to be the recorded one.

        Raises InputError for one that is expired, has no recorded digest or is not what was uploaded.
        """
        where = f"artefact {artefact.name}"
        if artefact.expired:
            raise InputError("the code host has deleted it: it is expired", where=where, hint="sweep again")
        if not (artefact.digest or "").startswith("sha256:"):
            raise InputError("the code host recorded no sha256 of it, so that nothing can be verified", where=where,
                             hint="upload it with actions/upload-artifact v4 or newer")
        for last in (False, True):
            answer = self._send("GET", self._url(f"actions/artifacts/{artefact.id}/zip"))
            try:
                data = self._body(answer, LARGEST_ARTEFACT)
            except RemoteError:
                if last:
                    raise
                continue
            found = f"sha256:{hashlib.sha256(data).hexdigest()}"
            if found == artefact.digest:
                return data
        raise InputError(f"its bytes are {found[:19]}…, but {str(artefact.digest)[:19]}… was uploaded: it is altered",
                         where=where, hint="sweep again; nothing that cannot be verified is used")

    def file(self, path: str, branch: str) -> tuple[bytes, str]:
        """A file's bytes on a branch, and the hash that `put_file` wants; empty where there is none."""
        try:
            item = self.get(f"contents/{path}", ref=branch)
        except RemoteError as error:
            if error.message.startswith("404"):
                return b"", ""
            raise
        if item.get("encoding") != "base64":  # beyond 1 MiB the host gives the content by its hash alone
            item = {**self.get(f"git/blobs/{item.get('sha')}"), "sha": item.get("sha")}
        return base64.b64decode(str(item.get("content", ""))), str(item.get("sha", ""))

    def put_file(self, path: str, data: bytes, message: str, branch: str, sha: str) -> None:
        """Commit new bytes of a file to a branch. RemoteError 409 where it is not ``sha`` any more."""
        body = {"message": message, "content": base64.b64encode(data).decode(), "branch": branch}
        self.send("PUT", f"contents/{path}", {**body, "sha": sha} if sha else body)

    def upsert_comment(self, number: int, marker: str, body: str) -> str:
        """Write the comment that begins with ``marker``: our own earlier one is replaced. Returns what was done.

        Only comments of the token's own user are ours, so that nobody can pose as us or have theirs replaced.
        """
        text = f"{marker}\n{body}"
        ours = self._ours(number, marker)
        if ours is not None:
            if ours.get("body") == text:
                return "unchanged"
            self.send("PATCH", f"issues/comments/{ours['id']}", {"body": text})
            return "replaced"
        try:
            self.send("POST", f"issues/{number}/comments", {"body": text})
        except RemoteError:
            if (written := self._ours(number, marker)) is None or written.get("body") != text:
                raise
        return "posted"

    def _ours(self, number: int, marker: str) -> dict[str, Any] | None:
        mine = [item for item in self.pages(f"issues/{number}/comments")
                if str(item.get("body") or "").startswith(marker)
                and (item.get("user") or {}).get("login") == self.login]
        return mine[0] if mine else None

    @cached_property
    def login(self) -> str:
        """Who writes with this token; a workflow's own token may not ask and writes as the host's bot."""
        try:
            return str(self.get("/user").get("login"))
        except RemoteError:
            return WORKFLOW_BOT

    def _url(self, path: str) -> str:
        return f"{self.api}{path}" if path.startswith("/") else f"{self.api}/repos/{self.repository}/{path}"

    def _send(self, method: str, url: str, **what: Any) -> requests.Response:
        """One request, tried again where that is safe and promises something."""
        wait = 1.0
        limited = SECONDARY_WAIT_S
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = self._once(method, url, what)
            except requests.RequestException as error:
                if method != "GET" or attempt == ATTEMPTS:
                    raise RemoteError(f"no answer: {type(error).__name__}", where=self._shown(url),
                                      hint="is the code host reachable from here?") from None
                wait = self._pause(wait)
                continue
            if answer.status_code < 400:
                return answer
            pause = self._limit(answer, limited)
            if pause is not None and attempt < ATTEMPTS:
                self._wait_for_limit(pause, url)
                limited *= 2
            elif answer.status_code >= 500 and method == "GET" and attempt < ATTEMPTS:
                wait = self._pause(wait)
            else:
                raise self._refused(answer, url, pause is not None)
        raise AssertionError("unreachable")

    def _once(self, method: str, url: str, what: dict[str, Any]) -> requests.Response:
        """One exchange; a redirect is followed by hand, so that the token never leaves the API's own host."""
        for _ in range(5):
            mine = urlsplit(url)[:2] == urlsplit(self.api)[:2]
            headers = {"User-Agent": f"infx/{__version__}", "Accept": "application/vnd.github+json",
                       "X-GitHub-Api-Version": "2022-11-28"} if mine else {"User-Agent": f"infx/{__version__}"}
            if mine and self.token:
                headers["Authorization"] = f"Bearer {self.token}"
            answer = self.session.request(method, url, headers=headers, timeout=TIMEOUT_S, allow_redirects=False,
                                          stream=True, auth=_no_netrc, **what)
            if not answer.is_redirect or method != "GET":
                return answer
            target = urljoin(url, answer.headers["Location"])
            answer.close()
            if urlsplit(target).scheme != "https" and urlsplit(self.api).scheme == "https":
                raise RemoteError("the code host redirects to a place without https", where=self._shown(url))
            url, what = target, {}
        raise RemoteError("too many redirects", where=self._shown(url))

    def _limit(self, answer: requests.Response, otherwise: float) -> float | None:
        """Seconds to wait where the answer is a rate limit, as its headers say; None where it is something else."""
        if answer.status_code not in (403, 429):
            return None
        after = answer.headers.get("Retry-After", "")
        if after.isdigit():
            return float(after)
        if answer.headers.get("x-ratelimit-remaining") == "0":
            reset = answer.headers.get("x-ratelimit-reset", "")
            return max(1.0, float(reset) - self.now() + 1.0) if reset.isdigit() else otherwise
        return otherwise if answer.status_code == 429 or "rate limit" in self._message(answer).lower() else None

    def _wait_for_limit(self, seconds: float, url: str) -> None:
        if sum(self.waits) + seconds > LONGEST_WAIT_S:
            raise BusyError(f"the code host limits requests for another {seconds:.0f} s", where=self._shown(url),
                            hint="run this again after that; nothing was changed by this request")
        self.waits.append(seconds)
        self.sleep(seconds)

    def _pause(self, seconds: float) -> float:
        self.waits.append(seconds)
        self.sleep(seconds)
        return seconds * 2

    def _refused(self, answer: requests.Response, url: str, limited: bool) -> RemoteError | BusyError:
        said, status = self._message(answer), answer.status_code
        if limited:
            return BusyError(f"the code host still limits requests after {ATTEMPTS} tries: {said}",
                             where=self._shown(url), hint="run this again later")
        hint = {401: "the token is expired, revoked or of another host: renew it",
                403: "the token may not do this: give it the permission, or ask somebody who has it",
                404: "it does not exist, or the token may not see it",
                410: "it is deleted"}.get(status, "see the code host's status page" if status >= 500 else "")
        return RemoteError(f"{status} {said}".strip(), where=self._shown(url), hint=hint)

    def _message(self, answer: requests.Response) -> str:
        try:
            body = self._json(answer)
        except RemoteError:
            return ""
        said = str(body.get("message", "")) if isinstance(body, dict) else ""
        return self._clean(said)[:300]

    def _json(self, answer: requests.Response) -> Any:
        cached = getattr(answer, "_infx_json", None)
        if cached is None:
            data = self._body(answer, LARGEST_ANSWER)
            try:
                cached = json.loads(data) if data else {}
            except (ValueError, RecursionError) as error:
                raise RemoteError("the answer is not JSON", where=self._shown(answer.url),
                                  hint="is GITHUB_API_URL the API of the code host?") from error
            answer._infx_json = cached  # type: ignore[attr-defined]
        return cached

    def _body(self, answer: requests.Response, largest: int) -> bytes:
        parts, size = [], 0
        try:
            for part in answer.iter_content(1 << 20):
                size += len(part)
                if size > largest:
                    raise RemoteError(f"the answer is larger than {largest} bytes", where=self._shown(answer.url))
                parts.append(part)
        except requests.RequestException as error:
            raise RemoteError(f"the answer was cut: {type(error).__name__}", where=self._shown(answer.url),
                              hint="try again") from None
        finally:
            answer.close()
        return b"".join(parts)

    def _next(self, answer: requests.Response) -> str:
        """The next page's address, which must be of the same host."""
        url = str(answer.links.get("next", {}).get("url", ""))
        if url and urlsplit(url)[:2] != urlsplit(self.api)[:2]:
            raise RemoteError("the next page is said to be on another host", where=self._shown(url))
        return url

    def _shown(self, url: str) -> str:
        """An address without its query: signed links carry secrets there."""
        return self._clean(url.partition("?")[0])

    def _clean(self, text: str) -> str:
        return text.replace(self.token, "***") if self.token else text


def _no_netrc(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Given as `auth`, so that requests takes no credentials from a .netrc file."""
    return request
