"""The client of an orchestrator of coding agents, as it is: its requests, its bearer token, its way with errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
import requests
from tests.support.live_server import LiveServer, StartServer

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
