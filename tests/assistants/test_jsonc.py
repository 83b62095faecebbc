"""JSON with comments is changed in one place and nowhere else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.assistants.settings_file import Document
from eunoe.errors import InputError

ENTRY = {"command": "/usr/bin/python", "args": ["-m", "eunoe"]}
PATH = ("servers", "eunoe")

_space = st.sampled_from(["", " ", "\n", "\n\t", "  ", " // a, {comment}\n", "/* two\n lines */", "\n    "])
_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(["servers", "a//b", '"', "/*"])
_scalars = st.none() | st.booleans() | st.integers(-9, 10**9) | _names


@st.composite
def _texts(draw: st.DrawFn, depth: int = 0) -> str:
    """A text of JSON with comments, blanks and trailing commas anywhere."""
    kind = draw(st.sampled_from(["object", "array", "scalar"])) if depth else "object"
    if kind == "scalar" or depth > 3:
        return json.dumps(draw(_scalars), ensure_ascii=draw(st.booleans()))
    values = draw(st.lists(_texts(depth + 1), max_size=3))
    parts = [draw(_space) + value + draw(_space) for value in values]
    if kind == "object":
        names = draw(st.lists(_names, min_size=len(values), max_size=len(values), unique=True))
        parts = [f"{draw(_space)}{json.dumps(n)}{draw(_space)}:{part}" for n, part in zip(names, parts, strict=True)]
    trail = "," + draw(_space) if values and draw(st.booleans()) else draw(_space)
    opening, closing = "{}" if kind == "object" else "[]"
    return opening + ",".join(parts) + trail + closing


def _is_kept(old: str, new: str) -> bool:
    """Whether every letter of the old text is in the new one, in order."""
    letters = iter(new)
    return all(letter in letters for letter in old)


def _with_entry(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "servers": {**data.get("servers", {}), "eunoe": ENTRY}}


@given(_space, _texts(), _space, st.booleans())
def test_an_entry_is_added_and_all_else_stays(before: str, body: str, after: str, is_windows: bool) -> None:
    text = before + body + after
    if is_windows:
        text = text.replace("\n", "\r\n")
    document = Document(text)
    if not isinstance(document.data.get("servers", {}), dict):
        with pytest.raises(InputError, match="servers is no object"):
            document.with_value(PATH, ENTRY)
        return
    new = document.with_value(PATH, ENTRY)
    assert Document(new).data == _with_entry(document.data)
    assert _is_kept(text, new)
    if is_windows and "\n" in text:
        assert "\n" not in new.replace("\r\n", "")
    removed = Document(new).without(PATH)
    assert Document(removed).data == {"servers": {}} | document.data


@given(_texts(), st.integers(0, 2))
def test_any_member_can_be_taken_out(text: str, place: int) -> None:
    document = Document(text)
    names = list(document.data)
    if len(names) <= place:
        return
    expected = {name: value for name, value in document.data.items() if name != names[place]}
    assert Document(document.without((names[place],))).data == expected


def test_comments_order_and_indentation_stay() -> None:
    text = '// mine\n{\n\t"b": 1, // first\n\t/* the last */ "a": [1, 2,], // second\n\t// nothing more\n}\n'
    new = Document(text).with_value(PATH, ENTRY)
    assert new == (
        '// mine\n{\n\t"b": 1, // first\n\t/* the last */ "a": [1, 2,], // second\n\t// nothing more\n'
        '\t"servers": {\n\t\t"eunoe": {\n\t\t\t"command": "/usr/bin/python",\n'
        '\t\t\t"args": [\n\t\t\t\t"-m",\n\t\t\t\t"eunoe"\n\t\t\t]\n'
        "\t\t}\n\t},\n}\n"
    )


def test_a_comma_goes_before_a_comment() -> None:
    assert Document('{\n  "a": 1 // one\n}').with_value(("b",), 2) == '{\n  "a": 1, // one\n  "b": 2\n}'


def test_a_file_on_one_line_stays_on_one_line() -> None:
    assert Document('{"a":1}').with_value(("b",), {"c": [2]}) == '{"a":1, "b": {"c": [2]}}'


@pytest.mark.parametrize("text", ["", "  \n", "// only a comment\n", "/* a */"])
def test_a_text_without_a_value_gets_one(text: str) -> None:
    new = Document(text).with_value(PATH, ENTRY)
    assert Document(new).data == {"servers": {"eunoe": ENTRY}}
    assert _is_kept(text.rstrip(), new)


def test_an_entry_that_is_there_is_replaced_in_its_place() -> None:
    text = '{"servers": {"eunoe": {"command": "old"}, "other": 1}, "z": 0} // end'
    new = Document(text).with_value(PATH, {"command": "new"})
    assert Document(new).data == {"servers": {"eunoe": {"command": "new"}, "other": 1}, "z": 0}
    assert new.endswith(', "other": 1}, "z": 0} // end')


def test_items_of_a_list_are_added_and_taken_out() -> None:
    text = '{\n  "hooks": {\n    "Stop": [ // mine\n      {"command": "a"}\n    ]\n  }\n}\n'
    new = Document(text).with_item(("hooks", "Stop"), {"command": "b"})
    assert Document(new).data["hooks"]["Stop"] == [{"command": "a"}, {"command": "b"}]
    assert Document(new).without(("hooks", "Stop"), 1) == text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        "{} x",
        '{"a": tru}',
        "{,}",
        '{"a": "\n"}',
        '{"a": 01}',
        "[" * 5000,
        "{'a': 1}",
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="line"):
        Document(text)


def test_a_name_that_is_there_twice_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        Document('{"servers": {}, "servers": {}}').with_value(PATH, ENTRY)
