"""The tour: it loads, asks, changes and forgets, and shows what happened at every step."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

import eunoe
from eunoe.cli import tables
from eunoe.demo import script
from eunoe.errors import InputError

if TYPE_CHECKING:
    from eunoe.memory import Memory


def guide(keep: Path | None = None) -> None:
    """Runs the tour, in a store of its own that is gone afterwards unless `keep` names a file for it."""
    show = Show()
    with _place(keep) as path, eunoe.open(path) as memory:
        _load(show, memory)
        for number, question in enumerate(script.QUESTIONS, 1):
            _ask(show, memory, number, question)
        _change(show, memory)
        _form(show, memory)
        _forget(show, memory)
    _farewell(show, keep)


class Show:
    """The tour's screen; waits for Enter where somebody can press it."""

    def __init__(self) -> None:
        self.console = tables.console()
        self._waits = sys.stdin.isatty() and sys.stdout.isatty()

    def step(self, title: str) -> None:
        self.console.print(Rule(Text(f" {title} ", style="bold"), align="left", style="dim", characters="─"))

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style))

    def command(self, text: str) -> None:
        self.console.print(Text(f"$ {text}", style="green"), soft_wrap=True)

    def indented(self, renderable: object) -> None:
        self.console.print(Padding(renderable, (0, 0, 0, 2)))  # type: ignore[arg-type]

    def pause(self) -> None:
        if self._waits:
            self.console.print(Text("press Enter to go on", style="dim"), end=" ")
            try:
                input()
            except EOFError:
                self._waits = False
        self.console.print()


def _load(show: Show, memory: Memory) -> None:
    messages, facts = script.conversation(), script.facts()
    show.step("Eunoe remembers")
    show.say(
        "Mira and Jonas restore an old dinghy. From January to May they talk it through with Pilot, their assistant. "
        "Eunoe keeps every word of it in one file, with a few facts beside; no model is asked, nothing leaves this "
        "machine."
    )
    show.say("")
    start = time.perf_counter()
    stored = sum(receipt.outcome == "stored" for receipt in memory.observe(script.SCOPE, messages))
    kept = sum(receipt.outcome == "stored" for receipt in memory.remember_many(script.SCOPE, facts))
    spent = time.perf_counter() - start
    show.command(f"eunoe observe {script.SCOPE} conversation.jsonl")
    show.say(f"{stored} messages of {len({message['session'] for message in messages})} sessions stored")
    show.command(f"eunoe remember {script.SCOPE} --from facts.jsonl")
    show.say(f"{kept} facts stored, both in {spent:.2f} s")
    show.pause()


def _ask(show: Show, memory: Memory, number: int, question: script.Question) -> None:
    show.step(f"Question {number} of {len(script.QUESTIONS)}")
    show.say(question.note, "italic")
    day = f" --now {question.now}" if question.now else ""
    show.command(f'eunoe recall {script.SCOPE} "{question.text}" -n 3 --why{day}')
    start = time.perf_counter()
    hits = memory.recall(script.SCOPE, question.text, limit=3, now=question.now or None)
    spent = time.perf_counter() - start
    show.say("")
    show.indented(tables.hits(hits, full=False, why=True, most=3))
    show.say(f"{len(hits)} hits in {spent * 1000:.0f} ms", "dim")
    show.pause()


def _change(show: Show, memory: Memory) -> None:
    show.step("Plans change, nothing is overwritten")
    show.say("The launch moved from April to May. An update closes the old fact and links the new one to it.")
    show.command(f'eunoe update {script.SCOPE} {script.PLAN} "{script.NEW_PLAN}" --valid-from {script.CHANGED}')
    receipt = memory.update(script.SCOPE, script.PLAN, script.NEW_PLAN, valid_from=script.CHANGED, time=script.CHANGED)
    show.command(f"eunoe history {script.SCOPE} {script.PLAN}")
    show.say("")
    show.indented(tables.items(memory.history(script.SCOPE, receipt.id), full=False))
    show.command(f'eunoe recall {script.SCOPE} "launch date" --kind fact --as-of 2025-02-01')
    before = memory.recall(script.SCOPE, "launch date", kinds=["fact"], limit=1, as_of="2025-02-01")
    show.say(f"What was true in February: {before[0].text}")
    show.pause()


def _form(show: Show, memory: Memory) -> None:
    show.step("Memories form themselves")
    show.say("An agent observes each turn and asks for a context before each reply. What is worth knowing is learned.")
    show.command(f"eunoe observe {script.TALK} talk.jsonl")
    memory.observe(script.TALK, script.TALK_MESSAGES)
    show.command(f"eunoe form {script.TALK}")
    report = memory.form(script.TALK)
    show.say(f"{report.messages} messages read, {len(report.stored)} memories made, without a language model")
    show.say("")
    show.say("A day later, in another session, this stands before the agent's reply:")
    show.command(f'eunoe context {script.LATER} "{script.ASKED}" --tokens 400')
    show.say("")
    show.indented(Text(memory.context(script.LATER, script.ASKED, tokens=400).text))
    show.pause()


def _forget(show: Show, memory: Memory) -> None:
    show.step("Forgotten means gone")
    secret = memory.get(script.SCOPE, script.SECRET)
    show.say(f"Jonas once wrote: “{secret.text}”")
    show.command(f"eunoe forget {script.SCOPE} {script.SECRET} --verify --yes")
    report = memory.forget(script.SCOPE, script.SECRET, verify=True)
    found = "no table, file, index or cache holds a trace" if report.verified else ", ".join(report.traces)
    show.say(f"{len(report.messages)} message and {report.vectors} vector removed; {found}.")
    show.say("")
    show.say("And it stays gone when the same conversation is read again:")
    show.command(f"eunoe observe {script.SCOPE} conversation.jsonl")
    receipts = memory.observe(script.SCOPE, script.conversation())
    known = sum(receipt.outcome == "duplicate" for receipt in receipts)
    refused = sum(receipt.outcome == "forgotten" for receipt in receipts)
    show.say(f"{known} messages known already, {refused} refused (forgotten before)")
    show.pause()


def _farewell(show: Show, keep: Path | None) -> None:
    show.step("Your turn")
    if keep:
        show.say(f"The tour's store is kept in {keep}. Go on with it:")
        show.command(f'eunoe recall --store {keep} {script.SCOPE} "Who lent us the steam box?" --why')
        show.command(f"eunoe list --store {keep} {script.SCOPE} --kind fact")
    else:
        show.say("The tour's store is gone now; `eunoe demo --keep tour.db` keeps it. In your own:")
    show.command('eunoe remember user=me "I prefer window seats."')
    show.command('eunoe recall user=me "Where do I like to sit?" --why')
    show.command("eunoe status")
    show.command("eunoe --help")


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="eunoe-demo-", ignore_cleanup_errors=True) as folder:
            yield Path(folder) / "tour.db"
        return
    if keep.exists():
        raise InputError(f"{keep} is there already: name a new file for the tour's store")
    yield keep
