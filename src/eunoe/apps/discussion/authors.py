"""Who puts memories in words: a workflow, a language model, or nobody, where the words of the chat are used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

from eunoe.apps.discussion.settings import AuthorSettings
from eunoe.errors import EunoeError, LlmError, WorkflowError
from eunoe.form.summaries import PATTERNS
from eunoe.llm.contract import CutAnswerError, Llm, Prompt
from eunoe.memory import Memory
from eunoe.model.result import Lease
from eunoe.model.scope import Scope
from eunoe.text.normalize import escape_xml, fold, replace_surrogates
from eunoe.text.sentences import split_sentences

RunWorkflow = Callable[[str, Mapping[str, str]], str]
"""Runs the workflow of a name with its inputs, in order `{agent1Input}` and so on, and returns its result."""
FindModel = Callable[[str, str], Llm | None]
"""Finds the language model for an endpoint and a preset; both may be empty."""

MAX_ANSWER_CHARACTERS: Final = 100_000
"""No memory is longer. A model that writes more has lost its way."""
_MORE_ROOM: Final = 4
"""So many times the tokens an answer may have that broke off."""
_THOUGHT: Final = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
"""What some models write before their answer."""
MIN_GUARDED_CHARACTERS: Final = 500
"""A shorter text may shrink as it likes."""
_MAX_GROWTH_CHARACTERS: Final = 4000
"""So much longer than all it was made from an answer may be."""
_MIN_ECHO_CHARACTERS: Final = 40
"""A shorter sentence of a prompt may stand in an answer by chance."""
_INPUT: Final = re.compile(r"\[\w+\]")
"""Where an input stands in a prompt."""
_MIN_REPEATED_WORDS: Final = 40
_MAX_REPETITION: Final = 10
"""An answer with more than so many words for each different one goes round in circles, unless what it was made from
does too."""


class NothingError(LlmError):
    """An author says that there is nothing to write. Of a chunk that is a result; a document stays as it is."""


class Author(Protocol):
    """Writes a text out of inputs. Raises LlmError or WorkflowError if it cannot."""

    @property
    def name(self) -> str:
        """Who it is, for the record: `workflow:NAME`, or the name of the language model."""

    def write(self, inputs: Mapping[str, str]) -> str:
        """Write a text, which is never blank. `inputs` are the parts by their names in prompts, such as `TextChunk`, in
        order: a workflow gets their values as `{agent1Input}`, `{agent2Input}` and so on."""

    def reads(self, name: str) -> bool:
        """Whether it is shown the input of this name."""

    @property
    def prompts(self) -> Prompts:
        """What it asks, as far as that is known. An answer that repeats it is none."""


class Prompts(NamedTuple):
    """What a language model is asked unless the settings say otherwise. Names in brackets stand for the inputs."""

    system: str
    prompt: str
    material: tuple[str, ...] = ()
    """Inputs that are given in any case, at the end if the prompts do not name them; empty: all of them."""

    def names(self, name: str) -> bool:
        """Whether an input has a place in them."""
        return f"[{name}]" in self.system or f"[{name}]" in self.prompt


class AuthorSources(NamedTuple):
    """Where authors come from."""

    find_model: FindModel
    run_workflow: RunWorkflow | None = None

    @classmethod
    def of(cls, memory: Memory, find_model: FindModel | None, run_workflow: RunWorkflow | None) -> AuthorSources:
        """Those that are given; without a way to find models every endpoint and preset means the memory's own."""
        return cls(find_model or (lambda endpoint, preset: memory.llm), run_workflow)


@dataclass(frozen=True, slots=True)
class WorkflowAuthor:
    """A workflow that is run with the inputs."""

    workflow: str
    run: RunWorkflow

    @property
    def name(self) -> str:
        return f"workflow:{self.workflow}"

    @property
    def prompts(self) -> Prompts:
        return Prompts("", "")

    def reads(self, name: str) -> bool:
        return True

    def write(self, inputs: Mapping[str, str]) -> str:
        with _errors_of(self.name, WorkflowError):
            return check_answer(self.run(self.workflow, inputs), self.name)


@dataclass(frozen=True, slots=True)
class PromptAuthor:
    """A language model that is asked one question."""

    llm: Llm
    prompts: Prompts
    max_tokens: int = 400
    schema: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.llm.name

    def reads(self, name: str) -> bool:
        return self.prompts.names(name) or name in (self.prompts.material or (name,))

    def write(self, inputs: Mapping[str, str]) -> str:
        material = self.prompts.material or inputs
        missing = (f"[{name}]" for name in material if inputs.get(name) and not self.prompts.names(name))
        text = _fill("\n\n".join((self.prompts.prompt, *missing)), inputs)
        prompt = Prompt(
            _fill(self.prompts.system, inputs),
            text,
            self.schema,
            name="memory",
            max_tokens=self.max_tokens,
            operation="discussion",
        )
        with _errors_of(self.name, LlmError):
            try:
                answer = self.llm.ask(prompt).text
            except CutAnswerError:
                answer = self.llm.ask(replace(prompt, max_tokens=prompt.max_tokens * _MORE_ROOM)).text
            return check_answer(answer, self.name)


@contextmanager
def _errors_of(name: str, kind: type[EunoeError]) -> Iterator[None]:
    """What is of somebody else's making may raise anything: then an error of ours names it, without its words."""
    try:
        yield
    except EunoeError:
        raise
    except Exception as error:
        raise kind(f"{name} failed: {type(error).__name__}") from error


def choose_author(
    settings: AuthorSettings, defaults: Prompts, sources: AuthorSources, schema: Mapping[str, Any] | None = None
) -> Author | None:
    """The workflow that the settings name, else the language model of their endpoint; None if there is neither."""
    if settings.workflow:
        if sources.run_workflow is None:
            raise WorkflowError(
                f"the settings name the workflow {settings.workflow!r}, and nothing here can run workflows: "
                "give run_workflow, or a folder of workflows"
            )
        return WorkflowAuthor(settings.workflow, sources.run_workflow)
    llm = sources.find_model(settings.endpoint, settings.preset)
    if llm is None:
        return None
    own = defaults._replace(system=settings.system_prompt or defaults.system, prompt=settings.prompt or defaults.prompt)
    return PromptAuthor(llm, own, settings.max_tokens, None if settings.prompt else schema)


def _fill(prompt: str, inputs: Mapping[str, str]) -> str:
    """Put the inputs in the place of their names, in one pass, so that a name within an input stays a word."""
    names = re.compile(r"\[({})\]".format("|".join(map(re.escape, inputs))))
    return names.sub(lambda match: fence(match[1], inputs[match[1]]), prompt)


def fence(name: str, text: str) -> str:
    """A text as data: nothing in it can end the fence."""
    return f"<{name}>\n{escape_xml(text)}\n</{name}>"


def says_nothing(text: str) -> bool:
    """Whether a text says that there is nothing to remember, and no more.

    >>> says_nothing("Nothing worth remembering."), says_nothing("Nothing was decided about the trip.")
    (True, False)
    """
    return bool(PATTERNS.nothing.fullmatch(" ".join(text.split())))


def check_answer(answer: object, name: str) -> str:
    """What was written, without the thoughts before it; an error never repeats it."""
    if not isinstance(answer, str):
        raise LlmError(f"{name} gave a {type(answer).__name__} in place of a text")
    if len(answer) > MAX_ANSWER_CHARACTERS:
        raise LlmError(f"{name} wrote {len(answer):,} characters; at most {MAX_ANSWER_CHARACTERS:,} are taken")
    thought = _THOUGHT.match(answer)
    text = replace_surrogates(answer[thought.end() :] if thought else answer).strip()
    if says_nothing(text):
        raise NothingError(f"{name} says that there is nothing to write")
    if not any(map(str.isalnum, text)):
        raise LlmError(f"{name} gave an empty answer")
    if PATTERNS.refusal.match(text):
        raise LlmError(f"{name} refused to answer")
    return text


def write_guarded(author: Author, inputs: Mapping[str, str], *, before: str = "", least_share: float = 0.0) -> str:
    """Have an author write a text that takes the place of `before`; raise LlmError if it cannot be taken."""
    answer = author.write(inputs).strip()
    guard_answer(author, answer, " ".join(inputs.values()), before, least_share)
    return answer


def guard_answer(author: Author, answer: str, given: str, before: str = "", least_share: float = 0.0) -> None:
    """Raise LlmError if an answer that was made from what was given cannot be taken in the place of `before`."""
    if fault := find_fault(answer, given, before, least_share, author.prompts):
        raise LlmError(f"{author.name} gave an answer that cannot be used: {fault}")


def find_fault(answer: str, given: str, before: str, least_share: float, prompts: Prompts) -> str:
    """Say why an answer is not taken, in words that repeat none of it; empty if it is.

    >>> find_fault(" ", "Anna likes tea.", "", 0.5, Prompts("", ""))
    'it was empty'
    """
    if not any(map(str.isalnum, answer)):
        return "it was empty"
    if len(before) >= MIN_GUARDED_CHARACTERS and len(answer) < least_share * len(before):
        return f"it had {len(answer)} characters in place of {len(before)}"
    if len(answer) > len(given) + _MAX_GROWTH_CHARACTERS:
        return f"it had {len(answer)} characters, made from {len(given)}"
    words, said = answer.split(), given.split() or [""]
    usual = max(_MAX_REPETITION, len(said) / len(set(said)))  # words for each different one
    if len(words) >= _MIN_REPEATED_WORDS and len(words) / len(set(words)) > usual:
        return "it repeated the same words over and over"
    parts = _INPUT.split(f"{prompts.system}\n{prompts.prompt}")
    asked = [_even(sentence) for part in parts for sentence in split_sentences(part)]
    written, told = _even(answer), _even(given)
    if any(len(each) >= _MIN_ECHO_CHARACTERS and each in written and each not in told for each in asked):
        return "it repeated the prompt"
    return ""


def _even(text: str) -> str:
    """A text as echoes are compared."""
    return " ".join(fold(text).split())


@contextmanager
def attempt(memory: Memory, scope: Scope, lease: Lease) -> Iterator[None]:
    """Hold on to a lease while a text is written. A failure is noted with it, and the work is due again after a pause;
    where somebody else changed something meanwhile, it is due at once."""
    try:
        with memory.leases.renewing(scope, lease):
            yield
    except (LlmError, WorkflowError) as error:
        memory.leases.fail(scope, lease, str(error))
        raise
    except BaseException:
        memory.leases.release(scope, lease)
        raise
