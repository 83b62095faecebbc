"""The process in which a Jinja template is rendered: in a sandbox, with little time and memory.

It runs as a script, reads the template and its values from standard input and writes the text to standard output.
Here a template that never ends, or that asks for all memory, is killed alone.
"""

import json
import sys
from contextlib import suppress

from jinja2 import StrictUndefined, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_BYTES = 512 * 1024 * 1024
MAX_CHARACTERS = 4_000_000
"""A text that is longer fits into no model."""


# Templates can use the values they are given and nothing of Python, and can include no files.
_ENVIRONMENT = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def main() -> None:
    """Render the template of standard input, or find the names in it if there are no values."""
    request = json.load(sys.stdin)
    _limit(request["seconds"])
    source, values = request["source"], request["values"]
    answer: dict[str, object]
    try:
        answer = {"names": _find_names(source)} if values is None else {"text": _render(source, values)}
    except MemoryError:
        answer = {"error": "it needs too much memory"}
    except RecursionError:
        answer = {"error": "it is nested too deeply"}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"[:1000]}
    json.dump(answer, sys.stdout)


def _find_names(source: str) -> list[str]:
    names = meta.find_undeclared_variables(_ENVIRONMENT.parse(source))
    return sorted(names - _ENVIRONMENT.globals.keys())


def _render(source: str, values: dict[str, object]) -> str:
    parts, length = list[str](), 0
    for part in _ENVIRONMENT.from_string(source).generate(values):
        length += len(part)
        if length > MAX_CHARACTERS:
            raise ValueError(f"its text has more than {MAX_CHARACTERS:,} characters")
        parts.append(part)
    return "".join(parts)


def _limit(seconds: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # not on every system; the caller has a time limit of its own
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


if __name__ == "__main__":
    main()
