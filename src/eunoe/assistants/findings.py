"""What a doctor finds: a state, what it is about, and what to do."""

from typing import Literal, NamedTuple

State = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """One line of the doctor."""

    state: State
    subject: str
    text: str
    advice: str = ""


def ok(subject: str, text: str) -> Finding:
    return Finding("ok", subject, text)


def warning(subject: str, text: str, advice: str) -> Finding:
    return Finding("warning", subject, text, advice)


def problem(subject: str, text: str, advice: str) -> Finding:
    return Finding("problem", subject, text, advice)
