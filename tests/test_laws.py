"""The laws that every store must keep, whatever is done to it."""

from __future__ import annotations

import io
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

import eunoe

SCOPES = ["user=a", "agent=x/user=a", "user=ab", "agent=x"]
WORDS = ["river", "stone", "amber", "clock", "maple", "Ωmega", "東京", "err_42"]
START = datetime(2024, 1, 1, tzinfo=UTC)

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
scopes = st.sampled_from(SCOPES)
words = st.sampled_from(WORDS)


def opened(path=":memory:"):
    return eunoe.open(path, embedder="none")


def everything(memory, scope, **filters):
    return list(memory.list(scope, limit=1000, exact=True, **filters).items)


def means(asked, scope):
    """A user's scope means everything of that user; any other means itself alone."""
    asked, scope = (dict(eunoe.Scope.parse(text)) for text in (asked, scope))
    is_within = asked.items() <= scope.items() and asked.get("tenant") == scope.get("tenant")
    return is_within if "user" in asked else asked == scope


messages = st.builds(
    lambda text, id, time, session: {"content": text, "session": session} | id | time,
    texts,
    st.none().map(lambda _: {}) | st.integers(0, 5).map(lambda n: {"id": f"m{n}"}),
    st.none().map(lambda _: {}) | st.integers(0, 3).map(lambda n: {"time": n}),
    st.sampled_from(["", "s1"]),
)


@settings(max_examples=25)
@given(st.lists(st.tuples(scopes, texts), min_size=1, max_size=12), words, st.lists(scopes, min_size=1, max_size=3))
def test_law_2_nothing_of_another_scope_comes_back(writes, word, asked):
    with opened() as memory:
        ids = {scope: set() for scope in SCOPES}
        for place, (scope, text) in enumerate(writes):
            if place % 2:
                ids[scope].add(memory.observe(scope, {"content": text, "id": f"m{place}"})[0].id)
            else:
                ids[scope].add(memory.remember(scope, text, files=["src/a.py"], people=["Ben"]).id)
        for exact in (True, False):
            meant = {
                scope for scope in SCOPES if scope in asked or (not exact and any(means(each, scope) for each in asked))
            }
            hits = memory.recall(asked, word, limit=100, exact=exact)
            assert {hit.id for hit in hits} <= set().union(*(ids[scope] for scope in meant))
            assert {str(hit.scope) for hit in hits} <= meant
        for scope in SCOPES:
            whole = set().union(*(ids[each] for each in SCOPES if means(scope, each)))
            assert {item.id for item in everything(memory, scope)} == ids[scope]
            assert {item.id for item in memory.list(scope, limit=1000).items} == whole
            assert {atom.id for atom in memory.by_files(scope, ["src"], exact=True)} <= ids[scope]
            assert {atom.id for atom in memory.by_files(scope, ["src"])} <= whole
        report = memory.forget(asked[0], person="Ben")
        reached = {scope for scope in SCOPES if means(asked[0], scope)}
        assert {*report.messages, *report.atoms} <= set().union(*(ids[scope] for scope in reached))
        for scope in set(SCOPES) - reached:
            assert {item.id for item in everything(memory, scope)} == ids[scope]


facts = st.fixed_dictionaries(
    {"text": texts, "kind": st.sampled_from(["fact", "observation"]), "label": st.sampled_from(["red", "blue"])},
    optional={"people": st.just(["Ben"]), "files": st.just(["src/a.py"]), "time": st.integers(0, 9)},
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "kinds": st.sampled_from([["fact"], ["observation"], ["message"], ["fact", "message"]]),
        "labels": st.sampled_from([["red"], ["blue"]]),
        "people": st.just(["Ben"]),
        "files": st.just(["src"]),
        "since": st.integers(0, 5),
        "until": st.integers(3, 9),
    },
)


def passes(item, wanted):
    atom = isinstance(item, eunoe.Atom)
    time = None if item.time is None else item.time.timestamp()
    return all(
        {
            "kinds": lambda value: item.kind in value,
            "labels": lambda value: atom and item.label in value,
            "people": lambda value: (atom and "Ben" in item.people) or (not atom and item.speaker == "Ben"),
            "files": lambda value: atom and item.files == ("src/a.py",),
            "since": lambda value: time is not None and time >= value,
            "until": lambda value: time is not None and time < value,
        }[name](value)
        for name, value in wanted.items()
    )


@settings(max_examples=40)
@given(st.lists(facts, max_size=14), st.lists(messages, max_size=8), filters, words, st.integers(1, 6))
def test_law_3_filters_come_before_ranking_and_limit(atoms, said, wanted, word, limit):
    with opened() as memory:
        memory.remember_many("user=a", atoms)
        memory.observe("user=a", said)
        held = [item for item in everything(memory, "user=a") if passes(item, wanted)]
        hits = memory.recall("user=a", word, limit=1000, **wanted)
        assert all(passes(hit.item, wanted) for hit in hits)
        assert {item.id for item in held if word in item.text.split()} <= {hit.id for hit in hits}
        few = memory.recall("user=a", word, limit=limit, **wanted)
        assert [(hit.id, hit.score) for hit in few] == [(hit.id, hit.score) for hit in hits[:limit]]
        assert all(0 <= hit.score <= 1 for hit in hits)
        assert all(one.score >= two.score for one, two in pairwise(hits))
        for size in (1, 2):
            page, read = memory.list("user=a", limit=size, kinds=wanted.get("kinds", ["fact"])), []
            while True:
                read += page.items
                if not page.next:
                    break
                page = memory.list("user=a", limit=size, after=page.next, kinds=wanted.get("kinds", ["fact"]))
            assert read == everything(memory, "user=a", kinds=wanted.get("kinds", ["fact"]))


@settings(max_examples=75)
@given(st.lists(st.lists(messages, min_size=1, max_size=6), min_size=1, max_size=5))
def test_law_4_receipts_of_messages_are_true_and_writes_idempotent(batches):
    with opened() as memory:
        count = 0
        for batch in batches:
            receipts = memory.observe("user=a", batch)
            assert len(receipts) == len(batch)
            count += sum(receipt.outcome == "stored" for receipt in receipts)
            for message, receipt in zip(batch, receipts, strict=True):
                held = memory.get("user=a", receipt.id)
                same = (held.text, held.session) == (message["content"], message["session"])
                assert same == (receipt.outcome != "conflict")
            assert len(everything(memory, "user=a")) == count
            again = memory.observe("user=a", batch)
            assert {receipt.outcome for receipt in again} <= {"duplicate", "conflict"}
            assert [receipt.id for receipt in again] == [receipt.id for receipt in receipts]
            assert len(everything(memory, "user=a")) == count


@settings(max_examples=60)
@given(st.lists(messages, max_size=14, unique_by=lambda message: message.get("id", id(message))), st.data())
def test_law_4_a_history_sent_again_and_again_is_stored_once(history, data):
    with opened() as memory:
        for end in sorted(data.draw(st.lists(st.integers(0, len(history)), max_size=6))):
            memory.observe("user=a", history[:end])
            assert [item.text for item in everything(memory, "user=a")] == [said["content"] for said in history[:end]]


@settings(max_examples=40)
@given(st.lists(st.lists(facts, min_size=1, max_size=5), min_size=1, max_size=4))
def test_law_4_receipts_of_atoms_are_true_and_writes_idempotent(batches):
    with opened() as memory:
        count = 0
        for batch in batches:
            receipts = memory.remember_many("user=a", batch)
            count += sum(receipt.outcome == "stored" for receipt in receipts)
            for atom, receipt in zip(batch, receipts, strict=True):
                assert receipt.outcome in ("stored", "duplicate")
                assert memory.get("user=a", receipt.id).text.casefold() == atom["text"].casefold()
            again = memory.remember_many("user=a", batch)
            assert [receipt.id for receipt in again] == [receipt.id for receipt in receipts]
            assert {receipt.outcome for receipt in again} == {"duplicate"}
            assert len(everything(memory, "user=a")) == count


days = st.lists(st.integers(0, 400), min_size=2, max_size=6, unique=True).map(sorted)


@settings(max_examples=40)
@given(days, st.data())
def test_law_7_new_truth_closes_the_old_and_history_stays_readable(recorded, data):
    """Each version is true from a day on and recorded that day or later; the latest true and known is the answer."""
    valid = []
    for day in recorded:
        valid.append(data.draw(st.integers(valid[-1] if valid else -50, day)))
    with opened() as memory:
        ids = []
        for number, (day, since) in enumerate(zip(recorded, valid, strict=True)):
            times = {"valid_from": START + timedelta(days=since)}
            with patch("eunoe.engine.utc_now", lambda day=day: START + timedelta(days=day)):
                if number:
                    ids.append(memory.update("user=a", ids[-1], f"home number {number}", **times).id)
                else:
                    ids.append(memory.remember("user=a", "home number 0", **times).id)
        history = memory.history("user=a", data.draw(st.sampled_from(ids)))
        assert [version.id for version in history] == ids
        assert all(one.superseded_by == two.id and two.supersedes == one.id for one, two in pairwise(history))
        assert all(one.retired == two.recorded and one.valid_to == two.valid_from for one, two in pairwise(history))

        def answer(**asked):
            moments = {name: START + timedelta(days=day, hours=12) for name, day in asked.items()}
            return [hit.id for hit in memory.recall("user=a", "home number", limit=50, **moments)]

        def latest(numbers):
            return [ids[max(numbers)]] if numbers else []

        for day in data.draw(st.lists(st.integers(-60, 420), min_size=1, max_size=5)):
            known = [number for number, at in enumerate(recorded) if at <= day]
            assert answer(known_at=day) == latest(known)
            assert answer(as_of=day) == latest([number for number, since in enumerate(valid) if since <= day])
            then = data.draw(st.integers(-60, 420))
            assert answer(as_of=then, known_at=day) == latest([number for number in known if valid[number] <= then])
        assert answer() == [ids[-1]]


class Life(RuleBasedStateMachine):
    """Laws 5 and 9: two openings of one file, used by turns, beside a model of what each scope should hold."""

    atoms = Bundle("atoms")

    def __init__(self):
        super().__init__()
        self.stack = ExitStack()
        self.held = {scope: {} for scope in SCOPES[:2]}
        self.gone = {scope: set() for scope in SCOPES[:2]}
        self.exports = []
        self.count = 0

    @initialize()
    def open(self):
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.path = Path(folder) / "memory.db"
        self.faces = [self.stack.enter_context(opened(self.path)) for _ in range(2)]

    def turn(self):
        """Whoever writes, the other reads."""
        self.count += 1
        self.faces.reverse()
        return self.faces[0]

    def fresh(self, text):
        return f"{text} unique{self.count}"

    @rule(target=atoms, scope=st.sampled_from(SCOPES[:2]), text=texts)
    def remember(self, scope, text):
        memory = self.turn()
        receipt = memory.remember(scope, self.fresh(text))
        assert receipt.outcome == "stored"
        self.held[scope][receipt.id] = {self.fresh(text)}
        self.check_found(scope, receipt.id, self.fresh(text))
        return scope, receipt.id

    @rule(scope=st.sampled_from(SCOPES[:2]), said=st.lists(texts, min_size=1, max_size=3))
    def observe(self, scope, said):
        memory = self.turn()
        batch = [f"{self.fresh(text)}x{place}" for place, text in enumerate(said)]
        for receipt, text in zip(memory.observe(scope, batch), batch, strict=True):
            assert receipt.outcome == "stored"
            self.held[scope][receipt.id] = {text}
            self.check_found(scope, receipt.id, text)

    @rule(target=atoms, atom=atoms, text=texts)
    def update(self, atom, text):
        scope, id = atom
        if id not in self.held[scope]:
            return multiple()
        receipt = self.turn().update(scope, id, self.fresh(text))
        assert (receipt.outcome, receipt.closed) == ("superseded", id)
        self.held[scope][receipt.id] = self.held[scope].pop(id) | {self.fresh(text)}
        self.check_found(scope, receipt.id, self.fresh(text))
        return scope, receipt.id

    @rule(scope=st.sampled_from(SCOPES[:2]), data=st.data())
    def forget(self, scope, data):
        if not self.held[scope]:
            return
        id = data.draw(st.sampled_from(sorted(self.held[scope])))
        report = self.turn().forget(scope, id, verify=True)
        assert report.traces == ()
        assert report.verified
        words = self.held[scope].pop(id)
        assert report.total == len(words)
        self.gone[scope] |= {("message" if report.messages else "fact", text) for text in words}

    @rule(scope=st.sampled_from(SCOPES[:2]))
    def read_everything_again(self, scope):
        """Whatever was forgotten is refused, in whichever way it comes back."""
        memory = self.turn()
        for kind, text in sorted(self.gone[scope]):
            receipt = memory.observe(scope, text)[0] if kind == "message" else memory.remember(scope, text)
            assert receipt.outcome == "forgotten"
        for export in self.exports:
            assert memory.admin.import_(export).stored == 0

    @rule(scope=st.sampled_from(SCOPES[:2]))
    def export(self, scope):
        if self.held[scope]:
            out = io.StringIO()
            self.turn().admin.export(scope, out)
            self.exports.append(out.getvalue().splitlines())

    def check_found(self, scope, id, text):
        other = self.faces[1]
        assert other.get(scope, id).text == text
        assert id in [hit.id for hit in other.recall(scope, text, limit=10)]

    @invariant()
    def both_see_the_same(self):
        for memory in getattr(self, "faces", []):
            for scope, held in self.held.items():
                assert {item.id for item in everything(memory, scope)} == set(held)
                said = {item.text for item in everything(memory, scope, retired=True)}
                assert not said & {text for _, text in self.gone[scope]}

    def teardown(self):
        self.stack.close()


Life.TestCase.settings = settings(max_examples=25, stateful_step_count=20)
TestLaws5And9 = Life.TestCase
