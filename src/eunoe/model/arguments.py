"""Arguments: the closed choices that verbs take, the checks of what callers pass, and how times are read.

A check returns the value, or raises an InputError that says what to pass instead.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from numbers import Integral
from operator import index
from pathlib import PurePosixPath
from reprlib import Repr
from typing import Any, Final, Literal, TypeVar, cast, get_args

from eunoe.errors import InputError

T = TypeVar("T")
C = TypeVar("C")
P = TypeVar("P")

MAX_TEXT_CHARACTERS: Final = 32 * 1024 * 1024
"""SQLite holds more, but indexing one text of this size already takes seconds."""
MAX_NAME_CHARACTERS: Final = 1024
MAX_INTEGER: Final = 2**63 - 1
"""The highest number that a database holds."""
MAX_PATH_CHARACTERS: Final = 4096
_MAX_FILE_NAME_BYTES: Final = 255
"""Of one name in a path, on all common file systems."""
_MAX_SECONDS: Final = 1e9
"""Some thirty years: longer than any wait, and not too long for the clocks of all platforms."""
_SHOWN_CHARACTERS: Final = 60
_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _SHOWN_CHARACTERS


def show(value: object) -> str:
    """Return a value as an error shows it: short, whatever it is."""
    text = _SHORT.repr(value)
    return text if len(text) <= 2 * _SHOWN_CHARACTERS else f"{text[: 2 * _SHOWN_CHARACTERS]}…"


def check_text(text: object, name: str = "text") -> str:
    """Return the text if it can be stored exactly."""
    if not isinstance(text, str):
        raise InputError(f"{name} must be text, not {type(text).__name__}")
    if len(text) > MAX_TEXT_CHARACTERS:
        raise InputError(f"{name} has {len(text):,} characters; at most {MAX_TEXT_CHARACTERS:,} fit: split it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{name} holds a lone surrogate at character {error.start}, which no encoding can store: "
                "pass text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') instead"
            ) from None
    return text


def shorten(text: str) -> str:
    """Return a text as the `repr` of a memory shows it."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def check_name(value: object, name: str) -> str:
    """Return an id, a label or another short name; it may be empty, but not blank."""
    text = check_text(value, name)
    if text and (len(text) > MAX_NAME_CHARACTERS or not text.strip()):
        raise InputError(f"{name} {show(text)} is blank or longer than {MAX_NAME_CHARACTERS} characters")
    return text


def check_id(value: object, name: str = "id") -> str:
    """Return a name that must be given."""
    if not check_name(value, name):
        raise InputError(f"{name} is empty: name one")
    return str(value)


def check_flag(value: object, name: str) -> bool:
    """Return a yes or no. Nothing else counts as one: the text "no" would mean yes."""
    if not isinstance(value, bool):
        raise InputError(f"{name} is {show(value)}: it must be True or False")
    return value


def own_name(given: object) -> str:
    """Return the name that an object has for itself; empty if it has none."""
    name = getattr(given, "name", None)
    return name.strip() if isinstance(name, str) else ""


def check_callback(value: C, name: str) -> C:
    """Return what is called on the way, or None."""
    if value is not None and (not callable(value) or isinstance(value, type)):
        raise InputError(f"{name} must be a function, not {type(value).__name__}")
    return value


def check_names(values: Iterable[str] | None, name: str) -> tuple[str, ...]:
    """Return several names, each once, in the order given; none at all is fine."""
    if values is None or values == ():
        return ()
    if isinstance(values, str):
        raise InputError(f"{name} must be a list of texts; did you mean [{show(values)}]?")
    if not _is_list(values):
        raise InputError(f"{name} must be a list of texts, not {type(values).__name__}")
    names = list(values)
    if any(not isinstance(value, str) or not value.strip() for value in names):
        raise InputError(f"{name} holds something that is not a name: {show(names)}")
    return tuple(dict.fromkeys([check_text(value, name) for value in names]))


def as_list(values: Any, name: str, single: Any = str) -> Iterable[Any]:
    """Return one value as a list of one, and several as they are; None is none."""
    if isinstance(values, list | tuple):  # what is mostly given
        return values
    if isinstance(values, single):
        return (values,)
    if values is None:
        return ()
    if not _is_list(values):
        raise InputError(f"{name} must be a list, not {type(values).__name__}")
    return cast("Iterable[Any]", values)


def _is_list(values: object) -> bool:
    is_list = isinstance(values, list | tuple)  # what is mostly given
    return is_list or (isinstance(values, Iterable) and not isinstance(values, bytes | bytearray | Mapping | type))


def parse_each(values: Any, name: str, single: Any, parse: Callable[[Any], T]) -> list[T]:
    """Read several values or a single one; an error names the place of the one at fault."""
    if values is None:
        raise InputError(f"{name}s is None: give a list, which may be empty")
    parsed = []
    for place, value in enumerate(as_list(values, f"{name}s", single)):
        try:
            parsed.append(parse(value))
        except InputError as error:
            raise InputError(f"{name} {place}: {error}; nothing was stored") from None
    return parsed


def check_count(value: object, name: str, least: int = 1, most: int = MAX_INTEGER) -> int:
    """Return a whole number within bounds. Those of numpy become Python's own."""
    count = None if isinstance(value, bool) or not isinstance(value, Integral) else index(value)
    if count is None or not least <= count <= most:
        bounds = f"of at least {least}" if most == MAX_INTEGER else f"from {least} to {most:,}"
        raise InputError(f"{name} is {show(value)}: it must be a whole number {bounds}")
    return count


def check_seconds(value: object, name: str) -> float:
    """Return a duration in seconds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _MAX_SECONDS:
        raise InputError(f"{name} is {show(value)}: give a number of seconds")
    return float(value)


def check_number(value: object, name: str, least: float, most: float) -> float:
    """Return a number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(f"{name} is {show(value)}: it must be a number from {least:g} to {most:g}")
    return float(value)


def check_choice(value: object, name: str, choices: Sequence[T]) -> T:
    """Return the value if it is one of the choices."""
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    raise InputError(f"{name} is {show(value)}: choose one of {', '.join(map(str, choices))}")


def check_choices(values: Iterable[Any], name: str, choices: Sequence[T]) -> tuple[T, ...]:
    """Return some of the choices, at least one."""
    chosen = tuple(as_list(values, name))
    if not chosen or any(not isinstance(value, str) or value not in choices for value in chosen):
        raise InputError(f"{name} {show(chosen)} must be some of {', '.join(map(str, choices))}")
    return chosen


def check_metadata(value: object, name: str = "metadata") -> Mapping[str, Any]:
    """Return the mapping if JSON can carry it without loss."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be a mapping, not {type(value).__name__}")
    if value:
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            same = json.loads(text) == value
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"{name} cannot be written as JSON: {error}") from None
        check_text(text, name)
        if not same:
            raise InputError(f"{name} would not come back from JSON as it is: use texts as keys and lists, not tuples")
    return value


def check_path(path: P, name: str) -> P:
    """Return a path as it is, if a file system can have it."""
    text = str(path)
    try:
        longest = max(map(len, os.fsencode(text).split(b"/")))
    except UnicodeEncodeError:
        raise InputError(f"{name} {show(text)} names no file: it holds half of a surrogate pair") from None
    if not text.strip() or "\0" in text or len(text) > MAX_PATH_CHARACTERS or longest > _MAX_FILE_NAME_BYTES:
        raise InputError(f"{name} {show(text)} names no file")
    return path


def normalize_path(path: str) -> str:
    """Return one spelling for one file: forward slashes, no `./`, no doubled slashes.

    >>> normalize_path("./src//a\\\\b.py")
    'src/a/b.py'
    """
    return str(PurePosixPath(path.replace("\\", "/")))


AtomKind = Literal["fact", "observation"]
Kind = Literal["message", "fact", "observation"]
Outcome = Literal["stored", "duplicate", "superseded", "forgotten", "conflict", "ignored"]
RecipeName = Literal["default", "thorough", "lexical", "dense", "rrf", "associative", "documents"]
ContextFormat = Literal["xml", "markdown", "json", "messages"]
LookupMode = Literal["auto", "off"]
ReviewMode = Literal["off", "uncertain", "all"]
MemoryType = Literal["session", "user", "collective"]
Right = Literal["read", "write", "forget", "admin"]
TurnKind = Literal["instruction", "preference", "fact", "plan", "decision", "change", "request", "nothing"]
Verdict = Literal["keep", "drop", "instruction", "preference", "fact", "plan", "decision", "change"]

ATOM_KINDS: Final[tuple[AtomKind, ...]] = ("fact", "observation")
KINDS: Final[tuple[Kind, ...]] = ("message", *ATOM_KINDS)
CONTEXT_FORMATS: Final[tuple[ContextFormat, ...]] = ("xml", "markdown", "json", "messages")
LOOKUP_MODES: Final[tuple[LookupMode, ...]] = ("auto", "off")
REVIEW_MODES: Final[tuple[ReviewMode, ...]] = ("off", "uncertain", "all")
MEMORY_TYPES: Final[tuple[MemoryType, ...]] = ("session", "user", "collective")
KEPT_KINDS: Final[tuple[TurnKind, ...]] = ("instruction", "preference", "fact", "plan", "decision", "change")
"""Kinds of things that a turn may hold and that are worth keeping. They are the labels of what is formed from it."""
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
"""What a correction may say of a sentence: that it is worth keeping, that it is not, or which kind of thing it is."""
TURN_KINDS: Final[tuple[TurnKind, ...]] = (*KEPT_KINDS, "request", "nothing")
INSTRUCTION: Final = KEPT_KINDS[0]
"""What is to be done from now on."""
RIGHTS: Final[tuple[Right, ...]] = ("read", "write", "forget", "admin")


TimeLike = datetime | str | int | float

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def parse_time(value: TimeLike, name: str = "time") -> datetime:
    """Read a datetime, an ISO 8601 text or seconds since 1970. Without a zone it is taken as UTC.

    >>> parse_time("2024-05-07T18:30")
    datetime.datetime(2024, 5, 7, 18, 30, tzinfo=datetime.timezone.utc)
    """
    try:
        time = _read_time(value)
        if time is not None:
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InputError(f"cannot read {name} {show(value)}: give a datetime, ISO 8601 text or seconds since 1970")


def parse_optional_time(value: TimeLike | None, name: str = "time") -> datetime | None:
    return None if value is None else parse_time(value, name)


def utc_now() -> datetime:
    return datetime.now(UTC)


def to_micros(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _read_time(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        return datetime.fromisoformat(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _EPOCH + timedelta(seconds=value)
    return None
