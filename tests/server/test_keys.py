"""Keys: bound to a tenant, scopes and rights; hashed; ended by time, rotation and revocation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.live_server import LiveServer

from eunoe.errors import AccessError, InputError, NotFoundError
from eunoe.model.arguments import RIGHTS, utc_now
from eunoe.model.scope import Scope
from eunoe.server.keys import OWNER, Key, Keys, parse_duration, parse_end
from eunoe.server.state import ServerState


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ServerState]:
    state = ServerState(tmp_path / "memory.server.db")
    yield state
    state.close()


@pytest.fixture
def keys(state: ServerState) -> Keys:
    return Keys(state)


def _end_soon(state: ServerState, column: str) -> None:
    """Let the time come that a column of the key's row names."""
    with state.write() as db:
        db.execute(f"UPDATE key SET {column} = 1")


def test_a_key_is_known_by_its_text_and_not_kept(keys: Keys, tmp_path: Path) -> None:
    key, text = keys.create("laptop", tenant="acme", scopes="user=anna", rights=["write", "read"])
    assert keys.verify(text) == key
    assert (key.tenant, key.scopes, key.rights) == ("acme", (Scope(user="anna"),), ("read", "write"))
    assert text.startswith(f"eun_{key.id}_")
    secret = text.rpartition("_")[2]
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert secret.encode() not in files


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text.swapcase(),
        lambda text: text.replace("eun_", "eur_"),
        lambda text: text.replace("eun_", ""),
        lambda text: text.rpartition("_")[2],
        lambda text: text.rpartition("_")[0] + "_",
        lambda text: text + "\x00",
        lambda text: "",
        lambda text: "_",
        lambda text: "é" * 40,
        lambda text: "\udc80",
    ],
)
def test_nothing_but_the_exact_text_is_the_key(keys: Keys, change) -> None:
    _, text = keys.create("laptop")
    assert keys.verify(change(text)) is None


def test_the_secret_of_one_key_is_not_good_for_another(keys: Keys) -> None:
    (first, one), (second, other) = keys.create("one"), keys.create("two")
    assert keys.verify(f"eun_{first.id}_{other[len(f'eun_{second.id}_') :]}") is None
    assert keys.verify(one) == first


def test_a_key_ends_when_its_time_is_over(keys: Keys, state: ServerState) -> None:
    key, text = keys.create("guest", expires=utc_now() + timedelta(days=1))
    assert keys.verify(text) == key
    _end_soon(state, "expires")
    assert keys.verify(text) is None
    assert keys.find(key.id) is None


def test_a_revoked_key_is_refused_in_every_process(keys: Keys, state: ServerState) -> None:
    key, text = keys.create("laptop")
    other = Keys(ServerState(state.path))
    assert other.verify(text) == key
    keys.revoke(key.id)
    assert other.verify(text) is None
    with pytest.raises(NotFoundError):
        keys.revoke(key.id)
    with pytest.raises(NotFoundError):
        keys.rotate(key.id)
    other.state.close()


def test_rotation_ends_the_old_secret_at_once(keys: Keys) -> None:
    key, old = keys.create("laptop")
    rotated, new = keys.rotate(key.id)
    assert (keys.verify(old), keys.verify(new)) == (None, rotated)


def test_rotation_with_an_overlap_leaves_time_to_change_it(keys: Keys, state: ServerState) -> None:
    key, old = keys.create("laptop")
    _, new = keys.rotate(key.id, overlap=timedelta(hours=1))
    assert keys.verify(old) == keys.verify(new) == key
    _end_soon(state, "old_expires")
    assert (keys.verify(old), keys.verify(new)) == (None, key)
    keys.rotate(key.id, overlap=timedelta(hours=1))
    assert keys.verify(old) is None
    keys.rotate(key.id)
    assert keys.verify(new) is None


def test_the_last_use_is_noted_to_the_minute(keys: Keys, state: ServerState) -> None:
    key, text = keys.create("laptop")
    for _ in range(50):
        assert keys.verify(text)
    writes = state._later._work_queue.qsize()
    state._later.submit(lambda: None).result()
    (listed,) = keys.list()
    assert writes <= 1
    assert listed.used is not None
    assert keys.verify(text) == key  # to be used is no change of a key


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": ""}, "name"),
        ({"tenant": "  "}, "tenant"),
        ({"tenant": "a\nb"}, "unprintable"),
        ({"rights": []}, "rights"),
        ({"rights": ["root"]}, "rights"),
        ({"scopes": "tenant=other"}, "tenant"),
        ({"scopes": "nonsense"}, "nonsense"),
        ({"expires": utc_now() - timedelta(days=1)}, "past"),
    ],
)
def test_what_makes_no_sense_makes_no_key(keys: Keys, arguments: dict[str, object], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        keys.create(**{"name": "laptop", "tenant": "acme"} | arguments)  # type: ignore[arg-type]
    assert keys.list() == []


def _admin(keys: Keys, **binding) -> Key:
    return keys.create("admin", **binding)[0]


@pytest.mark.parametrize(
    "wanted",
    [
        {"tenant": "other"},
        {"tenant": ""},
        {"tenant": "acme", "rights": RIGHTS},
        {"tenant": "acme", "rights": ["forget"]},
        {"tenant": "acme", "scopes": "user=bob"},
        {"tenant": "acme", "scopes": "agent=cook"},
        {"tenant": "acme", "scopes": ["user=anna", "user=bob"]},
        {"tenant": "acme", "scopes": ()},
    ],
)
def test_a_key_makes_none_that_can_do_more(keys: Keys, wanted: dict[str, object]) -> None:
    admin = _admin(keys, tenant="acme", scopes="user=anna", rights=["read", "write", "admin"])
    wanted = {"scopes": "user=anna", "rights": ["read"]} | wanted
    with pytest.raises(AccessError):
        keys.create("more", by=admin, **wanted)  # type: ignore[arg-type]


def test_a_key_makes_one_that_can_do_less(keys: Keys) -> None:
    admin = _admin(keys, tenant="acme", scopes="user=anna", rights=["read", "admin"])
    key, _ = keys.create("less", tenant="acme", scopes="user=anna/agent=cook", rights=["read"], by=admin)
    assert {each.id for each in keys.list(by=admin)} == {admin.id, key.id}


def test_a_key_makes_none_that_lasts_longer(keys: Keys) -> None:
    end = utc_now() + timedelta(days=1)
    admin = _admin(keys, tenant="acme", expires=end)
    for expires in (None, end + timedelta(seconds=1)):
        with pytest.raises(AccessError, match="longer"):
            keys.create("long", tenant="acme", expires=expires, by=admin)
    assert keys.create("short", tenant="acme", expires=end, by=admin)


def test_a_tenant_neither_sees_nor_ends_keys_of_another(keys: Keys) -> None:
    admin = _admin(keys, tenant="acme", rights=["read", "admin"])
    beyond = [
        keys.create("other", tenant="other")[0],
        keys.create("whole store")[0],
        keys.create("more rights", tenant="acme", rights=["read", "write", "admin"])[0],
    ]
    assert keys.list(by=admin) == [admin]
    for key in beyond:
        for change in (keys.rotate, keys.revoke):
            with pytest.raises(NotFoundError) as refused:
                change(key.id, by=admin)
            with pytest.raises(NotFoundError) as unknown:
                change("nobody", by=admin)
            assert str(refused.value) == str(unknown.value)


def test_without_the_right_admin_keys_are_out_of_reach(keys: Keys) -> None:
    reader = _admin(keys, tenant="acme", rights=["read", "write", "forget"])
    for call in (
        lambda: keys.list(by=reader),
        lambda: keys.create("x", tenant="acme", rights=["read"], by=reader),
        lambda: keys.rotate(reader.id, by=reader),
        lambda: keys.revoke(reader.id, by=reader),
    ):
        with pytest.raises(AccessError, match="admin"):
            call()


def test_the_owner_has_every_key(keys: Keys) -> None:
    made = {keys.create("a", tenant="acme")[0].id, keys.create("b")[0].id}
    assert {key.id for key in keys.list(by=OWNER)} == made


def test_an_overlap_has_bounds(keys: Keys) -> None:
    key, _ = keys.create("laptop")
    for overlap in (timedelta(days=31), timedelta(seconds=-1)):
        with pytest.raises(InputError, match="overlap"):
            keys.rotate(key.id, overlap=overlap)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("45m", 45 * 60), ("12h", 12 * 3600), ("30d", 30 * 86400), ("2w", 14 * 86400)]
)
def test_every_unit_is_known(text: str, seconds: int) -> None:
    assert parse_duration(text, "overlap") == timedelta(seconds=seconds)


def test_an_end_is_a_duration_or_a_time() -> None:
    before = utc_now()
    assert before + timedelta(seconds=5) <= parse_end("5s", "expires") <= utc_now() + timedelta(seconds=5)
    assert parse_end("2030-12-31", "expires") == datetime(2030, 12, 31, tzinfo=UTC)


@pytest.mark.parametrize("text", ["5y", "-1d", "soon", ""])
def test_a_refusal_says_which_forms_there_are(text: str) -> None:
    with pytest.raises(InputError, match="30d, 12h, 45m, 30s, or a time"):
        parse_end(text, "--expires")


def test_a_key_is_made_listed_rotated_and_revoked(server: LiveServer) -> None:
    body = {"name": "laptop", "tenant": "acme", "scopes": ["user=anna"], "rights": ["read", "write"], "expires": "30d"}
    made = server.call("POST", "/v1/keys", body, key=server.owner)
    assert made.status == 201
    text, id = made.json["token"], made.json["key"]["id"]
    assert server.call("GET", "/v1/status", key=text).status == 200
    listed = server.call("GET", "/v1/keys", key=server.owner)
    assert [each["id"] for each in listed.json["items"]] == [id]
    assert text.rpartition("_")[2].encode() not in listed.content
    rotated = server.call("POST", f"/v1/keys/{id}/rotate", {}, key=server.owner).json["token"]
    assert server.call("GET", "/v1/status", key=text).status == 401
    assert server.call("GET", "/v1/status", key=rotated).status == 200
    assert server.call("DELETE", f"/v1/keys/{id}", key=server.owner).status == 204
    assert server.call("GET", "/v1/status", key=rotated).status == 401
    assert server.call("DELETE", f"/v1/keys/{id}", key=server.owner).status == 404
