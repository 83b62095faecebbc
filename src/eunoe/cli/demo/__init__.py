"""A guided tour through a sample conversation: two friends, an old dinghy and their assistant."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

import eunoe
from eunoe.cli.display import hit_entries, item_entries
from eunoe.cli.display.terminal import console, draw
from eunoe.errors import InputError
from eunoe.memory import Memory

SCOPE: Final = "project=boat"
SECRET: Final = "4.12"
PLAN: Final = "launch"
NEW_PLAN: Final = "The launch is planned for Saturday 10 May 2025, high water 9:25."
CHANGED: Final = "2025-03-08"
TALK: Final = "agent=pilot/session=monday/user=mira"
LATER: Final = "agent=pilot/session=tuesday/user=mira"
ASKED: Final = "Who helps me with the mast?"


class Question(NamedTuple):
    """A question, what to look out for in the answer, and the day of asking if it matters."""

    text: str
    note: str
    answer: str
    """Words that the first hit must hold."""
    now: str = ""


def read_lines(name: str) -> list[dict[str, Any]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


CONVERSATION: Final = read_lines("conversation.jsonl")
FACTS: Final = read_lines("facts.jsonl")
TALK_MESSAGES: Final = read_lines("talk.jsonl")
QUESTIONS: Final = [Question(**line) for line in read_lines("questions.jsonl")]


def show_tour(keep: Path | None = None) -> None:
    """Run the tour in a store of its own, which is gone afterwards unless `keep` names a file for it."""
    screen = Screen()
    with _store_path(keep) as path, eunoe.open(path) as memory:
        _load(screen, memory)
        for number, question in enumerate(QUESTIONS, 1):
            _ask(screen, memory, number, question)
        _change(screen, memory)
        _form(screen, memory)
        _forget(screen, memory)
    _leave(screen, keep)


class Screen:
    """Where the tour is shown. It waits for Enter where somebody can press it."""

    def __init__(self) -> None:
        self._console = console()
        self._waits = sys.stdin.isatty() and sys.stdout.isatty()

    def step(self, title: str) -> None:
        self._console.print(Rule(Text(f" {title} ", style="bold"), align="left", style="dim", characters="─"))

    def say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style))

    def command(self, text: str) -> None:
        self._console.print(Text(f"$ {text}", style="green"), soft_wrap=True)

    def result(self, renderable: object) -> None:
        self._console.print("", Padding(renderable, (0, 0, 0, 2)), sep="\n")  # type: ignore[arg-type]

    def pause(self) -> None:
        if self._waits:
            self._console.print(Text("press Enter to go on", style="dim"), end=" ")
            try:
                input()
            except EOFError:
                self._waits = False
        self._console.print()


def _load(screen: Screen, memory: Memory) -> None:
    screen.step("Eunoe remembers")
    screen.say(
        "Mira and Jonas restore an old dinghy. From January to May they talk it through with Pilot, their assistant. "
        "Eunoe keeps every word of it in one file, with a few facts beside; no model is asked, nothing leaves this "
        "machine.\n"
    )
    start = time.perf_counter()
    observed = memory.observe(SCOPE, CONVERSATION)
    remembered = memory.remember_many(SCOPE, FACTS)
    seconds = time.perf_counter() - start
    sessions = {message["session"] for message in CONVERSATION}
    screen.command(f"eunoe observe {SCOPE} --file conversation.jsonl")
    screen.say(f"{sum(map(bool, observed))} messages of {len(sessions)} sessions stored")
    screen.command(f"eunoe remember {SCOPE} --from facts.jsonl")
    screen.say(f"{sum(map(bool, remembered))} facts stored, both in {seconds:.2f} s")
    screen.pause()


def _ask(screen: Screen, memory: Memory, number: int, question: Question) -> None:
    screen.step(f"Question {number} of {len(QUESTIONS)}")
    screen.say(question.note, "italic")
    day = f" --now {question.now}" if question.now else ""
    screen.command(f'eunoe recall {SCOPE} "{question.text}" -n 3 --why{day}')
    start = time.perf_counter()
    hits = memory.recall(SCOPE, question.text, limit=3, now=question.now or None)
    seconds = time.perf_counter() - start
    screen.result(draw(hit_entries(hits, why=True, most=3)))
    screen.say(f"{len(hits)} hits in {seconds * 1000:.0f} ms", "dim")
    screen.pause()


def _change(screen: Screen, memory: Memory) -> None:
    screen.step("Plans change, nothing is overwritten")
    screen.say("The launch moved from April to May. An update closes the old fact and links the new one to it.")
    screen.command(f'eunoe update {SCOPE} {PLAN} "{NEW_PLAN}" --valid-from {CHANGED}')
    receipt = memory.update(SCOPE, PLAN, NEW_PLAN, valid_from=CHANGED, time=CHANGED)
    screen.command(f"eunoe history {SCOPE} {PLAN}")
    screen.result(draw(item_entries(memory.history(SCOPE, receipt.id))))
    screen.command(f'eunoe recall {SCOPE} "launch date" --kind fact --as-of 2025-02-01')
    before = memory.recall(SCOPE, "launch date", kinds=["fact"], limit=1, as_of="2025-02-01")
    screen.say(f"What was true in February: {before[0].text}")
    screen.pause()


def _form(screen: Screen, memory: Memory) -> None:
    screen.step("Memories form themselves")
    screen.say("An agent observes each turn and asks for a context before each reply. It learns what is worth it.")
    screen.command(f"eunoe observe {TALK} --file talk.jsonl")
    memory.observe(TALK, TALK_MESSAGES)
    screen.command(f"eunoe form {TALK}")
    report = memory.form(TALK)
    screen.say(f"{report.messages} messages read, {len(report.stored)} memories made, without a language model\n")
    screen.say("A day later, in another session, this stands before the agent's reply:")
    screen.command(f'eunoe context {LATER} "{ASKED}" --tokens 400')
    screen.result(Text(memory.context(LATER, ASKED, tokens=400).text))
    screen.pause()


def _forget(screen: Screen, memory: Memory) -> None:
    screen.step("Forgotten means gone")
    screen.say(f"Jonas once wrote: “{memory.get(SCOPE, SECRET).text}”")
    screen.command(f"eunoe forget {SCOPE} {SECRET} --verify --yes")
    report = memory.forget(SCOPE, SECRET, verify=True)
    traces = "no table, file, index or cache holds a trace" if report.verified else ", ".join(report.traces)
    screen.say(f"{len(report.messages)} message and {report.vectors} vector removed; {traces}.\n")
    screen.say("And it stays gone when the same conversation is read again:")
    screen.command(f"eunoe observe {SCOPE} --file conversation.jsonl")
    outcomes = [receipt.outcome for receipt in memory.observe(SCOPE, CONVERSATION)]
    known, refused = outcomes.count("duplicate"), outcomes.count("forgotten")
    screen.say(f"{known} messages known already, {refused} refused (forgotten before)")
    screen.pause()


def _leave(screen: Screen, keep: Path | None) -> None:
    screen.step("Your turn")
    if keep:
        screen.say(f"The tour's store is kept in {keep}. Go on with it:")
        screen.command(f'eunoe recall --store {keep} {SCOPE} "Who lent us the steam box?" --why')
        screen.command(f"eunoe list --store {keep} {SCOPE} --kind fact")
    else:
        screen.say("The tour's store is gone now; `eunoe demo --keep tour.db` keeps it. In your own:")
    screen.command('eunoe remember user=me "I prefer window seats."')
    screen.command('eunoe recall user=me "Where do I like to sit?" --why')
    screen.command("eunoe status")
    screen.command("eunoe --help")


@contextmanager
def _store_path(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="eunoe-demo-", ignore_cleanup_errors=True) as folder:
            yield Path(folder) / "tour.db"
        return
    if keep.exists():
        raise InputError(f"{keep} is there already: name a new file for the tour's store")
    yield keep
