"""A code host over real HTTP: one repository's pull requests, comments, workflow runs and artefacts, and its troubles.

Payloads have the shapes of the public API (names and nesting of the fields that infx reads, and some that it does not).
Signed downloads are served by a second server under another host name, which records the headers that it was sent.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import threading
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_fake0token0of0the0tests"
OWNER, NAME = "org", "name"


@dataclass
class Trouble:
    """The next ``times`` requests whose path contains ``part`` get this answer instead."""

    part: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = '{"message": "trouble"}'
    times: int = 1
    method: str = ""


def zipped(folder: Path) -> bytes:
    """A zip file of a folder's files, as an uploaded artefact is."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return stream.getvalue()


class CodeHost:
    """State and servers. ``requests`` lists what was asked: (method, path with query, whether the token was sent)."""

    def __init__(self) -> None:
        self.pulls: dict[int, dict[str, Any]] = {}
        self.commits: dict[int, list[str]] = {}
        self.files: dict[int, list[str]] = {}
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.permissions: dict[str, str] = {}
        self.teams: dict[str, list[str]] = {}
        self.runs: list[dict[str, Any]] = []
        self.jobs: dict[int, list[dict[str, Any]]] = {}
        self.artefacts: dict[int, list[dict[str, Any]]] = {}
        self.zips: dict[int, bytes] = {}
        self.statuses: dict[str, list[dict[str, Any]]] = {}
        self.merged: dict[str, list[int]] = {}
        self.contents: dict[str, bytes] = {}
        self.pushed: list[dict[str, Any]] = []
        self.troubles: list[Trouble] = []
        self.requests: list[tuple[str, str, bool]] = []
        self.storage_headers: list[dict[str, str]] = []
        self.page = 100
        self.ids = 1000
        self._servers: list[ThreadingHTTPServer] = []
        self.api = self._serve(self._answer, "127.0.0.1")
        self.storage = self._serve(self._stored, "localhost")

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    # --- what a test puts in -------------------------------------------------------------------------------------

    def pull(self, number: int, head: str, *, labels: tuple[str, ...] = (), base: str = "main", author: str = "author",
             commits: list[str] | None = None, files: list[str] | None = None, fork: bool = False) -> dict[str, Any]:
        repository = {"id": 1, "name": NAME, "full_name": f"{OWNER}/{NAME}", "owner": {"login": OWNER}}
        other = {**repository, "full_name": f"stranger/{NAME}"} if fork else repository
        self.commits[number] = commits or [head]
        self.files[number] = files or []
        self.comments.setdefault(number, [])
        self.pulls[number] = {
            "number": number, "state": "open", "merged_at": None, "title": "A change", "user": self._user(author),
            "html_url": f"https://example.org/{OWNER}/{NAME}/pull/{number}", "merge_commit_sha": None,
            "labels": [{"id": 1, "name": label, "color": "ededed"} for label in labels],
            "head": {"ref": "branch", "sha": head, "repo": other}, "author_association": "CONTRIBUTOR",
            "base": {"ref": base, "sha": "b" * 40, "repo": repository}}
        return self.pulls[number]

    def comment(self, number: int, author: str, body: str, *, association: str = "MEMBER", edited: bool = False,
                at: str | None = None) -> dict[str, Any]:
        self.ids += 1
        made = at or f"2026-12-01T10:{self.ids % 60:02d}:00Z"
        item = {"id": self.ids, "body": body, "user": self._user(author), "author_association": association,
                "created_at": made, "updated_at": "2026-12-01T23:00:00Z" if edited else made,
                "html_url": f"https://example.org/{OWNER}/{NAME}/pull/{number}#issuecomment-{self.ids}"}
        self.comments.setdefault(number, []).append(item)
        return item

    def run(self, run: int, head: str, *, name: str = "sweep", conclusion: str | None = "success",
            event: str = "pull_request", jobs: tuple[tuple[str, str], ...] = (("block / measure", "success"),),
            path: str = ".github/workflows/sweep.yml", repository: str = f"{OWNER}/{NAME}") -> dict[str, Any]:
        item = {"id": run, "name": name, "path": path, "event": event, "head_sha": head, "head_branch": "branch",
                "status": "completed" if conclusion else "in_progress", "conclusion": conclusion, "run_attempt": 1,
                "run_number": run % 1000, "head_repository": {"full_name": repository},
                "created_at": "2026-12-01T09:00:00Z", "html_url": f"https://example.org/{OWNER}/{NAME}/runs/{run}"}
        self.runs.append(item)
        self.jobs[run] = [{"id": run * 100 + at, "run_id": run, "name": job, "status": "completed", "conclusion": end,
                           "steps": []} for at, (job, end) in enumerate(jobs)]
        self.artefacts.setdefault(run, [])
        return item

    def artefact(self, run: int, name: str, data: bytes | Path) -> dict[str, Any]:
        self.ids += 1
        content = zipped(data) if isinstance(data, Path) else data
        item = {"id": self.ids, "name": name, "size_in_bytes": len(content), "expired": False,
                "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "workflow_run": {"id": run},
                "archive_download_url": f"{self.api}/repos/{OWNER}/{NAME}/actions/artifacts/{self.ids}/zip"}
        self.artefacts.setdefault(run, []).append(item)
        self.zips[self.ids] = content
        return item

    @staticmethod
    def _user(login: str) -> dict[str, Any]:
        return {"login": login, "id": 1, "type": "Bot" if login.endswith("[bot]") else "User", "site_admin": False}

    # --- what the host answers ------------------------------------------------------------------------------------

    def _answer(self, request: BaseHTTPRequestHandler, method: str, body: Any) -> None:
        parts = urlsplit(request.path)
        mine = request.headers.get("Authorization") == f"Bearer {TOKEN}"
        self.requests.append((method, request.path, mine))
        for trouble in self.troubles:
            if trouble.times and trouble.part in request.path and trouble.method in ("", method):
                trouble.times -= 1
                return self._reply(request, trouble.status, trouble.body.encode(), trouble.headers)
        if not mine:
            return self._json(request, 401, {"message": "Bad credentials", "status": "401"})
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        for pattern, handler in self._routes():
            wanted, _, path = pattern.partition(" ")
            match = re.fullmatch(path, parts.path)
            if wanted == method and match:
                return handler(request, match, query, body)
        return self._json(request, 404, {"message": "Not Found", "status": "404"})

    def _routes(self) -> list[tuple[str, Callable[..., None]]]:
        here = f"/repos/{OWNER}/{NAME}"
        return [
            (f"GET {here}/pulls/(\\d+)", lambda r, m, q, b: self._one(r, self.pulls.get(int(m[1])))),
            (f"GET {here}/pulls/(\\d+)/commits",
             lambda r, m, q, b: self._list(r, q, [{"sha": sha} for sha in self.commits[int(m[1])]])),
            (f"GET {here}/pulls/(\\d+)/files",
             lambda r, m, q, b: self._list(r, q, [{"filename": name, "status": "modified"}
                                                  for name in self.files[int(m[1])]])),
            (f"GET {here}/issues/(\\d+)/comments",
             lambda r, m, q, b: self._list(r, q, self.comments.get(int(m[1]), []))),
            (f"POST {here}/issues/(\\d+)/comments", self._post_comment),
            (f"PATCH {here}/issues/comments/(\\d+)", self._patch_comment),
            (f"GET {here}/collaborators/([^/]+)/permission",
             lambda r, m, q, b: self._json(r, 200, {"permission": self.permissions.get(m[1], "read"),
                                                    "user": self._user(m[1])})),
            ("GET /orgs/([^/]+)/teams/([^/]+)/memberships/([^/]+)", self._membership),
            (f"GET {here}/actions/runs", self._runs),
            (f"GET {here}/actions/runs/(\\d+)",
             lambda r, m, q, b: self._one(r, next((run for run in self.runs if run["id"] == int(m[1])), None))),
            (f"GET {here}/actions/runs/(\\d+)/jobs",
             lambda r, m, q, b: self._list(r, q, self.jobs.get(int(m[1]), []), "jobs")),
            (f"GET {here}/actions/runs/(\\d+)/artifacts",
             lambda r, m, q, b: self._list(r, q, self.artefacts.get(int(m[1]), []), "artifacts")),
            (f"GET {here}/actions/artifacts/(\\d+)/zip", self._redirect),
            (f"POST {here}/statuses/([0-9a-f]+)", self._status),
            (f"GET {here}/commits/([0-9a-f]+)/pulls",
             lambda r, m, q, b: self._list(r, q, [self.pulls[n] for n in self.merged.get(m[1], [])])),
            (f"GET {here}/contents/(.+)", self._contents),
            (f"PUT {here}/contents/(.+)", self._put_contents),
            (f"GET {here}/git/blobs/([0-9a-f]+)", self._blob),
            ("GET /user", lambda r, m, q, b: self._json(r, 403, {"message": "Resource not accessible by integration"})),
        ]

    def _one(self, request: BaseHTTPRequestHandler, item: dict[str, Any] | None) -> None:
        self._json(request, 200 if item else 404, item or {"message": "Not Found", "status": "404"})

    def _list(self, request: BaseHTTPRequestHandler, query: dict[str, str], items: list[Any], key: str = "") -> None:
        size = min(int(query.get("per_page", 30)), self.page)
        at = int(query.get("page", 1))
        part = items[(at - 1) * size:at * size]
        headers = {}
        if at * size < len(items):
            path = urlsplit(request.path).path
            rest = "&".join(f"{name}={value}" for name, value in query.items() if name != "page")
            headers["Link"] = f'<{self.api}{path}?{rest}&page={at + 1}>; rel="next"'
        self._json(request, 200, {"total_count": len(items), key: part} if key else part, headers)

    def _post_comment(self, request, match, query, body) -> None:
        self._json(request, 201, self.comment(int(match[1]), "github-actions[bot]", body["body"], association="NONE"))

    def _patch_comment(self, request, match, query, body) -> None:
        for items in self.comments.values():
            for item in items:
                if item["id"] == int(match[1]):
                    item["body"] = body["body"]
                    return self._json(request, 200, item)
        return self._one(request, None)

    def _membership(self, request, match, query, body) -> None:
        member = match[3] in self.teams.get(f"{match[1]}/{match[2]}", [])
        self._one(request, {"state": "active", "role": "member"} if member else None)

    def _runs(self, request, match, query, body) -> None:
        found = [run for run in self.runs if query.get("head_sha") in (None, run["head_sha"])]
        self._list(request, query, found, "workflow_runs")

    def _redirect(self, request, match, query, body) -> None:
        target = f"{self.storage}/signed/{match[1]}.zip?sig=secret-signature"
        self._reply(request, 302, b"", {"Location": target})

    def _status(self, request, match, query, body) -> None:
        self.statuses.setdefault(match[1], []).append(body)
        self._json(request, 201, {"id": 1, **body})

    def _contents(self, request, match, query, body) -> None:
        data = self.contents.get(match[1])
        small = data is not None and len(data) <= 1 << 20
        self._one(request, None if data is None else {
            "type": "file", "path": match[1], "sha": hashlib.sha1(data).hexdigest(), "size": len(data),
            "encoding": "base64" if small else "none", "content": base64.encodebytes(data).decode() if small else ""})

    def _blob(self, request, match, query, body) -> None:
        data = next((data for data in self.contents.values() if hashlib.sha1(data).hexdigest() == match[1]), None)
        self._one(request, None if data is None else {"sha": match[1], "encoding": "base64",
                                                      "content": base64.encodebytes(data).decode()})

    def _put_contents(self, request, match, query, body) -> None:
        data = self.contents.get(match[1])
        if data is not None and body.get("sha") != hashlib.sha1(data).hexdigest():
            return self._json(request, 409, {"message": f"{match[1]} does not match {body.get('sha')}"})
        self.contents[match[1]] = base64.b64decode(body["content"])
        self.pushed.append(body)
        return self._json(request, 200, {"commit": {"sha": "c" * 40}})

    def _stored(self, request: BaseHTTPRequestHandler, method: str, body: Any) -> None:
        self.storage_headers.append(dict(request.headers))
        match = re.fullmatch(r"/signed/(\d+)\.zip", urlsplit(request.path).path)
        assert match is not None
        self._reply(request, 200, self.zips[int(match[1])], {"Content-Type": "application/zip"})

    # --- HTTP -----------------------------------------------------------------------------------------------------

    def _json(self, request: BaseHTTPRequestHandler, status: int, value: Any, headers: dict[str, str] | None = None
              ) -> None:
        data = json.dumps(value).encode()
        self._reply(request, status, data, {"Content-Type": "application/json", **(headers or {})})

    @staticmethod
    def _reply(request: BaseHTTPRequestHandler, status: int, data: bytes, headers: dict[str, str]) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def _serve(self, answer: Callable[[BaseHTTPRequestHandler, str, Any], None], host: str) -> str:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _take(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                data = self.rfile.read(size)
                answer(self, self.command, json.loads(data) if data else None)

            do_GET = do_POST = do_PATCH = do_PUT = _take

            def log_message(self, *words: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, address: object) -> None:
                """A client that hangs up is its own business."""

        server = Server(("127.0.0.1", 0), Handler)
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://{host}:{server.server_port}"
