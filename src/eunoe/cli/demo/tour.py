"""The tour: it loads, asks, changes and forgets, and shows what happened at every step."""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

import eunoe
from eunoe.cli.demo import script
from eunoe.cli.display.terminal import console, draw
from eunoe.cli.display.views import hit_entries, item_entries
from eunoe.errors import InputError
from eunoe.memory import Memory


def show_tour(keep: Path | None = None) -> None:
    """Run the tour in a store of its own, which is gone afterwards unless `keep` names a file for it."""
    screen = Screen()
    with _store_path(keep) as path, eunoe.open(path) as memory:
        _load(screen, memory)
        for number, question in enumerate(script.QUESTIONS, 1):
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
    observed = memory.observe(script.SCOPE, script.CONVERSATION)
    remembered = memory.remember_many(script.SCOPE, script.FACTS)
    seconds = time.perf_counter() - start
    sessions = {message["session"] for message in script.CONVERSATION}
    screen.command(f"eunoe observe {script.SCOPE} --file conversation.jsonl")
    screen.say(f"{sum(map(bool, observed))} messages of {len(sessions)} sessions stored")
    screen.command(f"eunoe remember {script.SCOPE} --from facts.jsonl")
    screen.say(f"{sum(map(bool, remembered))} facts stored, both in {seconds:.2f} s")
    screen.pause()


def _ask(screen: Screen, memory: Memory, number: int, question: script.Question) -> None:
    screen.step(f"Question {number} of {len(script.QUESTIONS)}")
    screen.say(question.note, "italic")
    day = f" --now {question.now}" if question.now else ""
    screen.command(f'eunoe recall {script.SCOPE} "{question.text}" -n 3 --why{day}')
    start = time.perf_counter()
    hits = memory.recall(script.SCOPE, question.text, limit=3, now=question.now or None)
    seconds = time.perf_counter() - start
    screen.result(draw(hit_entries(hits, why=True, most=3)))
    screen.say(f"{len(hits)} hits in {seconds * 1000:.0f} ms", "dim")
    screen.pause()


def _change(screen: Screen, memory: Memory) -> None:
    screen.step("Plans change, nothing is overwritten")
    screen.say("The launch moved from April to May. An update closes the old fact and links the new one to it.")
    screen.command(f'eunoe update {script.SCOPE} {script.PLAN} "{script.NEW_PLAN}" --valid-from {script.CHANGED}')
    receipt = memory.update(script.SCOPE, script.PLAN, script.NEW_PLAN, valid_from=script.CHANGED, time=script.CHANGED)
    screen.command(f"eunoe history {script.SCOPE} {script.PLAN}")
    screen.result(draw(item_entries(memory.history(script.SCOPE, receipt.id))))
    screen.command(f'eunoe recall {script.SCOPE} "launch date" --kind fact --as-of 2025-02-01')
    before = memory.recall(script.SCOPE, "launch date", kinds=["fact"], limit=1, as_of="2025-02-01")
    screen.say(f"What was true in February: {before[0].text}")
    screen.pause()


def _form(screen: Screen, memory: Memory) -> None:
    screen.step("Memories form themselves")
    screen.say("An agent observes each turn and asks for a context before each reply. It learns what is worth it.")
    screen.command(f"eunoe observe {script.TALK} --file talk.jsonl")
    memory.observe(script.TALK, script.TALK_MESSAGES)
    screen.command(f"eunoe form {script.TALK}")
    report = memory.form(script.TALK)
    screen.say(f"{report.messages} messages read, {len(report.stored)} memories made, without a language model\n")
    screen.say("A day later, in another session, this stands before the agent's reply:")
    screen.command(f'eunoe context {script.LATER} "{script.ASKED}" --tokens 400')
    screen.result(Text(memory.context(script.LATER, script.ASKED, tokens=400).text))
    screen.pause()


def _forget(screen: Screen, memory: Memory) -> None:
    screen.step("Forgotten means gone")
    screen.say(f"Jonas once wrote: “{memory.get(script.SCOPE, script.SECRET).text}”")
    screen.command(f"eunoe forget {script.SCOPE} {script.SECRET} --verify --yes")
    report = memory.forget(script.SCOPE, script.SECRET, verify=True)
    traces = "no table, file, index or cache holds a trace" if report.verified else ", ".join(report.traces)
    screen.say(f"{len(report.messages)} message and {report.vectors} vector removed; {traces}.\n")
    screen.say("And it stays gone when the same conversation is read again:")
    screen.command(f"eunoe observe {script.SCOPE} --file conversation.jsonl")
    outcomes = [receipt.outcome for receipt in memory.observe(script.SCOPE, script.CONVERSATION)]
    known, refused = outcomes.count("duplicate"), outcomes.count("forgotten")
    screen.say(f"{known} messages known already, {refused} refused (forgotten before)")
    screen.pause()


def _leave(screen: Screen, keep: Path | None) -> None:
    screen.step("Your turn")
    if keep:
        screen.say(f"The tour's store is kept in {keep}. Go on with it:")
        screen.command(f'eunoe recall --store {keep} {script.SCOPE} "Who lent us the steam box?" --why')
        screen.command(f"eunoe list --store {keep} {script.SCOPE} --kind fact")
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
