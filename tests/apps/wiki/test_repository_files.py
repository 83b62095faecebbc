"""What agents may read of a repository, and everything that they may not."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from eunoe.apps.wiki.files import MAX_READ_BYTES, RepositoryFiles
from eunoe.errors import InputError

SECRET = "the secret of another folder"


@pytest.fixture(params=["git", "plain"])
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    root = tmp_path / "repository"
    (root / "src").mkdir(parents=True)
    (root / "README.md").write_text("# Shop\n")
    (root / "src" / "cart.py").write_text("def total(): ...\n")
    if request.param == "git":
        subprocess.run(["git", "init", "-q", root], check=True)
    else:
        (root / ".git").mkdir()
        (root / ".git" / "config").write_text("[core]\n")
    return root


def test_files_are_read_by_their_path_below_the_root(root: Path) -> None:
    files = RepositoryFiles(root)
    assert files.names() == ["README.md", "src/cart.py"]
    paths = ("src/cart.py", "./src/cart.py", "src/../src/cart.py", str(root / "src" / "cart.py"))
    assert [files.read(path) for path in paths] == [("def total(): ...\n", 17)] * 4


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "src/../../outside/secret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "~/.profile",
        "..",
        "",
        "src/cart.py\0",
        "\ud800",
        "x" * 5000,
        ".git/config",
        "src/../.git/config",
        ".GIT/config",
        ".git./config",
        "GIT~1/config",
        "/proc/self/environ",
        "src",
        "src/none.py",
        "src/cart.py/x",
    ],
)
def test_what_is_no_file_of_the_repository_is_refused(root: Path, path: str) -> None:
    with pytest.raises(InputError):
        RepositoryFiles(root).read(path)


@pytest.mark.parametrize("path", ["..", "/", "/etc", ".git", "src/../..", "README.md/x"])
def test_what_is_no_folder_of_the_repository_is_refused(root: Path, path: str) -> None:
    with pytest.raises(InputError):
        RepositoryFiles(root).entries(path)


@pytest.mark.parametrize("target", ["../outside/secret.txt", "src/cart.py"])
def test_no_link_is_followed_wherever_it_leads(root: Path, target: str) -> None:
    (root / "link.txt").symlink_to(target)
    files = RepositoryFiles(root)
    assert "link.txt" not in files.names()
    with pytest.raises(InputError):
        files.read("link.txt")


def test_no_linked_folder_is_entered(root: Path) -> None:
    (root / "linked").symlink_to("../outside")
    files = RepositoryFiles(root)
    assert files.names() == ["README.md", "src/cart.py"]
    for path in ("linked/secret.txt", "linked/../outside/secret.txt"):
        with pytest.raises(InputError):
            files.read(path)
    with pytest.raises(InputError, match="no folder linked"):
        files.entries("linked")
    assert files.names("linked") == []


def test_a_folder_that_is_swapped_for_a_link_gives_nothing_away(root: Path) -> None:
    """The swap goes on while files are read: whatever was checked before is another thing afterwards."""
    outside = root.parent / "outside"
    (outside / "cart.py").write_text(SECRET)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "src", root / "kept")
            os.symlink(outside, root / "src")
            os.unlink(root / "src")
            os.rename(root / "kept", root / "src")

    thread = threading.Thread(target=swap)
    thread.start()
    texts = []
    try:
        files = RepositoryFiles(root)
        for _ in range(60):
            try:
                texts.append(files.read("src/cart.py")[0])
                texts += [str(entry.size) for entry in files.entries("src")]
            except InputError:
                pass
    finally:
        stop.set()
        thread.join()
    assert set(texts) <= {"def total(): ...\n", "17"}


def test_pipes_and_sockets_are_no_files_and_hold_nobody_up(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(root / "socket"))
        files = RepositoryFiles(root)
        assert files.names() == ["README.md", "src/cart.py"]
        for name in ("pipe", "socket"):
            with pytest.raises(InputError):
                files.read(name)


def test_binary_files_are_refused_and_text_in_any_encoding_is_text(root: Path) -> None:
    (root / "logo.png").write_bytes(b"\x89PNG\r\n\0\0")
    (root / "latin.txt").write_bytes("café".encode("latin-1"))
    (root / "wide.txt").write_bytes("café".encode("utf-16"))
    files = RepositoryFiles(root)
    with pytest.raises(InputError, match="binary"):
        files.read("logo.png")
    assert files.read("latin.txt")[0] == "caf�"
    assert files.read("wide.txt")[0] == "café"


def test_of_a_huge_file_only_a_part_is_read(root: Path) -> None:
    with (root / "huge.log").open("wb") as file:
        file.write(b"first\n")
        file.truncate(50_000_000_000)
        file.seek(0, os.SEEK_END)
    (root / "long.log").write_text("first\n" + "x" * 10 * MAX_READ_BYTES + "\nlast")
    files = RepositoryFiles(root)
    with pytest.raises(InputError, match="binary"):
        files.read("huge.log")
    start, size = files.read("long.log")
    end, _ = files.read("long.log", from_end=True)
    assert (len(start), start[:6], end[-5:], size) == (MAX_READ_BYTES, "first\n", "\nlast", 10 * MAX_READ_BYTES + 11)


def test_entries_have_their_sizes(root: Path) -> None:
    assert RepositoryFiles(root).entries(".") == [("src", 1, True), ("README.md", 7, False)]
    assert RepositoryFiles(root).entries("src/") == [("cart.py", 17, False)]


def test_the_folder_of_the_wiki_is_not_shown(root: Path) -> None:
    (root / "wiki").mkdir()
    (root / "wiki" / "index.md").write_text("# Wiki\n")
    (root / "wiki-notes.md").write_text("mine\n")
    files = RepositoryFiles(root, hidden=root / "wiki")
    assert files.names() == ["README.md", "src/cart.py", "wiki-notes.md"]
    with pytest.raises(InputError, match="wiki"):
        files.read("wiki/index.md")


def test_what_git_ignores_is_not_shown(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text(".env\n")
    (tmp_path / ".env").write_text(f"KEY={SECRET}\n")
    files = RepositoryFiles(tmp_path)
    assert files.names() == [".gitignore"]
    with pytest.raises(InputError):
        files.read(".env")


def test_settings_of_the_repository_run_no_program(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "a.txt").write_text("a")
    program = tmp_path / ".git" / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    with (tmp_path / ".git" / "config").open("a") as file:
        file.write(f'[core]\n\tfsmonitor = "{program}"\n\thooksPath = "{tmp_path / ".git"}"\n')
    assert RepositoryFiles(tmp_path).names() == ["a.txt"]
    assert not (tmp_path / "ran").exists()


def test_a_repository_that_git_refuses_is_an_error_and_not_a_folder_without_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path], check=True)
    with pytest.raises(InputError, match="git ls-files"):
        RepositoryFiles(tmp_path).names()


def test_names_with_odd_characters_are_names(root: Path) -> None:
    for name in ("a b.txt", "*.txt", "[x].txt", ":(top)", "-n", "ünï.txt"):
        (root / name).write_text(name)
    files = RepositoryFiles(root)
    assert [files.read(name)[0] for name in ("a b.txt", "*.txt", "[x].txt", ":(top)", "-n", "ünï.txt")] == [
        "a b.txt",
        "*.txt",
        "[x].txt",
        ":(top)",
        "-n",
        "ünï.txt",
    ]


def test_a_folder_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder .*missing"):
        RepositoryFiles(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is not a folder"):
        RepositoryFiles(tmp_path / "file")
