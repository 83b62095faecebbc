"""Scopes: one canonical form, keys of other memories understood, never silently another scope."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.errors import ScopeError
from eunoe.model.scope import ALIASES, Scope

KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True).filter(lambda key: key not in ALIASES)
VALUES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)


@pytest.mark.parametrize(("alias", "key"), ALIASES.items())
def test_keys_of_other_memories_are_understood(alias: str, key: str) -> None:
    expected = Scope(**{key: "x"})
    assert Scope(**{alias: "x"}) == Scope.of({alias: "x"}) == Scope.of(f"{alias}=x") == Scope.parse(f"{alias}=x")
    assert Scope.of({alias: "x"}) == expected
    assert expected.extended({alias: "y"}) == Scope(**{key: "y"})


@pytest.mark.parametrize("keys", [{"user": "a", "user_id": "a"}, {"session_id": "s", "run_id": "s"}])
def test_a_key_that_is_named_twice_is_refused(keys: dict[str, str]) -> None:
    with pytest.raises(ScopeError, match="twice"):
        Scope.of(keys)


def test_a_wrong_value_is_refused_under_the_name_it_was_given() -> None:
    with pytest.raises(ScopeError, match="'user_id' is empty"):
        Scope(user_id="")


def test_a_stored_scope_keeps_its_keys() -> None:
    assert Scope.stored("user_id=anna").pairs == {"user_id": "anna"}
    assert Scope.exact("user_id=anna") == Scope.stored("user_id=anna") != Scope.of("user_id=anna")
    with pytest.raises(ScopeError):
        Scope.exact("User=anna")


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_the_canonical_text_is_read_back(keys: dict[str, str]) -> None:
    scope = Scope.of(keys)
    for twin in (Scope.parse(scope.text), Scope.stored(scope.text), Scope.exact(scope.text), Scope.of(scope.text)):
        assert twin == scope
        assert dict(twin) == dict(twin.pairs) == keys
    assert pickle.loads(pickle.dumps(scope)) == copy.deepcopy(scope) == scope


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.dictionaries(KEYS, VALUES, max_size=2))
def test_two_scopes_are_near_if_one_is_the_other_with_more_keys(keys: dict[str, str], more: dict[str, str]) -> None:
    scope, longer = Scope.of(keys), Scope.of(keys).extended(more)
    is_longer = len(longer) > len(scope) and all(longer[key] == value for key, value in keys.items())
    assert scope.is_near(longer) == longer.is_near(scope) == is_longer
    assert not scope.is_near(scope)


def test_a_scope_cannot_lose_all_its_keys() -> None:
    scope = Scope(agent="cook", user="anna")
    assert scope.only(["user", "session"]) == Scope(user="anna")
    assert scope.only(["user", "agent"]) is scope
    with pytest.raises(ScopeError):
        scope.only(["session"])


def test_a_scope_cannot_be_changed() -> None:
    scope = Scope(user="anna")
    with pytest.raises(TypeError):
        scope.pairs["user"] = "ben"  # type: ignore[index]
    with pytest.raises(TypeError):
        scope["user"] = "ben"  # type: ignore[index]
