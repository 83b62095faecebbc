"""Export and import: nothing lost, nothing doubled, a line at a time."""

from __future__ import annotations

import io
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

import eunoe
from eunoe.errors import InputError, ScopeError, StoreError

ANNA = "user=anna"
ODD = ["\0", "a\0b", "\u2028\u2029\x85", "line\nbreaks\r\n", "🌊👩‍👩‍👧", "\u05e9\u05dc\u05d5\u05dd", '"\\', "", " "]


def embed(texts):
    return [[1.0, len(text) % 5] for text in texts]


def fill(memory):
    memory.observe(ANNA, [{"content": text, "session": f"s{place % 2}"} for place, text in enumerate(ODD)])
    memory.observe(ANNA, {"content": "full", "id": "m1", "name": "Ann\u2028a", "caption": "c\0", "time": 1.000001})
    memory.observe(ANNA, [{"content": "gone", "id": "m2"}, {"content": "gone too", "time": 5}, "bare and gone", "last"])
    memory.remember_many(ANNA, [{"text": text, "metadata": {text: [text]}} for text in ODD if text.strip()])
    memory.remember(
        ANNA,
        "Anna lives in Paris.",
        id="home",
        label="a\u2028b",
        files=["a b.py"],
        pages=["p"],
        people=["Anna\0"],
        source=["m1"],
        time="0001-01-01",
        valid_from="1969-12-31T23:59:59.999999",
        valid_to="9999-12-31",
        pinned=True,
        metadata={"n": 1.5, "none": None, "list": [True, {"ü": -0.0}]},
    )
    memory.update(ANNA, "home", "Anna lives in Rome.", kind="observation")
    memory.remember(ANNA, "the same words", id="alive")
    forgotten = memory.remember(ANNA, "the same words")
    gone = [item.id for item in memory.list(ANNA, limit=99, exact=True).items if "gone" in item.text]
    memory.forget(ANNA, [*gone, forgotten.id])
    memory.remember({"user": "ben", "agent": "a/b%c"}, "Ben's own.")


def rows(path):
    """Every field of every row, but for numbers of rows, streams and versions, and checksums over them."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    scopes = dict(connection.execute("SELECT id, scope FROM streams").fetchall())
    found = [
        {**dict(row), "stream": scopes[row["stream"]], "seq": 0, "version": 0, "checksum": 0}
        for row in connection.execute("SELECT * FROM items ORDER BY stream, seq")
    ]
    found.sort(key=lambda row: row["stream"])
    tombstones = connection.execute("SELECT * FROM tombstones").fetchall()
    stones = {(scopes[row["stream"]], *{**dict(row), "stream": 0, "checksum": 0}.values()) for row in tombstones}
    vectors = connection.execute("SELECT i.id, data FROM vectors v JOIN items i USING (seq) ORDER BY i.id").fetchall()
    ends = dict(connection.execute("SELECT scope, position FROM streams").fetchall())
    connection.close()
    return found, stones, [tuple(row) for row in vectors], ends


@pytest.fixture
def exported(tmp_path):
    with eunoe.open(tmp_path / "one.db", embedder=embed) as memory:
        fill(memory)
        assert memory.admin.export(memory.scopes(), tmp_path / "all.jsonl") > 20
    return tmp_path


def test_a_round_trip_loses_nothing(exported):
    with eunoe.open(exported / "two.db", embedder=embed) as memory:
        report = memory.admin.import_(exported / "all.jsonl")
        status = memory.status()
    before, after = rows(exported / "one.db"), rows(exported / "two.db")
    assert after == before
    assert report.stored == len(before[0])
    assert report.tombstones == len(before[1]) == status.tombstones
    assert (report.duplicates, report.forgotten) == (0, 0)


def test_read_twice_it_changes_nothing(exported):
    with eunoe.open(exported / "two.db", embedder=embed) as memory:
        memory.admin.import_(exported / "all.jsonl")
    with eunoe.open(exported / "two.db", embedder=embed) as memory:
        report = memory.admin.import_(exported / "all.jsonl")
        assert (report.stored, report.forgotten) == (0, 0)
        memory.admin.export(memory.scopes(), exported / "again.jsonl")
    assert rows(exported / "two.db") == rows(exported / "one.db")
    assert (exported / "again.jsonl").read_bytes() == (exported / "all.jsonl").read_bytes()


def test_the_log_goes_on_where_it_was(exported):
    """A replay of the history is known in the new store too, gaps included."""
    history = [{"content": text, "session": f"s{place % 2}"} for place, text in enumerate(ODD)]
    tail = [{"content": "gone", "id": "m2"}, {"content": "gone too", "time": 5}, "bare and gone", "last"]
    for name in ("one.db", "two.db"):
        with eunoe.open(exported / name, embedder=embed) as memory:
            if name == "two.db":
                memory.admin.import_(exported / "all.jsonl")
            outcomes = [receipt.outcome for receipt in memory.observe(ANNA, history)]
            assert outcomes == ["duplicate"] * len(history)
            outcomes = [receipt.outcome for receipt in memory.observe(ANNA, [*tail, "new"])]
            assert outcomes == ["forgotten", "forgotten", "forgotten", "duplicate", "stored"]


def test_a_gap_at_the_end_is_not_given_away(tmp_path):
    with eunoe.open(tmp_path / "one.db", embedder="none") as memory:
        memory.observe(ANNA, ["a", "secret"])
        memory.forget(ANNA, memory.list(ANNA, exact=True).items[1].id)
        memory.admin.export(ANNA, tmp_path / "all.jsonl")
    with eunoe.open(tmp_path / "two.db", embedder="none") as memory:
        memory.admin.import_(tmp_path / "all.jsonl")
        for turn in (["a", "secret", "b"], ["a", "secret", "b", "c"], ["a", "secret", "b", "c"]):
            memory.observe(ANNA, turn)
        assert [item.text for item in memory.list(ANNA, exact=True).items] == ["a", "b", "c"]


def test_merging_into_a_store_that_has_a_log_of_its_own(exported):
    with eunoe.open(exported / "two.db", embedder=embed) as memory:
        memory.observe(ANNA, [f"own {number}" for number in range(5)])
        memory.admin.import_(exported / "all.jsonl")
        messages = memory.list(ANNA, kinds="message", limit=99, exact=True).items
        assert len({message.position for message in messages}) == len(messages)
        assert [receipt.outcome for receipt in memory.observe(ANNA, "and on")] == ["stored"]


def test_lines_are_json_that_any_tool_can_split(exported):
    text = (exported / "all.jsonl").read_bytes().decode()
    lines = text.splitlines()
    assert len(lines) == text.count("\n")
    assert json.loads(lines[0]) == {"eunoe": 2}
    assert all("scope" in json.loads(line) for line in lines[1:])


def test_streams_in_and_out(exported):
    with eunoe.open(exported / "one.db", embedder=embed) as one, eunoe.open(exported / "two.db", embedder=embed) as two:
        out = io.StringIO()
        count = one.admin.export(one.scopes(), out)
        lines = out.getvalue().splitlines(keepends=True)
        assert len(lines) == count + 1
        assert two.admin.import_(line for line in lines).lines == count
    assert rows(exported / "two.db") == rows(exported / "one.db")


def test_one_scope_of_many(exported):
    with eunoe.open(exported / "one.db", embedder=embed) as memory:
        out = io.StringIO()
        assert memory.admin.export({"user": "ben", "agent": "a/b%c"}, out) == 1
        assert "Ben's own." in out.getvalue()
        assert "Anna" not in out.getvalue()
        with pytest.raises(ScopeError, match="user=zoe"):
            memory.admin.export([ANNA, "user=zoe"], exported / "zoe.jsonl")
    assert not (exported / "zoe.jsonl").exists()


def test_long_exports_show_their_progress(tmp_path):
    with (
        eunoe.open(tmp_path / "one.db", embedder="none") as one,
        eunoe.open(tmp_path / "two.db", embedder="none") as two,
    ):
        one.observe(ANNA, [f"message {number}" for number in range(2500)])
        seen: list[int] = []
        assert one.admin.export(ANNA, tmp_path / "all.jsonl", progress=seen.append) == 2500
        assert seen == [1000, 2000]
        one.admin.export(ANNA, tmp_path / "all.jsonl", progress=lambda _: seen.append(one.status().messages))
        assert seen[2:] == [2500, 2500]
        seen.clear()
        two.admin.import_(tmp_path / "all.jsonl", progress=seen.append)
        assert seen == [1000, 2000, 2500]


def test_an_export_is_one_moment(tmp_path):
    """What is written while it runs is not half in it."""

    class Slow(io.StringIO):
        def write(self, text):
            if '"text": "first"' in text:
                other.submit(memory.update, ANNA, kept.id, "second").result()
            return super().write(text)

    with eunoe.open(tmp_path / "one.db", embedder="none") as memory, ThreadPoolExecutor(1) as other:
        kept = memory.remember(ANNA, "first")
        out = Slow()
        assert memory.admin.export(ANNA, out) == 1
        assert "second" not in out.getvalue()
        assert memory.admin.export(ANNA, io.StringIO()) == 2


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    with eunoe.open(tmp_path / "one.db", embedder="none") as memory:
        memory.observe(ANNA, [f"message {number}" for number in range(1500)])
        (tmp_path / "all.jsonl").write_text("what was there before")

        def stop(_):
            raise RuntimeError("stopped")

        with pytest.raises(RuntimeError, match="stopped"):
            memory.admin.export(ANNA, tmp_path / "all.jsonl", progress=stop)
        assert (tmp_path / "all.jsonl").read_text() == "what was there before"
        with pytest.raises(StoreError, match="cannot write"):
            memory.admin.export(ANNA, tmp_path / "nowhere" / "all.jsonl")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["all.jsonl", "one.db"]


def test_exports_to_one_name_do_not_meet(tmp_path):
    with eunoe.open(tmp_path / "one.db", embedder="none") as memory, ThreadPoolExecutor(1) as other:
        memory.observe(ANNA, [f"message {number}" for number in range(1500)])
        target = tmp_path / "all.jsonl"
        own = tmp_path / "all.jsonl.part"
        own.write_text("a file of somebody else")
        assert (
            memory.admin.export(
                ANNA, target, progress=lambda _: other.submit(memory.admin.export, ANNA, target).result()
            )
            == 1500
        )
        assert len(target.read_text().splitlines()) == 1501
        assert own.read_text() == "a file of somebody else"
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "all.jsonl",
        "all.jsonl.part",
        "one.db",
    ]


GOOD = json.dumps({"scope": ANNA, "kind": "fact", "id": "x", "text": "good", "recorded": "2024-01-01"})
KEY = "00ff" * 8


def line(**changes):
    fields = {**json.loads(GOOD), "id": "y", "key": KEY, **changes}
    return json.dumps({name: value for name, value in fields.items() if value != "left out"})


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "recursion"),
        ('{"eunoe": 3}', "upgrade"),
        (line(scope=""), "scope"),
        (line(scope="left out"), "scope"),
        (line(scope="user="), "empty"),
        (line(kind="note"), "not one of"),
        (line(kind="left out"), "not one of"),
        (line(text=7), "must be text"),
        (line(text="\ud800"), "lone surrogate"),
        (line(people=["\ud800"]), "lone surrogate"),
        (line(people="Anna"), "list of texts"),
        (line(people=[5]), "not a name"),
        (line(metadata=[1]), "mapping"),
        (line(id=""), "empty id"),
        (line(id="left out"), "'id' is missing"),
        (line(recorded="left out"), "recorded"),
        (line(recorded="soon"), "cannot read recorded"),
        (line(key="xyz"), "hex"),
        (line(key="01"), "key is 1 bytes long"),
        (line(kind="message", key="01" * 17), "key is 17 bytes long"),
        (line(kind="tombstone", key="01", content="", lane=""), "key is 1 bytes long"),
        (line(kind="tombstone", content="01", lane=""), "content is 1 bytes long"),
        (line(kind="tombstone", content="", lane="01"), "lane is 1 bytes long"),
        (line(text=" \n"), "says nothing"),
        (line(valid_from="2024-01-02", valid_to="2024-01-01"), "before valid_from"),
        (line(kind="message", position=-1), "position"),
        (line(kind="message", position=10**30), "position"),
        (line(kind="message", position="1"), "position"),
        (line(kind="tombstone", content="", lane="", position=1.5), "position"),
        (line(kind="tombstone"), "is missing"),
        (7, "strip"),
    ],
    ids=lambda value: ascii(value)[:50],
)
def test_a_bad_line_is_named_and_the_lines_before_it_are_kept(memory, bad, reason):
    with pytest.raises(InputError, match=reason) as caught:
        memory.admin.import_([GOOD, "\n", bad, line()])
    assert str(caught.value).startswith("line 3: ")
    assert "\n" not in str(caught.value)
    assert [item.text for item in memory.list(ANNA, exact=True).items] == ["good"]


def test_lines_written_by_hand_need_no_key(memory):
    memory.admin.import_([line(key="left out"), line(key="left out", kind="message", id="m", text="hello")])
    assert memory.remember(ANNA, "Good").outcome == "duplicate"
    assert memory.observe(ANNA, {"content": "hello", "id": "m", "role": ""})[0].outcome == "duplicate"


def test_a_source_that_cannot_be_read(memory, tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        memory.admin.import_(tmp_path / "nothing.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        memory.admin.import_(tmp_path / "binary")


def test_an_import_without_vectors_waits_for_them(exported):
    with eunoe.open(exported / "two.db", embedder=failing) as memory:
        report = memory.admin.import_(exported / "all.jsonl")
        assert memory.status().unembedded == report.stored
        assert memory.recall(ANNA, "Rome")


def failing(texts):
    raise RuntimeError("no model here")


def test_a_newer_export_closes_what_was_superseded_since(tmp_path):
    file = tmp_path / "export.jsonl"
    with eunoe.open(tmp_path / "a.db") as here, eunoe.open(tmp_path / "b.db") as there:
        old = here.remember("user=anna", "Anna lives in Paris.")
        here.admin.export("user=anna", file)
        there.admin.import_(file)
        here.update("user=anna", old.id, "Anna lives in Rome.")
        here.admin.export("user=anna", file)
        report = there.admin.import_(file)
        assert (report.stored, report.closed, report.duplicates) == (1, 1, 0)
        assert [hit.text for hit in there.recall("user=anna", "Where does Anna live?")] == ["Anna lives in Rome."]
        assert len(there.history("user=anna", old.id)) == 2
        assert there.admin.import_(file).duplicates == 2


def test_an_id_with_other_words_is_a_conflict_and_stays(tmp_path):
    file = tmp_path / "export.jsonl"
    with eunoe.open(tmp_path / "a.db") as here, eunoe.open(tmp_path / "b.db") as there:
        here.remember("user=anna", "Anna lives in Paris.", id="home")
        here.admin.export("user=anna", file)
        there.remember("user=anna", "Anna lives in Oslo.", id="home")
        report = there.admin.import_(file)
        assert (report.stored, report.conflicts, report.duplicates) == (0, 1, 0)
        assert there.get("user=anna", "home").text == "Anna lives in Oslo."


def altered(file, **changes):
    """The lines of an export, its memories changed but for their keys."""
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    return [json.dumps({**line, **changes} if "id" in line else line) for line in lines]


@pytest.mark.parametrize("id", ["", "home"])
def test_an_atom_changed_by_hand_is_a_memory_of_its_own(memory, tmp_path, id):
    kept = memory.remember(ANNA, "Anna lives in Paris.", id=id)
    memory.admin.export(ANNA, tmp_path / "all.jsonl")
    report = memory.admin.import_(altered(tmp_path / "all.jsonl", id="other", text="Anna lives in Oslo."))
    assert (report.stored, report.duplicates) == (1, 0)
    assert memory.get(ANNA, "other").text == "Anna lives in Oslo."
    assert memory.get(ANNA, kept.id).text == "Anna lives in Paris."
    assert memory.remember(ANNA, "anna lives in Oslo").outcome == "duplicate"


@pytest.mark.parametrize("given", [{}, {"id": "m1"}, {"time": 1_700_000_000}], ids=str)
def test_other_words_under_the_key_of_a_message_are_a_conflict(memory, tmp_path, given):
    memory.observe(ANNA, {"content": "hello", **given})
    memory.admin.export(ANNA, tmp_path / "all.jsonl")
    report = memory.admin.import_(altered(tmp_path / "all.jsonl", id="other", text="good bye"))
    assert (report.stored, report.conflicts, report.duplicates) == (0, 1, 0)


def test_two_lines_with_one_id_and_other_words_are_a_conflict(memory):
    report = memory.admin.import_([line(), line(text="not so good")])
    assert (report.stored, report.conflicts, report.duplicates) == (1, 1, 0)


def test_a_memory_closed_before_it_began_can_still_be_read(memory):
    closed = {"valid_from": "2024-01-02", "valid_to": "2024-01-01", "retired": "2024-02-01", "superseded_by": "z"}
    assert memory.admin.import_([line(**closed)]).stored == 1
    atom = memory.get(ANNA, "y")
    assert atom.valid_to == atom.valid_from


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_what_names_no_file_is_refused(path, name):
    with eunoe.open(path, embedder="none") as memory, pytest.raises(InputError, match="names no file"):
        memory.admin.import_(name)
    with pytest.raises(StoreError, match="names no file"):
        eunoe.open(name)


def versions(path, *forgotten):
    """Three versions of one memory, exported, and a store in which the words of some were forgotten before."""
    texts = ["Anna lives in Bonn.", "Anna lives in Kiel.", "Anna lives in Rome."]
    with open_store(path / "from.db") as memory:
        id = memory.remember(ANNA, texts[0]).id
        for text in texts[1:]:
            id = memory.update(ANNA, id, text).id
        memory.admin.export(ANNA, path / "export.jsonl")
    with open_store(path / "to.db") as memory:
        for place in forgotten:
            memory.forget(ANNA, memory.remember(ANNA, texts[place]).id)
    return path / "to.db", path / "export.jsonl"


def open_store(path):
    return eunoe.open(path, embedder="none", form=False)


@pytest.mark.parametrize(
    ("forgotten", "left"),
    [([0], ["Kiel", "Rome"]), ([1], ["Bonn", "Rome"]), ([2], ["Bonn", "Kiel"]), ([0, 1], ["Rome"]), ([1, 2], ["Bonn"])],
)
def test_versions_are_linked_past_those_that_were_forgotten_here(tmp_path, forgotten, left):
    path, export = versions(tmp_path, *forgotten)
    with open_store(path) as memory:
        report = memory.admin.import_(export)
        assert (report.stored, report.forgotten) == (len(left), len(forgotten))
        (last,) = memory.list(ANNA, exact=True).items
        history = memory.history(ANNA, last.id)
        assert [item.text for item in history] == [f"Anna lives in {place}." for place in left]
        assert [item.superseded_by for item in history] == [*(item.id for item in history[1:]), ""]
        assert [item.supersedes for item in history] == ["", *(item.id for item in history[:-1])]
        before = rows(path)
        assert memory.admin.import_(export).closed == 0
        assert rows(path) == before


def test_links_that_form_a_circle_end_somewhere(memory):
    links = [("a", "c", "b"), ("b", "a", "a"), ("c", "", "a")]
    lines = [
        line(id=id, text=f"Anna lives in {id}.", retired="2024-02-01", supersedes=before, superseded_by=after)
        for id, before, after in links
    ]
    memory.forget(ANNA, [memory.remember(ANNA, f"Anna lives in {id}.").id for id in "ab"])
    assert memory.admin.import_(lines).stored == 1
    assert [(item.id, item.superseded_by) for item in memory.list(ANNA, exact=True).items] == [("c", "")]
    memory.admin.import_([text.replace(ANNA, "user=ben") for text in lines])
    memory.forget("user=ben", "c")
    assert not memory.list("user=ben", retired=True, exact=True).items


@pytest.mark.parametrize("user_first", [False, True])
def test_what_was_formed_from_a_forgotten_message_stays_away(tmp_path, user_first):
    """It was forgotten here before anything was formed from it, so only the message has a tombstone."""
    talk = "agent=cook/session=s/user=anna"
    with open_store(tmp_path / "from.db") as memory:
        said = [receipt.id for receipt in memory.observe(talk, ["I am ill.", "I am well."])]
        memory.admin.backup(tmp_path / "backup.db")
        for text, groups in {"ill": said[:1], "ill or well": said}.items():
            supports = [[f"@{talk}#{id}"] for id in groups]
            lines = json.dumps({**json.loads(line(id=text, text=f"Anna is {text}.")), "source": supports})
            assert memory.admin.import_([lines]).stored == 1
        memory.admin.export([ANNA, talk] if user_first else [talk, ANNA], tmp_path / "export.jsonl")
    eunoe.restore(tmp_path / "backup.db", tmp_path / "to.db")
    with open_store(tmp_path / "to.db") as memory:
        memory.forget(talk, said[0])
        report = memory.admin.import_(tmp_path / "export.jsonl")
        assert (report.stored, report.forgotten) == (1, 2)
        assert [(item.text, item.source) for item in memory.list(ANNA, exact=True).items] == [
            ("Anna is ill or well.", (f"@{talk}#{said[1]}",))
        ]
        assert memory.admin.import_(tmp_path / "export.jsonl").stored == 0
