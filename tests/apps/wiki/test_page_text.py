"""Pages and their links, as models write them and as they are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from eunoe.apps.wiki.agents import WikiPage, WikiStructure
from eunoe.apps.wiki.pages import LinkTargets, render_index, render_page

FILES = ["src/cart.py", "README.md"]
STRUCTURE = WikiStructure.model_validate(
    {
        "title": "Shop",
        "description": "A shop.",
        "sections": [
            {
                "title": "Core",
                "pages": [
                    {
                        "id": "cart",
                        "title": "The cart",
                        "description": "What is bought.",
                        "file_paths": ["src/cart.py"],
                    },
                    {"id": "data-model", "title": "Data *model*"},
                ],
            }
        ],
    }
)


def targets(out: str = "/repository/wiki") -> LinkTargets:
    return LinkTargets(STRUCTURE, FILES, Path("/repository"), Path(out))


def body(text: str, out: str = "/repository/wiki") -> str:
    page = WikiPage(id="cart", title="The cart")
    return render_page(page, text, targets(out)).removesuffix("\n\n---\n\n[Contents](index.md)\n")


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("data-model", "data-model.md"),
        ("data-model.md#keys", "data-model.md#keys"),
        ("./data-model.md", "data-model.md"),
        ("Data Model", None),
        ("<Data%20Model>", "data-model.md"),
        ("/wiki/data-model", None),
        ("index.md", "index.md"),
        ("src/cart.py", "../src/cart.py"),
        ("/src/cart.py#L3", "../src/cart.py#L3"),
        ("https://example.org/a", "https://example.org/a"),
        ("#below", "#below"),
        ("../../etc/passwd", None),
        ("file:///etc/passwd", None),
        ("javascript:alert", None),
        ("nowhere.md", None),
        ("", None),
    ],
)
def test_links_lead_somewhere_or_are_words(link: str, target: str | None) -> None:
    expected = f"# T\n\n[there]({target})" if target else "# T\n\nthere"
    if " " in link:
        expected = f"# T\n\n[there]({link})"  # no link in Markdown either
    assert body(f"# T\n\n[there]({link})") == expected


def test_a_wiki_elsewhere_links_no_files_of_the_repository() -> None:
    assert body("# T\n\n[code](src/cart.py), ![picture](a.png)", "/elsewhere") == "# T\n\ncode, picture"


def test_reference_links_are_put_right_too() -> None:
    assert body("# T\n\n[a]: cart.md\n[b]: ../../x") == "# T\n\n[a]: cart.md\n[b]: #"


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\n```python\nx = [a](b)\n```\nend",
        "# T\n\n`[a](b)` and ``[`](b)``",
        "# T\n\n~~~\n```\n[a](b)\n~~~",
        "# T\n\n    [code](nope.md)",
    ],
)
def test_code_is_left_as_it_is(text: str) -> None:
    assert body(text) == text


def test_diagrams_stay_and_one_that_never_ends_is_ended() -> None:
    diagram = "# T\n\n```mermaid\ngraph TD\n  A --> B"
    assert body(f"{diagram}\n```") == f"{diagram}\n```"
    assert body(diagram) == f"{diagram}\n```"


def test_a_page_inside_a_block_of_code_is_taken_out_of_it() -> None:
    assert (
        body("```markdown\n# T\n\n```mermaid\ngraph TD\n```\n\nend\n```") == "# T\n\n```mermaid\ngraph TD\n```\n\nend"
    )


def test_a_page_without_a_title_gets_its_own() -> None:
    assert body("Text.") == "# The cart\n\nText."


def test_a_page_names_its_files_and_leads_back() -> None:
    page = next(STRUCTURE.pages())
    assert render_page(page, "# Cart", targets()) == (
        "# Cart\n\n## Files\n\n- [src/cart.py](../src/cart.py)\n\n---\n\n[Contents](index.md)\n"
    )
    assert "- `src/cart.py`" in render_page(page, "# Cart", targets("/elsewhere"))


def test_the_index_links_the_pages_that_are_there() -> None:
    assert render_index(STRUCTURE, lambda id: id == "cart") == (
        "# Shop\n\nA shop.\n\n## Core\n\n- [The cart](cart.md): What is bought.\n- Data \\*model\\* (not written yet)\n"
    )


def test_a_title_is_no_markup() -> None:
    page = WikiPage(id="x", title="a](http://evil) <script>")
    structure = STRUCTURE.model_copy(update={"title": "# <b>", "sections": []})
    structure.sections.append(STRUCTURE.sections[0].model_copy(update={"pages": [page]}))
    text = render_index(structure, lambda id: True)
    assert "[a\\](http://evil) \\<script\\>](x.md)" in text
    assert text.startswith("# \\# \\<b\\>\n")


def test_a_line_of_brackets_takes_no_time() -> None:
    line = "[" * 20_000 + "](" * 20_000 + "`" * 20_001
    assert body(f"# T\n\n{line}") == f"# T\n\n{line.replace('[', '&#91;')}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[j](javascript:alert(1))", "j"),
        ("[p](missing(1).md)", "p"),
        ("[a [nested]](nope.md)", "a [nested]"),
        ("[x](nope.md 'it (x)')", "x"),
        ("[two\nlines](nope.md) end", "two\nlines end"),
        ("[x](\nnope.md) end", "x\n end"),
        ("> [two\n> lines](nope.md) end", "> two\n> lines end"),
        ("[![i](n.png)](nope.md)", "i"),
        ("[![i](n.png)](cart.md)", "[i](cart.md)"),
        ("![a [x](nope.md)](cart.md)", "![a [x](nope.md)](cart.md)"),
        ("![a [x](nope.md)](n.png)", "a x"),
        ("<javascript:alert(1)>", "&lt;javascript:alert(1)>"),
        ("<file:///etc/passwd>", "&lt;file:///etc/passwd>"),
        ("<https://example.org> <a@example.org>", "<https://example.org> <a@example.org>"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("x <script>alert(1)</script>", "x &lt;script>alert(1)&lt;/script>"),
        ("x <a href='javascript:alert(1)'>y</a>", "x &lt;a href='javascript:alert(1)'>y&lt;/a>"),
        ("<div>\n[x](nope.md)\n</div>", "&lt;div>\nx\n&lt;/div>"),
        ("<details>\n<img src=x onerror=y>\n</details>", "<details>\n&lt;img src=x onerror=y>\n</details>"),
        ("one<br>two", "one<br>two"),
        ("[r]\n\n[r]: nope.md 'title'", "[r]\n\n[r]: #"),
        ("[r]\n\n[r]:\n  javascript:x", "[r]\n\n[r]: #\n"),
        ("- [x](nope.md)\n  - [y](cart)", "- x\n  - [y](cart.md)"),
        ("| a | b |\n|---|---|\n| [x](nope.md) | [x](nope.md) |", "| a | b |\n|---|---|\n| x | x |"),
        ("| a |\n|---|\n| \\| [x](nope.md) |", "| a |\n|---|\n| \\| x |"),
        ("> " * 30 + "[x](nope.md)", "> " * 30 + "x"),
    ],
)
def test_nothing_that_leads_nowhere_stays(text: str, expected: str) -> None:
    assert body(f"# T\n\n{text}") == f"# T\n\n{expected}".rstrip(" ")
