"""Nodes that read and write files of one folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eunoe.apps.discussion.workflow.environment import Environment
from eunoe.apps.discussion.workflow.node import node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.values import COUNT_KEYS
from eunoe.errors import WorkflowError
from eunoe.files import write_file
from eunoe.model.arguments import show

MAX_BYTES: Final = 10_000_000
"""A file that is longer fits into no prompt."""


def _check(_: object, environment: Environment) -> Iterator[str]:
    if environment.files is None:
        yield "there is no folder of files that workflows may use: name one with --files"


@node("GetCustomFile", required=["filepath"], keys=["delimiter", "customReturnDelimiter"], check=_check)
def get_custom_file(call: NodeCall) -> str:
    """Give the text of a file, with one delimiter in place of another. Give nothing if there is no such file."""
    path = _confine(call)
    try:
        text = _read(path)
    except FileNotFoundError:
        call.note(f"there is no file {path}")
        return ""
    delimiter, wanted = call.render("delimiter"), call.render("customReturnDelimiter")
    is_replaced = delimiter and "customReturnDelimiter" in call.node
    return wanted.join(text.split(delimiter)) if is_replaced else text


@node("SaveCustomFile", required=["filepath", "content"], keys=COUNT_KEYS, check=_check)
def save_custom_file(call: NodeCall) -> str:
    """Write a text to a file, all of it or nothing."""
    path, content = _confine(call), call.render("content")
    if path.is_dir() or path == call.run.environment.files:
        raise WorkflowError(f"{path} is a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, content.encode("utf-8", "replace"), mode=0o666)  # as every new file, less what the mask takes
    return f"File successfully saved to {path}"


def _confine(call: NodeCall) -> Path:
    """The file that a node names, with links followed. Raise WorkflowError if it is not in the folder of files."""
    name, folder = call.render("filepath").strip(), call.run.environment.files
    for problem in _check(None, call.run.environment):
        raise WorkflowError(problem)
    assert folder is not None
    if not name:
        raise WorkflowError("filepath is empty")
    try:
        path = (folder / name).resolve()
    except (OSError, ValueError, RuntimeError):
        raise WorkflowError(f"{show(name)} is no path of a file") from None
    if not path.is_relative_to(folder.resolve()):
        raise WorkflowError(f"{show(name)} lies outside of {folder}, the folder of files that workflows may use")
    return path


def _read(path: Path) -> str:
    if path.is_dir():
        raise WorkflowError(f"{path} is a folder")
    # Without O_NONBLOCK a pipe in the folder would keep the workflow waiting for ever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise WorkflowError(f"{path} is no file")
        if status.st_size > MAX_BYTES:
            raise WorkflowError(f"{path} is longer than {MAX_BYTES:,} bytes")
        content = file.read(MAX_BYTES)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WorkflowError(f"{path} is no text in UTF-8") from None
