"""`python -m bench`: quality and speed, measured on stores of its own.

Each bench is a module with `measure`, which gives its figures as JSON has them, and `rows`, which shows them.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import StatusLine, engine_report
from bench import cold as cold_bench
from bench import engine as engine_bench
from bench import multihop as multihop_bench
from bench.peers import PEERS
from bench.sessions import MEMORIES
from eunoe.cli import display
from eunoe.cli.app import run
from eunoe.cli.command import Call, Command, EmbedderOption, JsonOption, MisuseError, Options, Reply, command
from eunoe.cli.inputs import RecipeOption, argument
from eunoe.errors import InputError
from eunoe.memory import check_no_store, open_output

_DISCUSSION_SIZES = (1250, 2500, 5000)
"""How many messages creators are given."""

_CONVERSATIONS_HELP = "Conversations with questions: the plain format, or LoCoMo's own. Without one, our own."
_LEARNING_HELP = (
    "Conversations with facts (JSON), or any number of files of labelled turns (.txt). Without one, our own."
)
_PASSAGES_HELP = "Passages, and questions with the passages that answer them."
_PEERS_HELP = f"Peers, with commas; 'none' or any of {', '.join(PEERS)}."

ConversationsArgument = Annotated[Path | None, argument("[FILE]", _CONVERSATIONS_HELP)]


def _measure(call: Call, name: str, asking: str = "", **options: Any) -> Reply:
    """Run a bench. `asking` is what stands before a bar that counts questions; without it a line says what is done."""
    bench = import_module(f"bench.{name}")
    if "embedder" not in options and call.options.embedder:
        options["embedder"] = call.options.embedder
    with display.progress(f"asking {asking}") if asking else _status_line() as progress:
        result = bench.measure(**options, progress=progress)
    return Reply(result, *bench.rows(result))


def _name(file: Path | None) -> str:
    return file.name if file else "talk"


@command("python -m bench recall --embedder none", without=("store",))
def recall(
    call: Call,
    file: ConversationsArgument = None,
    recipe: RecipeOption = "default",
    together: Annotated[bool, typer.Option("--together", help="Put all conversations into one memory.")] = False,
) -> Reply:
    """Measure how often the right turn comes back."""
    return _measure(call, "recall", _name(file), path=file, recipe=recipe, merge=together)


@command("python -m bench languages --recipe thorough", without=("store",))
def languages(call: Call, recipe: RecipeOption = "default") -> Reply:
    """Measure how often a question in another language finds an English turn."""
    return _measure(call, "languages", "in four languages", recipe=recipe)


@command("python -m bench multihop --set technical", without=("store",))
def multihop(
    call: Call,
    file: Annotated[Path | None, argument("[FILE]", _PASSAGES_HELP)] = None,
    set: Annotated[str, typer.Option("--set", metavar="NAME", help="In place of a file, our own: technical.")] = "",
    recipe: RecipeOption = "documents",
    titles: Annotated[bool, typer.Option("--titles/--no-titles", help="Put each title above its text.")] = True,
    extractor: Annotated[str, typer.Option(help="What finds names: builtin, spacy, spacy:MODEL.")] = "builtin",
    adds: Annotated[bool, typer.Option("--adds/--no-adds", help="Measure what adding one passage costs.")] = True,
) -> Reply:
    """Measure how often all passages that a question needs come back.

    The technical set takes --recipe, the recipe to measure; a file takes the other options.
    """
    if (file is None) == (not set) or set not in ("", "technical"):
        raise MisuseError("name a file, or --set technical")
    if file is None:
        return _measure(call, "technical_set", "technical", recipe=recipe)
    sizes = multihop_bench.SIZES if adds else ()
    return _measure(call, "multihop", file.name, path=file, titles=titles, extractor=extractor, sizes=sizes)


@command("python -m bench context --tokens 2000", without=("store",))
def context(
    call: Call,
    file: ConversationsArgument = None,
    tokens: Annotated[int, typer.Option(min=1, help="The most that a context may take.")] = 2000,
    words: Annotated[int, typer.Option(min=0, help="Join turns to messages of about so many words.")] = 0,
    recipe: RecipeOption = "default",
) -> Reply:
    """Measure how often a context of so many tokens holds a turn that answers the question."""
    return _measure(call, "context", _name(file), path=file, tokens=tokens, words=words, recipe=recipe)


@command("python -m bench learning --json", without=("store",))
def learning(call: Call, files: Annotated[list[Path] | None, argument("[FILE]...", _LEARNING_HELP)] = None) -> Reply:
    """Measure what is learned without a language model: the turns that are kept, and instructions in contexts.

    For labelled turns, a line each as KIND | ROLE | BEFORE | TURN, measure how the engine judges them.
    """
    labelled = [file for file in files or () if file.suffix.lower() == ".txt"]
    conversations = [file for file in files or () if file not in labelled]
    if len(conversations) > 1 or (labelled and conversations):
        raise MisuseError("name one file of conversations, or files of labelled turns (.txt)")
    if labelled:
        return _measure(call, "labelled_turns", "about turns", paths=labelled)
    file = next(iter(conversations), None)
    return _measure(call, "learning", _name(file), path=file)


@command("python -m bench forming --atoms 10000", without=("store",))
def forming(
    call: Call,
    turns: Annotated[int, typer.Option(min=1, help="Turns to observe and contexts to ask for.")] = 1000,
    atoms: Annotated[int, typer.Option(min=1, help="Memories that the contexts are drawn from.")] = 10_000,
) -> Reply:
    """Measure what memory costs a turn: observe after it, context before it, and calls of a language model."""
    return _measure(call, "forming", turns=turns, atoms=atoms)


@command("python -m bench cold --sizes 1000,5000", without=("store", "embedder"))
def cold(
    call: Call,
    sizes: Annotated[str, typer.Option(help="Numbers of documents, with commas.")] = "",
) -> Reply:
    """Measure how soon a new process answers its first question, with and without a kept index."""
    return _measure(call, "cold", sizes=_parse_sizes(sizes) or cold_bench.SIZES)


@command("python -m bench sessions", without=("store", "embedder"))
def sessions(
    call: Call,
    memories: Annotated[int, typer.Option(min=1000, help="How many there are of the user.")] = MEMORIES,
) -> Reply:
    """Measure what a recall over all of a user costs, by the number of their sessions."""
    return _measure(call, "sessions", memories=memories)


@command("python -m bench langchain --turns 200", without=("store",))
def langchain(
    call: Call,
    turns: Annotated[int, typer.Option(min=1, help="Turns that each agent takes.")] = 500,
    atoms: Annotated[int, typer.Option(min=1, help="Memories that it recalls from.")] = 10_000,
) -> Reply:
    """Measure what memory adds to a turn of a LangChain agent: the same agent with and without it."""
    return _measure(call, "langchain", turns=turns, atoms=atoms)


@command("python -m bench langgraph --items 10000", without=("store", "embedder"))
def langgraph(
    call: Call,
    items: Annotated[int, typer.Option(min=1, help="Items in each store.")] = 10_000,
    namespaces: Annotated[int, typer.Option(min=1, help="Namespaces that they are spread over.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="How often each operation is timed.")] = 300,
) -> Reply:
    """Measure EunoeStore beside LangGraph's SqliteStore: puts, gets and searches, with an index and without."""
    return _measure(call, "langgraph", items=items, namespaces=namespaces, repeats=repeats)


@command("python -m bench discussion --messages 2000", without=("store", "embedder"))
def discussion(
    call: Call,
    messages: Annotated[int, typer.Option(min=1, help="Messages of the discussion that is read.")] = 5000,
    memories: Annotated[int, typer.Option(min=1, help="Memories of each kind in it.")] = 500,
    repeats: Annotated[int, typer.Option(min=1, help="How often each retriever is timed.")] = 300,
    sizes: Annotated[str, typer.Option(help="Messages that creators are given, with commas; 'none' for no run.")] = "",
) -> Reply:
    """Measure discussions: retrievers, keyword search beside raw FTS5, and a whole run of creators."""
    chosen = () if sizes == "none" else _parse_sizes(sizes) or _DISCUSSION_SIZES
    return _measure(call, "discussion", messages=messages, memories=memories, repeats=repeats, sizes=chosen)


@command("python -m bench server --clients 200", without=("store",))
def server(
    call: Call,
    atoms: Annotated[int, typer.Option(min=100, help="Memories in the store.")] = 10_000,
    users: Annotated[int, typer.Option(min=1, help="Users whose memories they are, each a scope.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.5, help="Of each measurement.")] = 10.0,
    clients: Annotated[int, typer.Option(min=1, help="Clients at once in the heaviest one.")] = 200,
    processes: Annotated[int, typer.Option(min=1, max=64, help="Processes of the server.")] = 1,
) -> Reply:
    """Measure a server beside the memory in the process: what HTTP adds, recalls a second, start to ready."""
    return _measure(call, "server", atoms=atoms, scopes=users, seconds=seconds, clients=clients, processes=processes)


@command("python -m bench engine --sizes 50000 --peers sqlite-vec", without=("store", "embedder"))
def engine(
    call: Call,
    sizes: Annotated[str, typer.Option(help="Numbers of memories, with commas.")] = "",
    peers: Annotated[str, typer.Option(help=_PEERS_HELP)] = "",
    million: Annotated[bool, typer.Option(help="Also Eunoe alone with 1,000,000 in 10,000 scopes.")] = True,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, short time limits, no million.")] = False,
    queries: Annotated[int, typer.Option(min=1, help="Searches timed per engine and size.")] = 500,
    folder: Annotated[Path | None, typer.Option(help="Where the temporary stores are made.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a Markdown table to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a PNG of the figures to this file.")] = None,
) -> None:
    """Measure Eunoe beside sqlite-vec, chroma, lancedb, LangGraph's stores and mem0; no model is timed."""
    chosen_sizes = _parse_sizes(sizes) or (engine_bench.QUICK_SIZES if quick else engine_bench.SIZES)
    try:
        chosen_peers = engine_bench.check_peers([] if peers == "none" else _split_commas(peers)) if peers else None
    except ValueError as error:
        raise MisuseError(str(error)) from error
    _check_targets(markdown, plot)
    with _status_line() as progress:
        result = engine_bench.measure(
            chosen_sizes,
            chosen_peers,
            million and not quick,
            progress,
            queries=queries,
            seconds=engine_bench.QUICK_SECONDS_PER_PHASE if quick else engine_bench.SECONDS_PER_PHASE,
            folder=folder,
        )
    if call.json:
        display.write_json(result)
    else:
        engine_report.print_tables(result)
    if markdown:
        with open_output(markdown) as file:
            file.write(engine_report.markdown(result))
    if plot:
        engine_report.draw_plot(result, plot)


@contextmanager
def _status_line() -> Iterator[StatusLine]:
    """What is being done, on one line that changes; on plain lines where standard error is not a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield display.say
        return
    with console.status("starting") as status:
        yield status.update


def _check_targets(markdown: Path | None, plot: Path | None) -> None:
    """Refuse at once what would fail only after everything was measured."""
    for path in filter(None, (markdown, plot)):
        if not path.parent.is_dir():
            raise InputError(f"cannot write {path}: there is no folder {path.parent}")
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"cannot write {path}: it is a folder or protected")
        check_no_store(path)
    if plot and find_spec("matplotlib") is None:
        raise InputError("--plot needs matplotlib: pip install 'eunoe[bench]'")


def _split_commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _parse_sizes(text: str) -> list[int]:
    sizes = [part.replace("_", "") for part in _split_commas(text)]
    for size in sizes:
        if not (size.isascii() and size.isdigit() and int(size)):
            raise MisuseError(f"{size!r} is not a number of memories: write them as in --sizes 1000,10000")
    return list(map(int, sizes))


def run_bench(args: Sequence[str]) -> int:
    """Run a command line such as `recall --json` and return its exit code."""
    return run(args, "bench", _commands)


def _commands() -> Any:
    app = typer.Typer(name="bench", help="Measure quality and speed.", no_args_is_help=True)

    @app.callback()
    def root(ctx: typer.Context, embedder: EmbedderOption = None, json: JsonOption = False) -> None:
        ctx.obj = Options(None, embedder, json)

    for each in globals().values():
        if isinstance(each, Command):
            each.register(app)
    return typer.main.get_command(app)


if __name__ == "__main__":
    sys.exit(run_bench(sys.argv[1:]))
