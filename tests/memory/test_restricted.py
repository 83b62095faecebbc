"""What a restricted memory must not learn or change, attack by attack."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import eunoe
from eunoe.errors import AccessError, InputError, NotFoundError
from eunoe.llm.contract import ScriptedLlm
from eunoe.memory import Memory

ANNA = "user=anna"
SHARD = "agent=cook/shard=recipes"
TALK = "agent=cook/session=s1/user=anna"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with eunoe.open(":memory:", embedder="none", form=False) as opened:
        yield opened


def everything(memory: Memory) -> str:
    """All that a whole store holds, without times."""
    lines = io.StringIO()
    scopes = memory.scopes()
    if scopes:
        memory.admin.export([*scopes], lines)
    return lines.getvalue()


class TestNotes:
    def test_a_near_scope_out_of_reach_is_not_told(self, memory: Memory) -> None:
        memory.remember(ANNA, "Anna likes tea.")
        memory.remember("tenant=bolt/user=anna", "Anna likes tea.")
        memory.remember("agent=cook/tenant=acme/user=anna", "Anna likes tea.")
        acme, own = memory.restricted("acme"), memory.restricted("acme", ANNA)
        for restricted in (acme, own):
            assert "agent=cook" in restricted.recall(ANNA, "tea", exact=True).notes[0]
            assert "bolt" not in str(restricted.recall(ANNA, "tea", exact=True).notes)
        assert memory.restricted("acme", "agent=cook").list("agent=cook/session=s1").notes == ()

    @pytest.mark.parametrize("near", [ANNA, "tenant=acme", "agent=cook/tenant=acme", "tenant=bolt/user=anna"])
    def test_no_verb_tells_of_a_shorter_scope(self, memory: Memory, near: str) -> None:
        memory.remember(near, "Anna likes tea.")
        own = memory.restricted("acme", ANNA)
        asked = "agent=cook/session=s1/user=anna"
        assert own.recall(asked, "tea").notes == ()
        assert own.list(asked).notes == ()
        nothing = "nothing is stored in agent=cook/session=s1/tenant=acme/user=anna yet"
        assert own.context(asked, "tea").notes == (nothing,)
        assert own.forget(asked, everything=True).notes == ()

    def test_nor_of_keys_as_older_stores_have_them(self, memory: Memory) -> None:
        line = {
            "scope": "tenant=bolt/user_id=anna",
            "kind": "fact",
            "id": "a",
            "text": "Tea.",
            "recorded": "2024-01-01",
        }
        for scope in ("tenant=bolt/user_id=anna", "user_id=anna"):
            memory.admin.import_([json.dumps({**line, "scope": scope})])
        for restricted in (memory.restricted("acme"), memory.restricted(scopes=ANNA)):
            assert restricted.list(ANNA).notes == ()
            assert restricted.scopes() == []

    def test_nor_of_a_name_that_only_begins_alike(self, memory: Memory) -> None:
        line = {"kind": "fact", "id": "a", "text": "Tea.", "recorded": "2024-01-01"}
        memory.admin.import_([json.dumps({**line, "scope": "agent_id=cook/user=annabel"})])
        assert memory.restricted(scopes=ANNA).list(ANNA).notes == ()


class TestLists:
    def test_only_what_is_within_reach_is_listed_and_counted(self, memory: Memory) -> None:
        acme, bolt = memory.restricted("acme"), memory.restricted("bolt")
        acme.observe(TALK, ["I like tea.", "I live in Rome."])
        acme.remember(ANNA, "Anna likes tea.")
        before = acme.status()
        bolt.observe(TALK, ["I like coffee."] * 3)
        memory.remember(ANNA, "Anna likes milk.")
        memory.streams.set_preset("team", like="user", owner=["team"])
        assert acme.status() == before
        assert (before.messages, before.facts, before.target, before.schema, before.bytes) == (2, 1, "", 0, 0)
        assert {scope["tenant"] for scope in acme.scopes()} == {"acme"}
        assert {stream.scope["tenant"] for stream in acme.streams.list()} == {"acme"}
        assert [str(scope) for scope in memory.restricted("acme", "session=s1").scopes()] == [
            "agent=cook/session=s1/tenant=acme/user=anna"
        ]
        assert memory.restricted("acme", "session=s1").status().facts == 0
        assert memory.status().messages == 5

    def test_the_path_of_the_store_is_not_told(self, tmp_path: Path) -> None:
        with eunoe.open(tmp_path / "memory.db", embedder="none", form=False) as memory:
            acme = memory.restricted("acme")
            shown = f"{acme!r} {acme.streams!r} {acme.admin!r} {acme.status()!r} {acme.target}"
            assert "memory.db" not in shown


class TestContext:
    def test_streams_beside_the_conversation_are_shown_within_reach_only(self, memory: Memory) -> None:
        memory.streams.configure(SHARD)
        memory.remember(SHARD, "Garlic soup needs bread.")
        memory.remember("agent=cook/user=anna", "Anna eats no garlic soup.")
        for scopes, shown in (
            ((), {"bread", "no garlic"}),
            (("agent=cook",), {"bread", "no garlic"}),
            ((ANNA,), {"no garlic"}),
            (("session=s1",), set()),
        ):
            restricted = memory.restricted(scopes=scopes)
            texts = {hit.text for hit in restricted.look_up(TALK, "garlic soup")}
            context = restricted.context(TALK, "garlic soup", sources=True)
            for word in ("bread", "no garlic"):
                assert (word in str(texts)) == (word in shown)
                assert (word in context.text) == (word in shown)

    def test_naming_users_opens_nothing(self, memory: Memory) -> None:
        memory.remember("agent=cook/user=ben", "Ben hides a garlic ring.")
        key = memory.restricted(scopes=("agent=cook/user=anna", "session=s1"))
        assert key.look_up("agent=cook/session=s1", "garlic ring", users=["ben"]) == []
        assert "ring" not in key.context("agent=cook/session=s1", "garlic ring", users=["ben"]).text

    def test_earlier_sessions_out_of_reach_stay_closed(self, memory: Memory) -> None:
        memory.observe("agent=cook/session=s0/user=anna", "The garlic is under the stairs.")
        key = memory.restricted(scopes=("agent=cook/session=s1/user=anna",))
        assert key.look_up(TALK, "Where is the garlic?") == []
        assert memory.look_up(TALK, "Where is the garlic?")

    def test_an_earlier_session_that_belongs_to_nobody_is_out_of_reach(self, memory: Memory) -> None:
        said = {"content": "The garlic is under the stairs.", "metadata": {"user": "anna"}}
        memory.observe("agent=cook/session=s0", said)
        assert memory.look_up(TALK, "Where is the garlic?")
        assert memory.restricted(scopes=ANNA).look_up(TALK, "Where is the garlic?") == []

    def test_a_context_of_others_is_not_taken_from_the_cache(self, memory: Memory) -> None:
        memory.streams.configure(SHARD)
        memory.remember(SHARD, "Garlic soup needs bread.")
        assert "bread" in memory.context(TALK).text
        assert "bread" not in memory.restricted(scopes=ANNA).context(TALK).text
        assert "bread" in memory.context(TALK).text


class TestSources:
    @pytest.fixture
    def learned(self, memory: Memory) -> Memory:
        memory.observe(TALK, {"content": "Garlic soup needs bread.", "id": "m1"})
        name = f"@{eunoe.Scope.parse(TALK)}#m1"
        memory.remember(SHARD, "Soup needs bread.", id="f1", source=[name], source_scopes=[TALK], files=["a.md"])
        return memory

    def test_the_name_of_a_source_out_of_reach_is_not_told(self, learned: Memory) -> None:
        key, lines = learned.restricted(scopes=SHARD), io.StringIO()
        key.admin.export(SHARD, lines)
        told = [
            key.get(SHARD, "f1"),
            *key.list(SHARD).items,
            *key.history(SHARD, "f1"),
            *key.by_files(SHARD, ["a.md"]),
            *(hit.item for hit in key.recall(SHARD, "soup")),
            *(hit.item for hit in key.look_up(SHARD, "soup")),
            *(hit.item for hit in key.context(SHARD, "soup").hits),
        ]
        assert [atom.source for atom in told if isinstance(atom, eunoe.Atom)] == [()] * len(told)
        assert key.recall(SHARD, "soup")[0].source == ()
        assert "anna" not in lines.getvalue()
        assert learned.get(SHARD, "f1").source  # type: ignore[union-attr]

    def test_an_update_keeps_sources_that_it_does_not_see(self, learned: Memory) -> None:
        updated = learned.restricted(scopes=SHARD).update(SHARD, "f1", "Soup wants bread.")
        assert learned.get(SHARD, updated.id).source  # type: ignore[union-attr]

    @pytest.mark.parametrize("source", ["@tenant=bolt/user=anna#m1", "@agent=cook/tenant=acme#m1"])
    def test_a_source_out_of_reach_is_refused(self, memory: Memory, source: str) -> None:
        memory.remember("tenant=acme/user=anna", "Anna likes tea.", id="a")
        key, place = memory.restricted("acme", ANNA), source[1:-3]
        for scopes in ((), [place]):
            with pytest.raises(AccessError):
                key.remember(ANNA, "Anna moved.", source=[source], source_scopes=scopes)
            with pytest.raises(AccessError):
                key.remember_many(ANNA, [{"text": "Anna moved.", "source": [source]}], source_scopes=scopes)
            with pytest.raises(AccessError):
                key.update(ANNA, "a", "Anna moved.", source=[source], source_scopes=scopes)
        assert len(key.list(ANNA).items) == 1

    def test_a_source_gets_the_tenant_too(self, memory: Memory) -> None:
        memory.observe(ANNA, {"content": "Not this one.", "id": "m1"})
        acme = memory.restricted("acme")
        acme.observe("session=s1/user=anna", {"content": "I moved.", "id": "m1"})
        name = "@session=s1/user=anna#m1"
        acme.remember(ANNA, "Anna moved.", id="f1", source=[name], source_scopes="session=s1/user=anna")
        with pytest.raises(InputError, match="source_scopes"):
            acme.remember(ANNA, "Anna came.", source=[name])
        assert acme.get(ANNA, "f1").source == ("@session=s1/tenant=acme/user=anna#m1",)  # type: ignore[union-attr]

    def test_who_may_not_read_may_not_name_a_source_elsewhere(self, memory: Memory) -> None:
        writer = memory.restricted("acme", rights=["write"])
        with pytest.raises(AccessError, match="read"):
            writer.remember(ANNA, "Anna moved.", source=["@session=s1#m1"], source_scopes="session=s1")


class TestForgetting:
    def test_what_falls_out_of_reach_falls_untold(self, memory: Memory) -> None:
        memory.observe(TALK, {"content": "Garlic soup needs bread.", "id": "m1"})
        name = f"@{eunoe.Scope.parse(TALK)}#m1"
        memory.remember(SHARD, "Soup needs bread.", id="f1", source=[name], source_scopes=[TALK])
        report = memory.restricted(scopes=ANNA).forget(TALK, "m1", verify=True)
        assert (report.messages, report.atoms, [str(scope) for scope in report.scopes]) == (("m1",), (), [TALK])
        assert report.verified
        with pytest.raises(NotFoundError):
            memory.get(SHARD, "f1")

    def test_what_a_session_feeds_out_of_reach_is_called_unsearched(self, memory: Memory) -> None:
        memory.streams.configure(SHARD)
        memory.observe(TALK, {"content": "My passport is C4 X9.", "id": "m1"})
        memory.summaries.write(SHARD, "Passport: C4 X9.")
        report = memory.restricted(scopes=ANNA).forget(TALK, "m1", verify=True)
        assert (report.verified, report.traces) == (False, ())
        assert "out of reach" in report.unsearched[0]
        assert SHARD not in str(report)

    def test_a_person_is_forgotten_within_reach_only(self, memory: Memory) -> None:
        for tenant in ("acme", "bolt"):
            memory.restricted(tenant).remember(ANNA, "Ben likes tea.", people=["Ben"], id="b")
        report = memory.restricted("acme").forget(ANNA, person="Ben", mentions=True)
        assert report.atoms == ("b",)
        assert memory.restricted("bolt").get(ANNA, "b")

    def test_a_proof_does_not_tell_what_others_know(self, memory: Memory) -> None:
        words = "The vault code is four seven one one."
        memory.restricted("bolt").summaries.write(ANNA, f"{words} Nobody knows.")
        acme = memory.restricted("acme")
        kept = acme.remember(ANNA, words)
        report = acme.forget(ANNA, kept.id, verify=True)
        assert (report.traces, report.verified) == ((), True)

    def test_ones_own_traces_are_still_found(self, memory: Memory) -> None:
        words = "The vault code is four seven one one."
        acme = memory.restricted("acme")
        acme.summaries.write("agent=cook", f"{words} Nobody knows.")
        name = acme.observe("agent=cook", {"content": words, "id": "m1"})[0].id
        kept = acme.remember(ANNA, words, source=[f"@agent=cook#{name}"], source_scopes="agent=cook")
        assert acme.forget(ANNA, kept.id, verify=True).verified is False
        acme.forget("agent=cook", name, verify=True)
        assert acme.summaries.revisions("agent=cook")[-1].text.strip() == "Nobody knows."


class TestTransfer:
    def fact(self, scope: str, id: str, **fields: object) -> str:
        line = {"scope": scope, "kind": "fact", "id": id, "text": f"Fact {id}.", "recorded": "2024-01-01"}
        return json.dumps(line | fields)

    @pytest.mark.parametrize(
        "line",
        [
            {"scope": "tenant=bolt/user=anna"},
            {"scope": "user=ben"},
            {"scope": "tenant=acme/user_id=anna"},
            {"scope": "user=anna", "source": ["@tenant=bolt/user=anna#m1"]},
            {"scope": "user=anna", "source": ["own", ["@user=ben#m1"]]},
            {"scope": "user=anna", "kind": "session", "users": ["ben"]},
            {"scope": "user=anna", "kind": "message", "metadata": {"user": "ben"}},
            {"scope": "user=anna", "kind": "settings", "preset": "user", "changes": {"extraction_model": "openai:x"}},
            {"kind": "preset", "name": "user", "changes": {"consolidation_trigger": 1}},
        ],
    )
    def test_one_line_out_of_reach_refuses_the_whole_import(
        self, memory: Memory, tmp_path: Path, line: dict[str, object]
    ) -> None:
        key, before = memory.restricted("acme", ANNA), everything(memory)
        lines = [self.fact(ANNA, f"f{number}") for number in range(1500)]
        lines.append(json.dumps({"id": "x", "text": "Evil.", "kind": "fact", "recorded": "2024-01-01"} | line))
        (tmp_path / "lines.jsonl").write_text("\n".join(lines))
        for source in (lines, iter(lines), tmp_path / "lines.jsonl", str(tmp_path / "lines.jsonl")):
            with pytest.raises(AccessError):
                key.admin.import_(source)
        assert everything(memory) == before

    def test_lines_get_the_tenant_and_so_do_their_sources(self, memory: Memory) -> None:
        lines = [self.fact(ANNA, "f1", source=["@session=s1#m1"]), self.fact("tenant=acme/user=ben", "f2")]
        report = memory.restricted("acme").admin.import_(lines)
        assert (report.stored, [str(scope) for scope in memory.scopes()]) == (
            2,
            ["tenant=acme/user=anna", "tenant=acme/user=ben"],
        )
        assert memory.get("tenant=acme/user=anna", "f1").source == ("@session=s1/tenant=acme#m1",)  # type: ignore[union-attr]

    def test_a_tenant_reads_its_own_export(self, memory: Memory) -> None:
        memory.streams.set_preset("user", consolidation_trigger=2)
        acme, lines = memory.restricted("acme"), io.StringIO()
        acme.observe("agent=cook/user=anna", "I like tea.")
        acme.admin.export([*acme.scopes()], lines)
        assert '"preset", "name"' not in lines.getvalue()
        assert acme.admin.import_(lines.getvalue().splitlines()).stored == 0
        with pytest.raises(AccessError):
            memory.restricted("bolt").admin.import_(lines.getvalue().splitlines())

    def test_presets_need_the_right_to_change_them(self, memory: Memory) -> None:
        line = json.dumps({"kind": "preset", "name": "user", "changes": {"consolidation_trigger": 1}})
        with pytest.raises(AccessError, match="admin"):
            memory.restricted(rights=["read", "write"]).admin.import_([line])
        assert memory.restricted().admin.import_([line]).stored == 1

    def test_a_bad_line_is_still_named(self, memory: Memory) -> None:
        with pytest.raises(InputError, match="line 2"):
            memory.restricted("acme").admin.import_([self.fact(ANNA, "f1"), "no JSON"])
        assert memory.get("tenant=acme/user=anna", "f1")


class TestForming:
    def test_nothing_of_a_tenant_reaches_another_or_the_whole(self, memory: Memory) -> None:
        for scope in (SHARD, f"{SHARD}/tenant=bolt", f"{SHARD}/tenant=acme"):
            memory.streams.configure(scope, extraction_prompt="All.")
        acme = memory.restricted("acme")
        acme.observe(TALK, ["My garlic soup needs bread and salt.", "I am allergic to peanuts.", "I live in Rome."])
        report = acme.form(TALK)
        assert report.stored
        assert {scope.pairs.get("tenant") for scope in memory.scopes() if memory.list(scope).items} == {"acme"}

    def test_prompts_show_a_tenant_only_its_own(self, tmp_path: Path) -> None:
        llm = ScriptedLlm(lambda prompt: "{}")
        with eunoe.open(tmp_path / "memory.db", embedder="none", llm=llm, form=False) as memory:
            for tenant, secret in (("bolt", "PURPLE"), ("", "ORANGE"), ("acme", "GREEN")):
                owner = memory.restricted(tenant)
                owner.streams.configure(SHARD, extraction_prompt="Soups.")
                for scope in (SHARD, "agent=cook/user=anna", TALK):
                    owner.remember(scope, f"Garlic soup needs {secret} bread.")
                    owner.summaries.write(scope, f"Garlic soup and {secret} bread.")
            acme = memory.restricted("acme")
            acme.observe(TALK, ["My garlic soup needs bread.", "I am allergic to garlic bread."])
            acme.form(TALK)
        asked = "".join(f"{prompt.system}{prompt.text}" for prompt in llm.prompts)
        assert "GREEN" in asked
        assert "PURPLE" not in asked
        assert "ORANGE" not in asked

    def test_a_report_does_not_tell_of_streams_out_of_reach(self, memory: Memory) -> None:
        memory.streams.configure(SHARD, extraction_prompt="Everything about soup.")
        answer = {"role": "assistant", "content": "Garlic soup takes forty minutes in the oven at 200 degrees."}
        talk = ["How long does garlic soup take?", answer, "I am allergic to peanuts."]
        reports = []
        for name in ("anna", "ben"):  # the second time the shard knows it already
            own = memory.restricted(scopes=f"user={name}")
            own.observe(f"agent=cook/session=s/user={name}", talk)
            reports.append(own.form(f"agent=cook/session=s/user={name}"))
        assert memory.list(SHARD).items
        assert [len(report.stored) for report in reports] == [len(reports[0].stored)] * 2
        assert (reports[0].merged, reports[0].refused) == (reports[1].merged, reports[1].refused)
        ids = {item.id for item in memory.list(SHARD, retired=True).items}
        assert ids.isdisjoint(reports[0].stored + reports[1].stored)

    def test_nobody_teaches_the_memory_of_another_user(self, memory: Memory) -> None:
        with pytest.raises(AccessError):
            memory.restricted(scopes=ANNA).observe(TALK, {"content": "I hate tea.", "metadata": {"user": "ben"}})
        memory.restricted(scopes="agent=cook").observe(TALK, {"content": "I hate tea.", "metadata": {"user": "ben"}})
        assert len(memory.list(TALK).items) == 1

    def test_a_stream_is_not_sent_to_a_model_of_ones_own(self, memory: Memory) -> None:
        acme = memory.restricted("acme")
        with pytest.raises(AccessError):
            acme.streams.configure(ANNA, extraction_model="http://127.0.0.1:1/v1")
        assert acme.streams.configure(ANNA, extraction_model="", consolidation_trigger=2)

    def test_a_flush_waits_for_ones_own_alone(self) -> None:
        asked, go_on = threading.Event(), threading.Event()

        def answer(prompt: object) -> str:
            asked.set()
            go_on.wait(60)
            return "{}"

        with eunoe.open(":memory:", embedder="none", llm=ScriptedLlm(answer)) as memory:
            bolt = memory.restricted("bolt")
            bolt.streams.configure(TALK, formation_messages=2, formation_minimum=1)
            bolt.observe(TALK, ["I like tea.", "I live in Rome.", "I have a dog."])
            assert asked.wait(60)
            assert memory.restricted("acme").flush(60)
            assert not bolt.flush(0.01)
            go_on.set()
            assert bolt.flush(60)


class TestIncognito:
    def test_a_session_of_others_too_is_marked_for_oneself_only(self, memory: Memory) -> None:
        ben = "agent=cook/session=s1/user=ben"
        anna = memory.restricted(scopes=ANNA)
        memory.observe(ben, "I like tea.")
        anna.streams.set_incognito(TALK)
        assert anna.observe(TALK, "I like milk.")[0].outcome == "ignored"
        assert memory.observe(ben, "I like coffee.")[0].outcome == "stored"
        anna.streams.set_incognito(TALK, False)
        assert anna.observe(TALK, "I like milk.")[0].outcome == "stored"

    def test_the_mark_of_a_whole_session_stays(self, memory: Memory) -> None:
        memory.streams.set_incognito("agent=cook/session=s1")
        memory.restricted(scopes=ANNA).streams.set_incognito(TALK, False)
        assert memory.observe(TALK, "I like milk.")[0].outcome == "ignored"
        assert memory.restricted("acme").observe(TALK, "I like milk.")[0].outcome == "stored"
