# ruff: noqa: RUF001
"""Twenty promises that any memory has to keep, each beside a control which shows that the test could fail."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

import eunoe
from eunoe.cli.app import run
from eunoe.engine import Memory
from eunoe.errors import EunoeError, InputError, LlmError, NotFoundError, ScopeError
from eunoe.form.turns import turns_of
from eunoe.hosts.eden import migrate
from eunoe.ledger import forgetting
from eunoe.ledger.rows import source_name, source_place
from eunoe.llm.contract import Prompt
from eunoe.llm.scripted import Scripted
from eunoe.model.atom import KINDS, Atom
from eunoe.model.context import FORMATS, Context
from eunoe.model.message import Message
from eunoe.model.result import ImportReport, Receipt
from eunoe.model.scope import Scope
from eunoe.model.stream import FormReport, Revision
from eunoe.model.text import tokens
from eunoe.recall.tool import tool
from eunoe.store.contract import Store
from eunoe.sync import SyncMemory

TALK = Scope(agent="cook", session="s1", user="anna")
LATER = Scope(agent="cook", session="s2", user="anna")
GROUP = Scope(agent="cook", session="party")
ANNA = Scope(agent="cook", user="anna")
BEN = Scope(agent="cook", user="ben")
SHARD = Scope(agent="cook", shard="nuts")
WORD = "heliotrope"
QUESTION = "Which word opens the vault?"
SAID = "I am allergic to peanuts."
VALUE = "anna: I am allergic to peanuts."
TALKS = (SAID, "My sister Clara lives in Oslo.", "I prefer tea to coffee.", "My dog is called Rex.")
ALL = ("message", *KINDS)
CUT_OFF = "Anna says \ud800 so."


@contextmanager
def opened(path: Path, llm: Any = "none", **options: Any) -> Iterator[SyncMemory]:
    with eunoe.open(path, **{"embedder": "none", "llm": llm, "form": False, **options}) as memory:
        yield memory


@pytest.fixture
def memory(path: Path) -> Iterator[SyncMemory]:
    with opened(path) as memory:
        yield memory


def letters(texts: list[str]) -> list[list[float]]:
    """Vectors without a model: how often each of some letter pairs occurs."""
    return [_pairs(text) for text in texts]


def _pairs(text: str) -> list[float]:
    counts = [0.01] * 32
    for one, two in zip(text.lower(), text.lower()[1:], strict=False):
        counts[hashlib.blake2b((one + two).encode(), digest_size=1).digest()[0] % 32] += 1.0
    return counts


def repeating(prompt: Prompt) -> Any:
    """A model that notes every turn in every stream, once as a fact and once as an observation."""
    if prompt.operation == "query":
        return {"query": prompt.text.rpartition("The last message:")[2]}
    if prompt.operation == "consolidation":
        given = json.loads(prompt.text)
        return " ".join([given["summary"], *(each["text"] for each in given["observations"])])
    turns = re.findall(r"<turn .*?>(.*?)</turn>", prompt.text, re.DOTALL)
    streams = len(re.findall("<stream ", prompt.text))
    return {
        "memories": [
            {"stream": stream, "kind": kind, "text": f"{kind.title()}: {text}", "turns": [place]}
            for stream in range(1, streams + 1)
            for kind in KINDS
            for place, text in enumerate(turns, 1)
        ]
    }


def roomy(memory: SyncMemory) -> None:
    for name in ("session", "user", "agent"):
        memory.preset(name, extraction_fields=KINDS, observation_extraction_max=50, fact_extraction_max=50)


def store_of(memory: SyncMemory) -> Store:
    return memory.memory._core.store


def held(memory: SyncMemory, scope: Scope, kinds: tuple[str, ...] = ALL, retired: bool = True) -> list[str]:
    return [item.text for item in memory.list(scope, kinds=kinds, limit=1000, retired=retired).items]


def living(memory: SyncMemory) -> list[str]:
    """The texts of all facts and observations that are open, and of all current summaries."""
    texts = [text for scope in memory.scopes() for text in held(memory, scope, KINDS, retired=False)]
    return texts + [stream.summary for stream in memory.streams() if stream.summary]


def everything(memory: SyncMemory) -> dict[str, Any]:
    """All that the store holds, by scope, as far as it can be read."""
    found: dict[str, Any] = {}
    for scope in memory.scopes():
        items = memory.list(scope, limit=1000, retired=True).items
        found[str(scope)] = (items, memory.revisions(scope))
    return found


def raw(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


def probes(memory: SyncMemory, scope: Scope) -> dict[str, str]:
    """What every way of reading gives for the question, in this scope."""
    session = Scope(**scope, session="tonight")
    return {
        "recall": str([hit.text for hit in memory.recall(scope, QUESTION)]),
        "look_up": str([hit.text for hit in memory.look_up(scope, QUESTION)]),
        "static": memory.context(scope).static,
        "context": memory.context(session, QUESTION).text,
        "recalled": str([hit.text for hit in memory.context(session, QUESTION).hits]),
        "list": str(held(memory, scope)),
        "by_files": str([atom.text for atom in memory.by_files(scope, ["vault/"])]),
        "tool": tool(memory, session).call({"query": QUESTION}),
        "summary": str([revision.text for revision in memory.revisions(scope)]),
    }


def hide_the_word(memory: SyncMemory, scope: Scope) -> str:
    """Puts the word where every way of reading comes upon it; gives the id of a fact."""
    earlier = Scope(**scope, session="earlier")
    memory.observe(earlier, [f"Do not forget that {WORD} opens the old vault.", *TALKS])
    memory.form(earlier)
    kept = memory.remember(scope, f"The word that opens the vault is {WORD}.", files=["vault/door.md"])
    memory.revise(scope, f"Opens vaults with {WORD}.")
    return kept.id


def test_scope_cross_tenant_absent(memory: SyncMemory) -> None:
    north, south = (Scope(tenant=name, agent="cook", user="anna") for name in ("north", "south"))
    hide_the_word(memory, north)
    memory.remember(south, "The door of the vault is green.", files=["vault/paint.md"])
    memory.remember(south, "The vault opens at nine.", kind="observation")
    assert [name for name, found in probes(memory, north).items() if WORD not in found] == []
    assert [name for name, found in probes(memory, south).items() if WORD in found] == []
    assert "green" in probes(memory, south)["recall"]


HOSTILE_SCOPES: tuple[Any, ...] = (
    *("", "*", "/", "=", "user", "user=", "user=*", "user=%", "user=_", "user=be", "user=ben*", "agent=*/user=ben"),
    *(
        "agent=cook",
        "user=ben",
        "agent=cook/user=anna/user=ben",
        "agent=cook/user=anna%2Fuser=ben",
        "agent=cook//user=ben",
    ),
    *(
        "agent=cook/user=anna#agent=cook/user=ben",
        "@agent=cook/user=ben",
        "agent=cook/user=ben ",
        "agent=cook/user=BEN",
    ),
    *({}, [], None, 7, {"user": ""}, {"user": "*"}, {"user": None}, {"user": ["ben"]}, {"user": {"$ne": ""}}),
    *(
        {"agent": "cook", "user": "anna/user=ben"},
        {"agent": "cook/user=ben"},
        {"agent": "cook", "user": "ben", "x": "1"},
    ),
    *({"agent": "cook", "user": "anna' OR '1'='1"}, {"agent": "cook", "user": "ben\x00"}, {"": "ben"}, {1: "ben"}),
)


def reads(memory: SyncMemory, scope: Any, id: str, users: tuple[str, ...] = ()) -> Iterator[Callable[[], Any]]:
    out = io.StringIO()
    yield lambda: memory.recall(scope, QUESTION)
    yield lambda: memory.look_up(scope, QUESTION, users=users)
    yield lambda: memory.context(scope, QUESTION, sources=True, users=users)
    yield lambda: memory.list(scope, retired=True)
    yield lambda: memory.by_files(scope, ["vault/"])
    yield lambda: memory.get(scope, id)
    yield lambda: memory.history(scope, id)
    yield lambda: memory.revisions(scope)
    yield lambda: (memory.export(scope, out), out.getvalue())
    yield lambda: tool(memory, scope, users).call({"query": QUESTION})


def outcome(work: Callable[[], Any]) -> str:
    try:
        return repr(work())
    except EunoeError as error:
        return f"refused: {error}"


def test_scope_caller_cannot_widen(memory: SyncMemory) -> None:
    id = hide_the_word(memory, BEN)
    mine = memory.remember(ANNA, "Anna has no vault.").id
    before = everything(memory)[str(BEN)]
    assert [n for n, work in enumerate(reads(memory, BEN, id)) if WORD not in outcome(work)] == []
    for scope in HOSTILE_SCOPES:
        assert [n for n, work in enumerate(reads(memory, scope, id)) if WORD in outcome(work)] == [], scope
    names = [id, source_name(BEN, id, ANNA), f"#{id}", f"../{id}", "*", "%"]
    for name in names:
        assert [n for n, work in enumerate(reads(memory, ANNA, name, ("ben",))) if WORD in outcome(work)] == []
        for verb in (memory.get, memory.history, memory.pin, memory.unarchive):
            with pytest.raises(NotFoundError):
                verb(ANNA, name)
        with pytest.raises(NotFoundError):
            memory.update(ANNA, name, "Ben has no vault.")
        with pytest.raises(NotFoundError):
            memory.forget(ANNA, name)
        assert memory.uses(ANNA, [name]) == {}
    memory.remember(ANNA, "It says there.", source=[source_name(BEN, id, ANNA)])
    told = memory.context(TALK, QUESTION, users=["ben"], sources=True).text
    assert WORD not in told + memory.context(TALK, QUESTION, sources=True).text
    search = tool(memory, TALK)
    assert "no argument" in search.call({"query": QUESTION, "scope": str(BEN)})
    assert WORD not in search.call({"query": [QUESTION, str(BEN)], "memory_types": ["user", "collective"]})
    with pytest.raises(EunoeError):
        memory.forget(ANNA, everything=True, person="ben")
    memory.forget(ANNA, [mine])
    assert everything(memory)[str(BEN)] == before


@pytest.mark.parametrize("mind", ["none", "model"])
def test_scope_background_respects_boundary(path: Path, mind: str) -> None:
    model = Scripted(repeating) if mind == "model" else "none"
    secrets = {"north": "Lapland", "south": "Tasmania"}
    with opened(path, model, embedder=letters) as memory:
        roomy(memory)
        memory.preset("user", consolidation_trigger=1)
        for tenant, land in secrets.items():
            talk = Scope(**TALK, tenant=tenant)
            memory.observe(talk, [*TALKS, f"I live in {land}."])
            memory.remember(
                Scope(**ANNA, tenant=tenant), f"Anna likes {land}.", kind="observation", metadata={"memory_key": "land"}
            )
            memory.context(talk, "Where do I live?")
        memory.observe(GROUP, [{"role": "user", "user": "anna", "content": "I live in Lapland."}])
        memory.observe(GROUP, [{"role": "user", "user": "ben", "content": "I live in Tasmania."}])
        report = memory.process_cold_sessions(idle=0, minimum=1)
        assert (report.failed, report.messages) == ((), 12)
        memory.re_embed()
        north = Scope(**ANNA, tenant="north")
        south_before = everything(memory)[str(Scope(**ANNA, tenant="south"))]
        assert memory.tidy(north, keep_best=1).archived
        assert everything(memory)[str(Scope(**ANNA, tenant="south"))] == south_before
        for tenant, own in secrets.items():
            (other,) = set(secrets.values()) - {own}
            scopes = memory.scopes(tenant=tenant)
            seen = repr([everything(memory)[str(scope)] for scope in scopes])
            seen += memory.context(Scope(**LATER, tenant=tenant), "Where do I live?").text
            seen += repr(memory.recall(scopes, f"{own} {other}", limit=100))
            assert own in seen, "the control: what was said is there"
            assert other not in seen
            assert memory.revisions(Scope(**ANNA, tenant=tenant))
        private = {name: repr(everything(memory)[str(scope)]) for name, scope in (("anna", ANNA), ("ben", BEN))}
        assert "Lapland" in private["anna"]
        assert "Tasmania" in private["ben"]
        assert "Tasmania" not in private["anna"]
        assert "Lapland" not in private["ben"]
        shown = memory.context(GROUP, "Where do I live?", users=["anna", "ben"]).static
        assert all(f"<{layer}" not in shown for layer in ("UserMemory", "MemoryShard"))
    if isinstance(model, Scripted):
        for tenant, own in secrets.items():
            (other,) = set(secrets.values()) - {own}
            mine = [prompt.text for prompt in model.prompts if own in prompt.text and "<turn" in prompt.text]
            assert mine, tenant
            assert [text for text in mine if other in text and "party" not in text] == []


def orphans(memory: SyncMemory) -> list[str]:
    """Memories that lead to no message, and summaries that lead to no memory."""
    found = []
    for scope in memory.scopes():
        for atom in memory.list(scope, kinds=KINDS, limit=1000, retired=True).items:
            assert isinstance(atom, Atom)
            places = [source_place(name, scope) for name in atom.source]
            if not places or not all(_is_message(memory, *place) for place in places):
                found.append(atom.text)
        for revision in memory.revisions(scope):
            found += [id for id in revision.absorbed if not isinstance(memory.get(scope, id), Atom)]
            if not revision.absorbed and not revision.parent:
                found.append(revision.text)
    return found


def _is_message(memory: SyncMemory, scope: Scope, id: str) -> bool:
    try:
        return isinstance(memory.get(scope, id), Message)
    except NotFoundError:
        return False


@pytest.mark.parametrize("mind", ["none", "model"])
def test_evidence_claim_resolves_to_source(path: Path, mind: str) -> None:
    def inventing(prompt: Prompt) -> Any:
        answer = repeating(prompt)
        if isinstance(answer, dict):
            invented = [
                {"stream": 1, "kind": "fact", "text": "Bo owns a castle.", "turns": turns} for turns in ([], [99], [0])
            ]
            answer["memories"] = invented + answer["memories"]
        return answer

    with opened(path, Scripted(inventing) if mind == "model" else "none") as memory:
        roomy(memory)
        memory.configure(SHARD, extraction_prompt="Nuts and allergic people.")
        memory.observe(TALK, TALKS)
        memory.observe(LATER, [SAID, "I work at the harbour."])
        for scope in (TALK, LATER):
            assert not memory.form(scope).failed
        memory.consolidate(ANNA)
        assert len(held(memory, ANNA, KINDS)) >= 3
        assert memory.revisions(ANNA)
        assert orphans(memory) == []
        assert "castle" not in repr(everything(memory))
        context = memory.context(LATER, "What must I not eat?", sources=True)
        told = re.findall(r"^- .*$", context.text, re.MULTILINE)
        assert told
        assert [line for line in told if "[from " not in line and not line.startswith("- user")] == []
        memory.forget(TALK, memory.list(TALK, kinds=["message"]).items[0].id)
        memory.consolidate(ANNA)
        assert orphans(memory) == []
        memory.remember(ANNA, "Said nowhere.", source=["nothing"])
        assert orphans(memory) == ["Said nowhere."], "the control: an orphan would be seen"


def test_evidence_source_delete_reaches_derived(path: Path) -> None:
    model = Scripted(repeating)
    with opened(path, model, embedder=letters) as memory:
        roomy(memory)
        memory.configure(SHARD, extraction_prompt="Everything.")
        memory.observe(TALK, [{"id": "m1", "content": f"The word is {WORD}."}, {"id": "m2", "content": SAID}])
        assert not memory.form(TALK).failed
        memory.consolidate(ANNA)
        memory.context(TALK, QUESTION)
        scopes = (TALK, ANNA, SHARD)
        before = memory.status()
        for scope in scopes:
            for kind in KINDS:
                assert WORD in repr(held(memory, scope, (kind,))), "the control: it was derived there"
            assert WORD in repr(memory.recall(scope, WORD))
        assert WORD in memory.revisions(ANNA)[-1].text
        report = memory.forget(TALK, "m1", verify=True)
        assert report.verified
        assert set(report.scopes) == set(scopes)
        assert report.vectors == 7
        after = memory.status()
        assert (before.facts - after.facts, before.observations - after.observations) == (3, 3)
        assert sum(before.vectors.values()) - sum(after.vectors.values()) == 7
        for scope in scopes:
            for kind in ALL:
                assert WORD not in repr(held(memory, scope, (kind,))), (scope, kind)
            assert memory.recall(scope, WORD, kinds=ALL) == [] or WORD not in repr(memory.recall(scope, WORD))
            assert WORD not in repr(memory.revisions(scope))
            assert SAID in repr(held(memory, scope, KINDS)), "what rests on the other message stays"
        assert WORD not in memory.context(LATER, QUESTION).text
        asked = len(model.prompts)
        memory.consolidate(ANNA)
        assert all(WORD not in prompt.text for prompt in model.prompts[asked:])
        assert SAID in memory.revisions(ANNA)[-1].text
    assert WORD.encode() not in raw(path)


def test_evidence_rebuild_from_retained(path: Path, tmp_path: Path) -> None:
    questions = ("Where does her sister live?", "What must she not eat?", "tea or coffee", "What is the dog called?")

    def answers(memory: SyncMemory) -> list[list[tuple[str, str]]]:
        return [[(hit.kind, hit.text) for hit in memory.recall([ANNA, TALK], each, limit=5)] for each in questions]

    with opened(path, embedder=letters) as memory:
        roomy(memory)
        said = [{"id": f"m{n}", "content": text, "time": f"2026-03-0{n + 1}"} for n, text in enumerate(TALKS)]
        memory.observe(TALK, said)
        memory.form(TALK)
        first = answers(memory)
        assert any(kind in KINDS for kind, _ in first[0]), "the control: derived memories answer"
        assert memory.reindex(memory.scopes()) >= 2
        assert answers(memory) == first
        memory.re_embed("none")
        assert [
            name for name, count in memory.status().vectors.items() if count and name == memory.status().embedder
        ] == []
        memory.re_embed(letters)
        assert answers(memory) == first
        memory.export(memory.scopes(), tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text("utf-8").splitlines()[1:]]
    log = [json.dumps({**line, "formed": False}) for line in lines if line["kind"] == "message"]
    assert len(log) == len(TALKS)
    with opened(tmp_path / "second.db", embedder=letters) as memory:
        roomy(memory)
        assert memory.import_(log).stored == len(TALKS)
        assert answers(memory) != first, "the control: the log alone does not answer the same"
        memory.form(TALK)
        assert answers(memory) == first
