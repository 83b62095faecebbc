"""A discussion with messages and chunk memories, and an author who writes what a test tells them to."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eunoe.apps.discussion.authors import Prompts
from eunoe.apps.discussion.log import prepare_discussion
from eunoe.apps.discussion.model import Chunk, ChunkMemory, KeywordMemory, discussion_scope, memory_item
from eunoe.memory import Memory

SCOPE = discussion_scope("trip", "anna")


class ScriptedAuthor:
    """Answers from a list in turn, or from a function of the inputs; keeps the inputs."""

    name = "scripted"

    def __init__(
        self,
        answers: Iterable[str | Exception] | Callable[[Mapping[str, str]], str],
        prompts: Prompts = Prompts("", ""),  # noqa: B008 - it never changes
    ) -> None:
        self.prompts = prompts
        self.inputs: list[Mapping[str, str]] = []
        self._answers = iter(()) if callable(answers) else iter(answers)
        self._function = answers if callable(answers) else None

    def reads(self, name: str) -> bool:
        return True

    def write(self, inputs: Mapping[str, str]) -> str:
        self.inputs.append(inputs)
        answer = self._function(inputs) if self._function else next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def joined(inputs: Mapping[str, str]) -> str:
    """An answer that holds all the author was given."""
    return "\n".join(filter(None, inputs.values()))


def say(memory: Memory, *numbers: int) -> None:
    """Messages `m1`, `m2` and so on, of which no engine forms memories."""
    made = [{"role": "user", "content": f"Words of {n}", "id": f"m{n}"} for n in numbers]
    memory.streams.configure(SCOPE, consolidation_prompt="")
    memory.observe(SCOPE, [{**each, "metadata": {"former": "discussion"}} for each in made])


def chunk_memory(number: int, text: str = "", **changes: Any) -> ChunkMemory:
    """The memory of the chunk that is the message of this number."""
    name = f"m{number}"
    fields: dict[str, Any] = {
        "text": text or f"Memory {number} tells of stop {number}.",
        "id": f"chunk_memory:{name}",
        "hash": f"hash-{number}",
        "chunk": Chunk("chunk_memory", float(number), name, name, "digest"),
        "source": (name,),
        "place": float(number),
    }
    return ChunkMemory(**{**fields, **changes})


def remember_chunks(memory: Memory, *memories: ChunkMemory) -> None:
    prepare_discussion(memory, SCOPE)
    memory.remember_many(SCOPE, map(memory_item, memories), replace=True, again=True)


def fill(memory: Memory, *numbers: int) -> None:
    """Messages, and a chunk memory of each."""
    say(memory, *numbers)
    remember_chunks(memory, *map(chunk_memory, numbers))


def remember_keyword(memory: Memory, number: int, title: str, summary: str) -> str:
    """A keyword memory that rests on the message of this number; its id."""
    id = f"keyword_memory:m{number}:0"
    made = KeywordMemory(title=title, summary=summary, id=id, source=(f"m{number}",), place=float(number))
    memory.remember_many(SCOPE, [memory_item(made)], replace=True, again=True)
    return id
