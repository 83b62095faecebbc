"""Where a memory rests, and how odd arguments are refused."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import eunoe
from eunoe.errors import InputError, ScopeError, StoreError

ANNA = {"user": "anna"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("EUNOE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def test_nothing_means_ones_own_file_which_nobody_else_can_read(home: Path) -> None:
    with eunoe.open() as memory:
        memory.remember(ANNA, "Anna plays the cello.")
        file = Path(memory.target)
    assert file == home / "data" / "eunoe" / "memory.db"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_environment_names_another(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EUNOE_STORE", str(home / "other.db"))
    with eunoe.open() as memory:
        assert memory.target == str(home / "other.db")


@pytest.mark.parametrize("url", ["sqlite:///notes.db", "sqlite:///./notes.db", "sqlite:///{home}/notes.db"])
def test_a_url_names_a_file(home: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(home)
    with eunoe.open(url.format(home=home)) as memory:
        memory.remember(ANNA, "Anna plays the cello.")
    assert (home / "notes.db").exists()


@pytest.mark.parametrize(
    "target", ["", "  ", "a\0b", 5, "sqlite://host/x.db", "sqlite:///x.db?mode=ro", "sqlite:///", "redis://localhost"]
)
def test_what_names_no_file_is_refused(home: Path, target: object) -> None:
    with pytest.raises(StoreError):
        eunoe.open(target)  # type: ignore[arg-type]
    assert not (home / "data").exists()


@pytest.mark.parametrize("url", ["sqlite://memory.db", "sqlite:///"])
def test_the_error_says_how_to_write_a_url(url: str) -> None:
    with pytest.raises(StoreError, match="write sqlite:///"):
        eunoe.open(url)


def test_a_missing_store_is_not_made_against_ones_will(home: Path) -> None:
    with pytest.raises(StoreError, match="no memory at"):
        eunoe.open(home / "typo.db", create=False)
    assert not (home / "typo.db").exists()


def open_words(words: str) -> list[Path]:
    """Files in the folders for temporary ones that hold these words."""
    folders = [folder for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())) if folder.is_dir()]
    files = (file for folder in folders for file in folder.glob("eunoe-*/*"))
    return [file for file in files if words.encode() in file.read_bytes()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_leaves_no_words_of_a_memory_in_no_file(number: int) -> None:
    words = f"Anna plays the cello {os.urandom(8).hex()}"
    script = """
import sys, threading, eunoe
memory = eunoe.open(":memory:", embedder="none")
memory.observe("user=anna", [f"{sys.argv[1]} {number} " * 50 for number in range(500)])
threads = [threading.Thread(target=memory.remember, args=("user=anna", f"{sys.argv[1]} {n}")) for n in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
memory.forget("user=anna", memory.list("user=anna").items[0].id)
print("ready", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", script, words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        assert open_words(words) == []
        process.send_signal(number)
    assert process.returncode == -number
    assert open_words(words) == []


@pytest.mark.parametrize("size", [0, -5, "x"])
def test_a_cache_of_no_size_is_refused(size: object) -> None:
    with pytest.raises(InputError, match="cache_bytes"):
        eunoe.open(":memory:", cache_bytes=size)  # type: ignore[arg-type]


CALLS = {
    "observe nothing": lambda memory: memory.observe(ANNA, None),
    "remember_many nothing": lambda memory: memory.remember_many(ANNA, None),
    "by_files nothing": lambda memory: memory.by_files(ANNA, None),
    "by_files numbers": lambda memory: memory.by_files(ANNA, [5]),
    "recall no kinds": lambda memory: memory.recall(ANNA, "x", kinds=None),
    "recall a number": lambda memory: memory.recall(ANNA, 5),
    "list a word": lambda memory: memory.list(ANNA, limit="5"),
    "list after a number": lambda memory: memory.list(ANNA, after=5),
    "forget numbers": lambda memory: memory.forget(ANNA, [5]),
    "forget nobody": lambda memory: memory.forget(ANNA, person=None),
    "forget nothing": lambda memory: memory.forget(ANNA, None),
    "import nothing": lambda memory: memory.admin.import_(None),
    "export nowhere": lambda memory: memory.admin.export(ANNA, None),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types_are_refused_with_a_typed_error(name: str) -> None:
    with eunoe.open(":memory:") as memory:
        memory.remember(ANNA, "Anna plays the cello.")
        with pytest.raises(InputError):
            CALLS[name](memory)
        assert memory.status().facts == 1


def test_a_huge_number_is_no_scope() -> None:
    with pytest.raises(ScopeError, match="digits"):
        eunoe.Scope(user=10**5000)


def test_one_text_or_dict_is_one_memory() -> None:
    with eunoe.open(":memory:") as memory:
        assert len(memory.remember_many(ANNA, "Anna plays the cello.")) == 1
        assert len(memory.remember_many(ANNA, {"text": "Anna likes tea."})) == 1
        assert [item.text for item in memory.list(ANNA).items] == ["Anna plays the cello.", "Anna likes tea."]


def test_importing_stays_light() -> None:
    heavy = "{'numpy', 'Stemmer', 'tokenizers', 'wordllama', 'typer', 'rich', 'sqlite3', 'asyncio', 'onnxruntime'}"
    code = f"import sys, eunoe; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
