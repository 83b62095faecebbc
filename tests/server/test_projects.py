"""Documents of projects: the routes, and the client that calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
import requests
from tests.support.live_server import Answer, LiveServer, StartServer

_DOC = "Ticket: Login. Users were logged out. The clock of the server was wrong."


def test_documents_are_indexed_asked_for_and_deleted(server: LiveServer) -> None:
    project = str(uuid4())
    assert _call(server, project, "index", {"docs": [_DOC]}).json == {"message": "Indexed", "count": 1}
    answer = _call(server, project, "retrieve", {"queries": ["Why was the clock wrong?", "Football?"]})
    first, second = answer.json["results"]
    assert (first["question"], first["docs"]) == ("Why was the clock wrong?", [_DOC])
    assert len(first["doc_scores"]) == 1
    assert second["docs"] == []
    assert _call(server, project, "delete", {"docs": [_DOC, "never there"]}).json == {"message": "Deleted", "count": 1}
    assert _call(server, project, "retrieve", {"queries": ["clock"]}).json["results"][0]["docs"] == []
    assert _call(server, project, "index", {"docs": [_DOC]}).status == 200


def test_a_project_that_holds_nothing_answers_with_nothing(server: LiveServer) -> None:
    answer = _call(server, str(uuid4()), "retrieve", {"queries": ["clock"], "num_to_retrieve": None})
    assert (answer.status, answer.json["results"][0]["docs"]) == (200, [])


@pytest.mark.parametrize(
    ("verb", "body", "error"),
    [
        ("index", {}, "docs (list of strings) is required"),
        ("index", {"docs": "one"}, "docs (list of strings) is required"),
        ("index", {"docs": [1]}, "docs (list of strings) is required"),
        ("retrieve", {"docs": ["x"]}, "queries (list of strings) is required"),
        ("delete", {"docs": []}, "docs (list of strings) is required"),
        ("index", ["x"], "the body must be an object"),
    ],
)
def test_what_is_missing_is_said(server: LiveServer, verb: str, body: Any, error: str) -> None:
    answer = _call(server, "p1", verb, body)
    assert (answer.status, answer.json) == (400, {"error": error})


def test_bad_values_are_400(server: LiveServer) -> None:
    for body in ({"docs": [" "]}, {"queries": ["x"], "num_to_retrieve": 0}, {"queries": ["x"], "num_to_retrieve": "5"}):
        verb = "index" if "docs" in body else "retrieve"
        assert _call(server, "p1", verb, body).status == 400
    assert server.call("POST", "/api/projects/p1/memory/index", b"{", key=server.owner).status == 400


def test_only_projects_within_reach_are_found(server: LiveServer) -> None:
    assert _call(server, "p1", "index", {"docs": [_DOC]}).status == 200
    assert _call(server, "p1", "index", {"docs": ["Secret of acme."]}, _key(server, "acme")).status == 200
    one = _key(server, "acme", scopes="project=p1")
    assert _call(server, "p1", "retrieve", {"queries": ["clock"]}, one).json["results"][0]["docs"] == []
    for project in ("p2", "%20"):
        answer = _call(server, project, "retrieve", {"queries": ["clock"]}, one)
        assert (answer.status, answer.json) == (404, {"error": "Project not found"})
    assert _call(server, "p1", "delete", {"docs": [_DOC]}, _key(server, "acme", rights=["read"])).status == 403


@pytest.mark.parametrize(
    ("method", "path", "key", "status"),
    [
        ("POST", "/api/projects/p1/memory/index", "wrong", 401),
        ("GET", "/api/projects/p1/memory/index", "", 405),
        ("POST", "/api/projects/p1/memory/upsert", "", 404),
        ("POST", "/api/projects/%FF/memory/index", "", 400),
    ],
)
def test_what_fails_before_the_path_is_reached_has_an_error_too(
    server: LiveServer, method: str, path: str, key: str, status: int
) -> None:
    answer = server.call(method, path, {"docs": [_DOC]} if method == "POST" else None, key=key or server.owner)
    assert (answer.status, answer.json["status"]) == (status, status)
    assert answer.json["error"] == answer.json["detail"] != ""
    assert "error" not in server.call(method, "/v1/nowhere", key=key or server.owner).json


def test_a_body_that_is_too_large_has_an_error_too(start_server: StartServer) -> None:
    server = start_server(max_body_bytes=1_000)
    answer = _call(server, "p1", "index", {"docs": ["x" * 2_000]})
    assert (answer.status, answer.json["error"]) == (413, answer.json["detail"])


@pytest.mark.parametrize("change", [str.upper, str.title, str.lower])
def test_a_uuid_is_one_project_in_all_letters(server: LiveServer, change: Callable[[str], str]) -> None:
    project = "7f9c24e8-3b12-4fef-91e0-56a2d5a0a3c1"
    key = _key(server, "acme", scopes=f"project={project}")
    assert _call(server, change(project), "index", {"docs": [_DOC]}, key).status == 200
    assert _call(server, project, "retrieve", {"queries": ["clock"]}, key).json["results"][0]["docs"] == [_DOC]
    assert _call(server, change(project), "delete", {"docs": [_DOC]}, key).json["count"] == 1


def _key(server: LiveServer, tenant: str, **bounds: Any) -> str:
    return server.services.keys.create("test", tenant=tenant, **bounds)[1]


def _call(server: LiveServer, project: str, verb: str, body: Any, key: str = "") -> Answer:
    return server.call("POST", f"/api/projects/{project}/memory/{verb}", body, key=key or server.owner)


START = "What has been done in this project? Completed work and summaries."
CLOCK = "Ticket: Login broken. Users are logged out. The clock of the auth server ran behind; chrony keeps it now."
COUPON = "Ticket: Coupons. They add up wrongly. The discount is rounded once, at the end, in cart.py."


class Client:
    """Asks as that host does: one base address, a token if there is one, and nothing that fails is told."""

    def __init__(self, base_url: str, token: str = "") -> None:
        self.base_url = base_url.rstrip("/")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.answers: list[requests.Response] = []

    def retrieve(self, project: UUID, queries: Sequence[str], count: int | None = None) -> list[dict[str, Any]]:
        body: dict[str, Any] = {"queries": list(queries)} | ({} if count is None else {"num_to_retrieve": count})
        try:
            answer = self._post(project, "retrieve", body)
            answer.raise_for_status()
            return (answer.json() or {}).get("results") or []
        except Exception:
            return []

    def index(self, project: UUID, docs: Sequence[str]) -> None:
        self._post(project, "index", {"docs": list(docs)})

    def delete(self, project: UUID, docs: Sequence[str]) -> None:
        self._post(project, "delete", {"docs": list(docs)})

    def passages(self, project: UUID, queries: Sequence[str]) -> list[str]:
        """What its director is shown: every document once."""
        results = self.retrieve(project, queries, 5)
        return list(dict.fromkeys(doc for result in results for doc in result["docs"]))

    def _post(self, project: UUID, verb: str, body: dict[str, Any]) -> requests.Response:
        url = f"{self.base_url}/api/projects/{project}/memory/{verb}"
        self.answers.append(requests.post(url, json=body, headers=self.headers, timeout=60))
        return self.answers[-1]


@pytest.fixture
def server(start_server: StartServer) -> LiveServer:
    return start_server(embedder="static")


@pytest.fixture
def project() -> UUID:
    return uuid4()


def client_of(server: LiveServer, **bounds: Any) -> Client:
    token = server.services.keys.create("worker", **{"rights": ["read", "write", "forget"], **bounds})[1]
    return Client(f"{server.origin}/", token)


def test_a_ticket_finds_what_an_earlier_one_left(server: LiveServer, project: UUID) -> None:
    client, other = client_of(server), client_of(server)
    client.index(project, ["Project: Shop. A web shop with a login and a cart."])
    assert client.passages(project, ["Login broken. Users are logged out.", START])
    client.index(project, [CLOCK])
    client.index(project, [COUPON])
    turn = "Look why users lose their session.\nThe auth server says the token is not valid yet: clock skew"
    assert client.passages(project, [turn])[0] == CLOCK
    assert other.passages(project, ["Coupons add up wrongly. The cart shows another sum."])[0] == COUPON
    assert [answer.status_code for answer in (*client.answers, *other.answers)] == [200] * 6


def test_answers_have_the_shapes_that_it_reads(server: LiveServer, project: UUID) -> None:
    client = client_of(server)
    client.index(project, [CLOCK])
    assert client.answers[-1].json() == {"message": "Indexed", "count": 1}
    (result,) = client.retrieve(project, ["Why were users logged out?"])
    assert {"question", "docs", "doc_scores"} <= set(result)
    assert (result["question"], result["docs"]) == ("Why were users logged out?", [CLOCK])
    assert [0 <= score <= 1 for score in result["doc_scores"]] == [True]
    client.delete(project, [CLOCK])
    assert client.answers[-1].json() == {"message": "Deleted", "count": 1}
    assert client.retrieve(project, ["Why were users logged out?"])[0]["docs"] == []


def test_projects_do_not_see_each_other(server: LiveServer, project: UUID) -> None:
    client = client_of(server)
    client.index(project, [CLOCK])
    assert client.passages(uuid4(), ["Why were users logged out?"]) == []


def test_a_key_for_one_project_reaches_no_other(server: LiveServer, project: UUID) -> None:
    other = uuid4()
    client_of(server).index(other, [CLOCK])
    client = client_of(server, scopes=f"project={project}")
    client.index(project, [COUPON])
    assert client.passages(project, ["Coupons add up wrongly."]) == [COUPON]
    assert client.passages(other, ["Why were users logged out?"]) == []
    assert (client.answers[-1].status_code, client.answers[-1].json()) == (404, {"error": "Project not found"})


@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_its_key_it_gets_nothing(server: LiveServer, project: UUID, token: str) -> None:
    client_of(server).index(project, [CLOCK])
    client = Client(server.origin, token)
    client.index(project, [COUPON])
    assert client.passages(project, ["Why were users logged out?"]) == []
    assert {answer.status_code for answer in client.answers} == {401}
    assert client_of(server).passages(project, ["Coupons add up wrongly."]) == []


def test_a_summary_said_twice_is_kept_once(server: LiveServer, project: UUID) -> None:
    client = client_of(server)
    client.index(project, [CLOCK])
    client.index(project, [CLOCK, CLOCK])
    assert client.answers[-1].json()["count"] == 2
    assert client.retrieve(project, ["Why were users logged out?"], 5)[0]["docs"] == [CLOCK]


def test_what_survives_a_restart_is_everything(start_server: StartServer, project: UUID) -> None:
    first = start_server(embedder="static")
    client_of(first).index(project, [CLOCK])
    first.stop()
    assert client_of(start_server(embedder="static")).passages(project, ["Why were users logged out?"]) == [CLOCK]
