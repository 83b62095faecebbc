"""The nouns: what a scope, a text, a moment, a message and an atom may be."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.errors import InputError, ScopeError
from eunoe.model.arguments import check_text, from_micros, normalize_path, parse_time, to_micros
from eunoe.model.message import Message, parse_message
from eunoe.model.result import ImportReport, Receipt
from eunoe.model.scope import Scope, parse_scopes
from eunoe.records.identity import new_ids
from eunoe.text.normalize import fingerprint, normalize
from eunoe.text.sentences import token_count

KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
LETTERS = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
VALUES = st.text(LETTERS, min_size=1, max_size=20).filter(lambda text: text == text.strip() and text.isprintable())
SCOPES = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


@given(SCOPES, SCOPES)
def test_two_scopes_are_the_same_only_if_every_key_and_value_is(one, two):
    assert (Scope.of(one) == Scope.of(two)) == (one == two)
    assert (str(Scope.of(one)) == str(Scope.of(two))) == (one == two)


def test_keys_in_any_order_are_one_scope():
    assert Scope.of("user=anna/agent=x") == Scope(agent="x", user="anna") == Scope.of({"user": "anna", "agent": "x"})
    assert str(Scope(user="anna", agent="x")) == "agent=x/user=anna"


def test_slashes_and_percents_do_not_make_keys():
    assert str(Scope(user="a/agent=b")) == "user=a%2Fagent=b"
    assert Scope.parse("user=a%2Fb%252F") == Scope(user="a/b%2F")
    assert Scope.parse("user=a=b")["user"] == "a=b"


def test_a_key_may_be_called_self():
    assert Scope.of({"self": "x"})["self"] == "x"


def test_a_scope_is_a_mapping_that_can_be_copied():
    scope = Scope(user="anna", agent="x")
    assert list(scope) == ["agent", "user"]
    assert len(scope) == 2
    assert scope.get("session") is None
    assert copy.deepcopy(scope) == scope == pickle.loads(pickle.dumps(scope))
    assert scope != {"user": "anna", "agent": "x"}
    assert repr(scope) == "Scope(agent='x', user='anna')"


def test_several_scopes_each_once():
    assert parse_scopes(["user=a", {"user": "b"}, Scope(user="a")]) == [Scope(user="a"), Scope(user="b")]
    for wrong in ([], (), [None], [["user=a"]], {"user=a", "user=b"}):
        with pytest.raises(ScopeError):
            parse_scopes(wrong)


@given(st.text())
def test_what_can_be_encoded_can_be_kept(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(InputError, match="lone surrogate"):
            check_text(text)
    else:
        assert check_text(text) is text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_text_is_the_same_as_itself_evened_out(text):
    assert normalize(text) == normalize(f"  {text}\n") or not text.strip()
    assert normalize(normalize(text)) == normalize(text)


@given(st.lists(st.text(alphabet="a:0\0", max_size=4), min_size=2, max_size=4), st.data())
def test_parts_do_not_run_into_each_other(parts, data):
    others = data.draw(st.lists(st.text(alphabet="a:0\0", max_size=4), min_size=2, max_size=4))
    assert (fingerprint(*parts) == fingerprint(*others)) == (parts == others)


@given(
    st.datetimes(timezones=st.timezones() | st.none(), min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29))
)
def test_moments_keep_every_microsecond(value):
    found = parse_time(value)
    assert found.tzinfo is UTC
    assert from_micros(to_micros(found)) == found
    assert parse_time(found.isoformat()) == found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2024-05-07", "2024-05-07T00:00:00+00:00"),
        (" 2024-05-07T18:30:00Z ", "2024-05-07T18:30:00+00:00"),
        ("2024-05-07T18:30+05:30", "2024-05-07T13:00:00+00:00"),
        (0, "1970-01-01T00:00:00+00:00"),
        (-0.5, "1969-12-31T23:59:59.500000+00:00"),
        (datetime(2024, 5, 7, tzinfo=timezone(timedelta(hours=-3))), "2024-05-07T03:00:00+00:00"),
    ],
    ids=str,
)
def test_times_are_read_from_what_users_have(value, text):
    assert parse_time(value).isoformat() == text


@pytest.mark.parametrize(
    "value",
    [
        "soon",
        "",
        None,
        True,
        [],
        float("nan"),
        float("inf"),
        10**20,
        1_700_000_000_000,
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    ],
    ids=str,
)
def test_other_times_are_refused(value):
    with pytest.raises(InputError, match="cannot read valid_from"):
        parse_time(value, "valid_from")


def test_paths_have_one_spelling():
    for path in ("src/a.py", "./src/a.py", "src//a.py", "src\\a.py", "src/./a.py"):
        assert normalize_path(path) == "src/a.py"
    assert normalize_path("/etc/x") == "/etc/x"
    assert normalize_path("../x") == "../x"
    assert normalize_path("src/") == "src"


def test_usual_chat_shapes_are_read():
    message = parse_message(
        {"role": "tool", "content": "4", "name": "sum", "created_at": 5, "tool_call_id": "t", "id": None}
    )
    assert (message.role, message.text, message.speaker, message.id) == ("tool", "4", "sum", "")
    assert message.time == parse_time(5)
    assert message.metadata == {"tool_call_id": "t"}
    assert parse_message("hi") == Message(text="hi")
    assert parse_message(message) is message


def test_receipts_are_true_if_the_item_is_there():
    truth = {outcome: bool(Receipt(outcome, "x")) for outcome in ("stored", "duplicate", "superseded")}
    assert all(truth.values())
    assert not Receipt("forgotten", "x")
    assert not Receipt("conflict", "x")


def test_reports_add_up():
    total = ImportReport(1, 2, 3, 4) + ImportReport(10, 20, 30, 40)
    assert total == ImportReport(11, 22, 33, 44)
    assert total.lines == 110


def test_ids_are_new_and_ascend():
    ids = new_ids(1000)
    assert ids == sorted(set(ids))
    assert {len(id) for id in ids} == {24}
    assert not set(ids) & set(new_ids(1000))
    assert new_ids(0) == []


def test_tokens_are_estimated_from_above():
    assert token_count("") == 0
    assert token_count("a") == 1
    assert token_count("x" * 45) == 10
    assert token_count("é" * 45) == 10
    assert token_count("Привет, мир") == 3


@pytest.mark.parametrize("text", ["東京へ行った。", "明日见", "สวัสดีครับ", "안녕하세요", "ကောင်း", "ភាសា", "𠮷野"])
def test_a_letter_of_a_script_without_spaces_is_a_token(text):
    assert token_count(text) == len(text)
    assert token_count(text + "x" * 45) == len(text) + 10
