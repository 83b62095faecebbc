"""How the problems of an import are told."""

from typing import Final

_MAX_PROBLEMS_SHOWN: Final = 20
"""Lines of trouble that are worth reading one by one; all of them are in the JSON."""


def problem_lines(title: str, problems: tuple[str, ...]) -> list[str]:
    lines = [f"{title}: {problem}" for problem in problems[:_MAX_PROBLEMS_SHOWN]]
    more = len(problems) - len(lines)
    return [*lines, f"{title}: {more:,} more; --json names them all"] if more else lines
