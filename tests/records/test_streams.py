"""Which streams a conversation feeds, and the settings they have."""

from __future__ import annotations

import pytest
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import InputError, ScopeError
from eunoe.model.scope import Scope
from eunoe.model.stream import PRESETS, SETTING_NAMES
from eunoe.records.streams import SettingsReader


def target_scopes(memory, conversation, users=()):
    store = steps_of(memory)
    with store.reading():
        targets = SettingsReader(store).targets(Scope.of(conversation), users)
    return [target.scope.text for target in targets]


def test_a_session_feeds_itself_its_user_and_the_shards_of_its_agent(memory):
    memory.streams.configure("agent=cook/shard=recipes", extraction_prompt="Recipes.")
    memory.streams.configure("agent=cook/shard=style")
    memory.streams.configure("agent=other/shard=recipes")
    assert target_scopes(memory, "agent=cook/session=s1/user=anna") == [
        "agent=cook/session=s1/user=anna",
        "agent=cook/user=anna",
        "agent=cook/shard=recipes",
        "agent=cook/shard=style",
    ]


def test_keys_that_are_no_layer_are_never_dropped(memory):
    memory.streams.configure("agent=cook/shard=style")
    scopes = target_scopes(memory, "agent=cook/session=s1/user=anna/tenant=t1")
    assert scopes == ["agent=cook/session=s1/tenant=t1/user=anna", "agent=cook/tenant=t1/user=anna"]


def test_each_user_of_a_group_has_a_stream_of_their_own(memory):
    assert target_scopes(memory, "agent=cook/session=s1", ["anna", "ben"]) == [
        "agent=cook/session=s1",
        "agent=cook/user=anna",
        "agent=cook/user=ben",
    ]


def test_a_user_without_sessions_is_one_stream(memory):
    assert target_scopes(memory, "user=anna") == ["user=anna"]


@pytest.mark.parametrize("scope", ["discussion=d1", "repository=r", "project=p"])
def test_scopes_that_no_preset_names_feed_nothing(memory, scope):
    assert target_scopes(memory, scope) == []


def test_a_new_kind_of_memory_is_a_preset(memory):
    memory.streams.set_preset("team", like="user", owner=["team"], consolidated_max_words=200)
    assert target_scopes(memory, "team=red/session=s1") == ["session=s1/team=red", "team=red"]
    with pytest.raises(InputError, match="there already"):
        memory.streams.set_preset("team", like="user")


def test_an_inactive_stream_is_no_target(memory):
    memory.streams.configure("agent=cook/user=anna", is_active=False)
    assert target_scopes(memory, "agent=cook/session=s1/user=anna") == ["agent=cook/session=s1/user=anna"]
    memory.streams.set_preset("session", is_active=False)
    assert target_scopes(memory, "agent=cook/session=s1/user=ben") == ["agent=cook/user=ben"]


def test_the_defaults_are_those_that_were_asked_for():
    session, user, agent = (PRESETS[name] for name in ("session", "user", "agent"))
    assert (session.fact_buffer_max, bool(session.consolidation_prompt), session.fact_max_words) == (8, True, 50)
    assert (user.consolidation_trigger, user.consolidated_max_words, user.observation_max_words) == (5, 400, 40)
    assert (agent.fact_buffer_max, agent.consolidation_trigger, agent.consolidated_max_words) == (100, 16, 1000)
    assert (agent.fact_max_words, agent.observation_max_words) == (30, 35)


def test_settings_last_and_changes_add_up(path):
    with eunoe.open(path, embedder="none") as memory:
        memory.streams.set_preset("user", consolidation_trigger=7)
        memory.streams.configure("agent=a/user=u", consolidated_max_words=99)
        memory.streams.configure("agent=a/user=u", extraction_prompt="Only {braces} and % signs.")
    with eunoe.open(path, embedder="none") as memory:
        settings = memory.streams.configure("agent=a/user=u").settings
        assert (settings.consolidation_trigger, settings.consolidated_max_words) == (7, 99)
        assert settings.extraction_prompt == "Only {braces} and % signs."
        assert memory.streams.presets()["user"].consolidation_trigger == 7


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"consolidation_triger": 3}, "there is no setting consolidation_triger"),
        ({"extraction_model": "bogus::"}, "extraction_model: 'bogus::' is not a language model"),
        ({"consolidation_model": "gpt"}, "consolidation_model: 'gpt' is not a language model"),
        ({"consolidation_model": "http://h/v1?modle=x"}, "consolidation_model: Unknown in the address"),
        ({"extraction_model": "anthropic:"}, "extraction_model: The model is missing"),
        ({"extraction_model": 5}, "extraction_model cannot be 5"),
        ({"consolidation_trigger": 0}, "at least 1"),
        ({"consolidation_trigger": "3"}, "whole number"),
        ({"consolidation_trigger": True}, "whole number"),
        ({"is_active": 1}, "true or false"),
        ({"extraction_fields": ["fact", "fable"]}, "must be some of"),
        ({"extraction_prompt": "x" * 20_001}, "at most 20,000"),
        ({"fact_extraction_min": 9}, "more than fact_extraction_max"),
        ({"max_age_days": -1}, "from 0"),
        ({"owner": ["user"]}, "its scope"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(memory, changes, said):
    with pytest.raises(InputError, match=said):
        memory.streams.configure("agent=a/user=u", **changes)
    assert memory.streams.list() == []


def test_a_stream_must_have_the_keys_of_its_preset(memory):
    with pytest.raises(ScopeError, match="no preset has streams"):
        memory.streams.configure("discussion=d")
    with pytest.raises(ScopeError, match="no stream of preset"):
        memory.streams.configure("agent=a/user=u", preset="agent")
    with pytest.raises(InputError, match="no preset 'agnet'"):
        memory.streams.configure("agent=a/shard=s", preset="agnet")


def test_a_preset_needs_an_owner_and_a_name(memory):
    with pytest.raises(InputError, match="needs an owner"):
        memory.streams.set_preset("team")
    with pytest.raises(InputError, match="no name"):
        memory.streams.set_preset("a team", like="user")
    with pytest.raises(InputError, match="no preset 'usr'"):
        memory.streams.set_preset("team", like="usr")
    with pytest.raises(ScopeError, match="malformed"):
        memory.streams.set_preset("team", like="user", owner=["Team"])


def test_every_setting_can_be_read_back(memory):
    stream = memory.streams.configure("agent=a/shard=s")
    assert {name: getattr(stream.settings, name) for name in SETTING_NAMES} == {
        name: getattr(PRESETS["agent"], name) for name in SETTING_NAMES
    }


def test_settings_of_its_own_do_not_open_a_session_to_other_conversations(memory):
    memory.streams.configure("agent=cook/session=group", consolidation_trigger=2)
    memory.streams.configure("agent=cook/session=s1/user=anna", consolidation_trigger=2)
    assert target_scopes(memory, "agent=cook") == []
    assert target_scopes(memory, "agent=cook/user=anna") == ["agent=cook/user=anna"]
    assert target_scopes(memory, "agent=cook/session=group") == ["agent=cook/session=group"]


@pytest.mark.parametrize(
    "spec", ["", "fast", "none", "anthropic:claude", "openai:gpt", "groq:llama", "http://h:1/v1?model=m&price=1/2"]
)
def test_a_model_may_be_named_whose_key_or_extra_is_elsewhere(memory, spec, monkeypatch):
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    assert memory.streams.configure("user=anna", extraction_model=spec).settings.extraction_model == spec
    assert memory.streams.set_preset("user", consolidation_model=spec).consolidation_model == spec
