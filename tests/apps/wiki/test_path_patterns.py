"""Files by path, folder and glob."""

import pytest

from eunoe.apps.wiki.files import matches_any


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/app.py", "src/app.py"),
        ("src/web/app.py", "src"),
        ("src/web", "src/web/app.py"),
        ("src/app.py", "."),
        ("src/app.py", "/"),
        ("src/app.py", "src/*.py"),
        ("src/a/b/app.py", "src/**/*.py"),
        ("src/app.py", "src/**/*.py"),
        ("src/a/b/app.py", "src/**"),
        ("src/a/b/app.py", "*.py"),
        ("app.py", "**/app.py"),
        ("src/a1.py", "src/a[0-9].py"),
        ("src/ab.py", "src/a[!0-9].py"),
        ("src/a1.py", "src/a?.py"),
        ("src/[id]/page.tsx", "src/[id]/page.tsx"),
    ],
)
def test_meant(path: str, wanted: str) -> None:
    assert matches_any(path, ["nothing", wanted])


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/app.py", "src/ap"),
        ("source/app.py", "src"),
        ("src/a/app.py", "src/*.py"),
        ("src/app.pyc", "*.py"),
        ("src/a+b.py", "src/a++b.py"),
        ("srcxapp.py", "src.app.py"),
        ("src/a/b.py", "src/a?b.py"),
        ("src/b.py", "src/[^a].py"),
    ],
)
def test_not_meant(path: str, wanted: str) -> None:
    assert not matches_any(path, [wanted])


def test_no_glob_takes_long() -> None:
    assert not matches_any("a" * 200 + "/b" * 200, ["*a" * 50 + "x", "**/" * 200 + "x", "a" * 200 + "/*b" * 200 + "/c"])
