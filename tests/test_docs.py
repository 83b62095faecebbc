"""Every example in docstrings, the README and docs/ runs and says what it claims."""

import doctest
import importlib
import pkgutil
import re
import shlex
from pathlib import Path

import pytest
from tests.embed.folder_models import xlm_roberta

import eunoe
from eunoe.cli.app import run
from eunoe.errors import MissingPackageError
from eunoe.model.stream import PRESETS, SETTING_NAMES, Settings

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def modules() -> list[str]:
    found = pkgutil.walk_packages(eunoe.__path__, "eunoe.")
    return ["eunoe", *(module.name for module in found if not module.name.endswith("__main__"))]


def blocks() -> list[tuple[str, str]]:
    return [
        (f"{page.relative_to(ROOT)}:{number}", block)
        for page in PAGES
        for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1)
    ]


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_hold(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except MissingPackageError as error:
        pytest.skip(f"{error} (Agentflow needs Python 3.12)")
    result = doctest.testmod(module, extraglobs={"eunoe": eunoe}, raise_on_error=False)
    assert result.failed == 0


@pytest.mark.parametrize(("place", "code"), blocks(), ids=lambda value: value if ":" in value[:60] else "code")
def test_examples_in_the_docs_run(place: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if "docs/embedders" in place:  # its models lie in a folder
        xlm_roberta(tmp_path / "models" / "multilingual-e5-small")
    try:
        exec(compile(code, place, "exec"), {"__name__": "__main__"})
        if "integrations/wiki" in place:  # these make a repository, which may be there
            exec(compile(code, place, "exec"), {"__name__": "__main__"})
    except MissingPackageError as error:
        pytest.skip(f"{error} (Agentflow needs Python 3.12)")


def test_there_are_examples_to_run() -> None:
    assert sum(place.startswith("README") for place, _ in blocks()) >= 1


@pytest.mark.parametrize(("name", "least"), [("cli.md", 10), ("backup.md", 3)])
def test_commands_in_the_docs_run(name: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EUNOE_STORE", str(tmp_path / "memory.db"))
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    commands = [line[2:] for block in CONSOLE.findall(page) for line in block.splitlines()]
    assert len(commands) >= least
    assert [command for command in commands if run(shlex.split(command)[1:]) != 0] == []


def links(page: Path) -> list[str]:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    return [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    local = [link for link in links(page) if link and "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


ROOMS = sorted(folder.name for folder in (ROOT / "src" / "eunoe").iterdir() if (folder / "__init__.py").exists())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_are_there(page: Path) -> None:
    named = re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w/]+\.\w+)`", page.read_text(encoding="utf-8"))
    assert [file for file in named if not (ROOT / "src" / "eunoe" / file).exists()] == []


def told(value: object) -> str:
    """A setting as the table of settings has it."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")


def test_the_table_of_settings_is_true() -> None:
    page = (ROOT / "docs" / "forming.md").read_text(encoding="utf-8")
    rows = {name: rest for name, *rest in re.findall(r"^\| `(\w+)` " + r"\|([^|]*)" * 5 + r"\|$", page, re.MULTILINE)}
    assert list(rows) == list(SETTING_NAMES)
    for name in SETTING_NAMES[1:]:
        default, *own = (cell.strip().removesuffix(".0") for cell in rows[name][:4])
        assert (name, default) == (name, told(getattr(Settings(owner=("user",)), name)))
        for preset, cell in zip(PRESETS.values(), own, strict=True):
            value = told(getattr(preset, name))
            assert (name, "own" if name.endswith("_prompt") else value) == (name, cell or default)
