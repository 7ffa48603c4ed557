"""The code host's module against a fake host over real HTTP: pages, limits, troubles, tokens, artefacts, comments."""

from __future__ import annotations

import io
import zipfile

import pytest

from infx.ci.github import Client
from infx.errors import BusyError, InputError, RemoteError, UsageError
from tests.fakes.github import TOKEN, CodeHost, Trouble

NOW = 1_796_119_200.0


@pytest.fixture
def host():
    made = CodeHost()
    yield made
    made.close()


@pytest.fixture
def client(host):
    made = Client("org/name", TOKEN, host.api, sleep=lambda seconds: None, now=lambda: NOW)
    yield made
    made.session.close()


def limit(**more):
    return Trouble("/pulls/7", 403, {"x-ratelimit-remaining": "0", **more}, '{"message": "API rate limit exceeded"}')


def test_every_page_is_read_once_and_in_order(host, client):
    host.page = 3
    host.pull(7, "a" * 40)
    for index in range(8):
        host.comment(7, "somebody", f"number {index}")
    assert [item["body"] for item in client.pages("issues/7/comments")] == [f"number {index}" for index in range(8)]
    assert [path.partition("?")[2] for _, path, _ in host.requests] == [
        "per_page=100", "per_page=100&page=2", "per_page=100&page=3"]


def test_wrapped_lists_are_read_by_their_key_and_other_answers_are_named(host, client):
    host.run(5, "a" * 40)
    assert [run["id"] for run in client.pages("actions/runs", "workflow_runs", head_sha="a" * 40)] == [5]
    assert list(client.pages("actions/runs", "workflow_runs", head_sha="c" * 40)) == []
    with pytest.raises(RemoteError, match="has no list 'jobs'"):
        list(client.pages("actions/runs", "jobs"))
    host.troubles.append(Trouble("runs", 200, {}, "<html>a proxy's page</html>"))
    with pytest.raises(RemoteError, match="not JSON"):
        client.get("actions/runs")


def test_a_next_page_elsewhere_is_not_followed(host, client):
    host.troubles.append(Trouble("comments", 200, {"Link": f'<{host.storage}/steal>; rel="next"'}, "[]"))
    with pytest.raises(RemoteError, match="another host"):
        list(client.pages("issues/7/comments"))
    assert host.storage_headers == []


def test_pages_in_a_circle_end(host, client):
    host.troubles.append(Trouble("comments", 200, {
        "Link": f'<{host.api}/repos/org/name/issues/7/comments?again>; rel="next"'}, "[]", times=9))
    with pytest.raises(RemoteError, match="circle"):
        list(client.pages("issues/7/comments"))


@pytest.mark.parametrize(("trouble", "waited"), [
    (limit(**{"x-ratelimit-reset": str(int(NOW) + 40)}), [41.0]),
    (limit(**{"Retry-After": "7", "x-ratelimit-reset": str(int(NOW) + 40)}), [7.0]),
    (Trouble("/pulls/7", 429, {"Retry-After": "3"}), [3.0]),
    (Trouble("/pulls/7", 429, {}, times=2), [60.0, 120.0]),
    (Trouble("/pulls/7", 403, {}, '{"message": "You have exceeded a secondary rate limit."}'), [60.0]),
    (limit(**{"x-ratelimit-reset": str(int(NOW) - 9)}), [1.0]),
    (Trouble("/pulls/7", 502, {}, "bad gateway", times=3), [1.0, 2.0, 4.0]),
])
def test_limits_and_failures_are_waited_out_as_the_headers_say(host, client, trouble, waited):
    host.pull(7, "a" * 40)
    host.troubles.append(trouble)
    assert client.get("pulls/7")["number"] == 7
    assert client.waits == waited


def test_a_limit_that_ends_too_late_says_when(host, client):
    host.troubles.append(limit(**{"x-ratelimit-reset": str(int(NOW) + 3000)}))
    with pytest.raises(BusyError, match="for another 3001 s"):
        client.get("pulls/7")
    assert client.waits == [] and len(host.requests) == 1


def test_a_limit_that_never_ends_is_given_up(host, client):
    host.troubles.append(Trouble("/pulls/7", 429, {"Retry-After": "1"}, times=99))
    with pytest.raises(BusyError, match="after 5 tries"):
        client.get("pulls/7")
    assert len(host.requests) == 5


@pytest.mark.parametrize(("status", "advice"), [
    (401, "expired, revoked"), (403, "may not do this"), (404, "may not see it"), (410, "deleted")])
def test_refusals_are_not_tried_again_and_say_what_to_do(host, client, status, advice):
    host.troubles.append(Trouble("/pulls/7", status, {}, '{"message": "Resource not accessible by integration"}'))
    with pytest.raises(RemoteError) as caught:
        client.get("pulls/7")
    assert advice in caught.value.hint and f"{status} Resource not accessible" in caught.value.message
    assert len(host.requests) == 1 and client.waits == []


def test_an_expired_token_is_named_and_never_shown(host):
    old = Client("org/name", "ghs_expired0secret", host.api, sleep=lambda seconds: None)
    host.troubles.append(Trouble("/pulls/7", 401, {}, '{"message": "Bad credentials: ghs_expired0secret"}'))
    with pytest.raises(RemoteError) as caught:
        old.get("pulls/7", note="ghs_expired0secret")
    assert "401 Bad credentials: ***" in str(caught.value)
    assert "ghs_expired0secret" not in f"{caught.value} {old!r} {caught.value.__cause__} {caught.value.__context__}"
    old.session.close()


def test_tokens_come_from_the_environment_and_go_out_by_https_alone():
    def made(**environment):
        return Client.from_environment(environment, "org/name")

    assert made(GITHUB_TOKEN="one", GH_TOKEN="two").token == "one" and made(GH_TOKEN=" two\n").token == "two"
    with pytest.raises(UsageError, match="no token"):
        made(GITHUB_TOKEN=" ")
    with pytest.raises(UsageError) as caught:
        made(GITHUB_TOKEN="xyzzy\nplugh")
    assert "xyzzy" not in str(caught.value) and "plugh" not in str(caught.value)
    with pytest.raises(UsageError, match="https alone"):
        made(GITHUB_TOKEN="one", GITHUB_API_URL="http://host.example/api/v3")
    assert made(GITHUB_TOKEN="one", GITHUB_API_URL="https://host.example/api/v3/").api == "https://host.example/api/v3"


def packed(**files: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def test_an_artefact_is_downloaded_verified_and_the_token_stays_home(host, client):
    host.run(5, "a" * 40)
    data = packed(one="1")
    host.artefact(5, "run-x", data)
    [artefact] = client.artefacts(5)
    assert (artefact.name, artefact.size) == ("run-x", len(data)) and client.download(artefact) == data
    [sent] = host.storage_headers
    assert "Authorization" not in sent and TOKEN not in str(sent)
    assert all(mine for _, _, mine in host.requests)


def test_an_altered_artefact_is_refused(host, client):
    host.run(5, "a" * 40)
    made = host.artefact(5, "run-x", packed(one="1"))
    host.zips[made["id"]] = packed(one="2")
    with pytest.raises(InputError, match="is altered"):
        client.download(client.artefacts(5)[0])


@pytest.mark.parametrize(("change", "said"), [
    ({"expired": True}, "expired"), ({"digest": None}, "recorded no sha256"),
    ({"digest": "md5:0"}, "recorded no sha256")])
def test_what_cannot_be_verified_is_not_downloaded(host, client, change, said):
    host.run(5, "a" * 40)
    host.artefact(5, "run-x", packed(one="1")).update(change)
    with pytest.raises(InputError, match=said):
        client.download(client.artefacts(5)[0])
    assert host.storage_headers == []


def test_a_signed_address_is_never_shown(host, client):
    host.troubles.append(Trouble("/zip", 302, {"Location": "http://127.0.0.1:9/x.zip?sig=secret-signature"}, times=9))
    host.run(5, "a" * 40)
    host.artefact(5, "run-x", b"")
    with pytest.raises(RemoteError) as caught:
        client.download(client.artefacts(5)[0])
    assert "secret-signature" not in str(caught.value)


MARKER = "<!-- infx:test -->"


def test_the_comment_is_posted_replaced_and_left_alone_when_equal(host, client):
    host.pull(7, "a" * 40)
    host.comment(7, "outsider", f"{MARKER}\nI pose as you", association="NONE")
    assert [client.upsert_comment(7, MARKER, text) for text in ("one", "one", "two")] == [
        "posted", "unchanged", "replaced"]
    assert [item["body"] for item in host.comments[7]] == [f"{MARKER}\nI pose as you", f"{MARKER}\ntwo"]


def test_a_post_whose_answer_is_lost_is_not_repeated(host, client):
    host.pull(7, "a" * 40)
    host.troubles.append(Trouble("issues/7/comments", 502, method="POST"))
    with pytest.raises(RemoteError, match="502"):
        client.upsert_comment(7, MARKER, "one")
    assert host.comments[7] == [] and [method for method, _, _ in host.requests].count("POST") == 1
    assert client.upsert_comment(7, MARKER, "one") == "posted"


def test_a_host_that_is_not_there_is_named():
    gone = CodeHost()
    gone.close()
    client = Client("org/name", TOKEN, gone.api, sleep=lambda seconds: None)
    with pytest.raises(RemoteError, match="no answer: ConnectionError"):
        client.get("pulls/7")
    assert client.waits == [1.0, 2.0, 4.0, 8.0]
    client.session.close()
