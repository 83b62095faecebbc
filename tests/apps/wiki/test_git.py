"""What a working tree says about itself, with real git."""

from __future__ import annotations

from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import pytest
from tests.support.checkouts import git, make_checkout

from eunoe.apps.wiki.files import Checkout, default_repository_id, open_checkout
from eunoe.errors import InputError

FILES = {"src/app.py": "x = 1\n", "src/web/page.py": "y = 2\n", "README.md": "# Shop\n"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "clone", FILES)


def relative(checkout: Checkout, path: object) -> str:
    (spelled,) = checkout.relative_paths([str(path)])
    return spelled


def test_the_root_branch_and_commit_are_gits_own(tree: Path) -> None:
    checkout = open_checkout(tree / "src" / "web")
    assert checkout.root == tree
    assert (checkout.branch, checkout.commit) == ("main", git(tree, "rev-parse", "HEAD"))


def test_a_branch_and_a_commit_that_are_given_count_more(tree: Path) -> None:
    checkout = open_checkout(tree, "release", "abc")
    assert (checkout.branch, checkout.commit) == ("release", "abc")


def test_a_repository_without_a_commit_has_a_root(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "src").mkdir()
    checkout = open_checkout(tmp_path / "src")
    assert (checkout.root, checkout.commit) == (tmp_path, "")


def test_a_git_hook_does_not_lead_to_another_repository(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_checkout(tmp_path / "other", {"a": "a"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert open_checkout(tree).root == tree


@pytest.mark.parametrize("folder", ["plain", "missing"])
def test_without_git_the_folder_is_the_root(tmp_path: Path, folder: str) -> None:
    (tmp_path / "plain").mkdir()
    checkout = open_checkout(tmp_path / folder)
    assert checkout == Checkout(tmp_path / folder)
    assert relative(checkout, tmp_path / folder / "a.py") == "a.py"


@pytest.mark.parametrize(
    "spelling",
    ["src/app.py", "./src/app.py", "src//app.py", r"src\app.py", r".\src\app.py", "src/web/../app.py", " src/app.py "],
)
def test_one_file_has_one_path(tree: Path, spelling: str) -> None:
    checkout = open_checkout(tree)
    assert relative(checkout, spelling) == "src/app.py"
    assert relative(checkout, f"{tree}/{spelling.strip()}") == "src/app.py"


def test_the_root_itself_and_folders(tree: Path) -> None:
    checkout = open_checkout(tree)
    assert checkout.relative_paths([str(tree), f"{tree}/src/", "src/web"]) == [".", "src", "src/web"]


def test_symlinks_to_the_clone_and_in_it(tree: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tree)
    (tree / "lib").symlink_to(tree / "src")
    (tree / "main.py").symlink_to("src/app.py")
    for checkout in (open_checkout(link), open_checkout(tree)):
        assert relative(checkout, link / "src/app.py") == "src/app.py"
        assert relative(checkout, tree / "src/app.py") == "src/app.py"
        assert relative(checkout, "lib/app.py") == "src/app.py"
        assert relative(checkout, "main.py") == "src/app.py"
        assert relative(checkout, link / "not/yet.py") == "not/yet.py"


def test_what_lies_outside_keeps_its_path_and_is_never_read(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("s")
    (tree / "leak.txt").symlink_to(tmp_path / "secret.txt")
    checkout = open_checkout(tree)
    assert relative(checkout, "../secret.txt") == f"{tmp_path}/secret.txt"
    assert relative(checkout, "leak.txt") == "leak.txt"
    assert relative(checkout, f"{tree}-2/src/app.py") == f"{tree}-2/src/app.py"
    assert checkout.blob_hashes(["leak.txt", "../secret.txt", str(tmp_path / "secret.txt")]) == {}


def test_hashes_are_those_of_git_for_the_working_tree(tree: Path) -> None:
    checkout = open_checkout(tree)
    assert checkout.blob_hashes(["src/app.py", "src", "gone.py"]) == {
        "src/app.py": git(tree, "rev-parse", "HEAD:src/app.py")
    }
    (tree / "src/app.py").write_bytes(b"x = 2\r\n\0")
    assert checkout.blob_hashes(["src/app.py"]) == {
        "src/app.py": git(tree, "hash-object", "--no-filters", "src/app.py")
    }


def test_clones_share_the_id_of_their_origin_whatever_the_credentials(tree: Path) -> None:
    root_id = default_repository_id(tree)
    assert root_id == uuid5(NAMESPACE_URL, git(tree, "rev-parse", "HEAD"))
    git(tree, "remote", "add", "origin", "https://anna:s3cret@example.org/shop.git")
    assert default_repository_id(tree / "src") == uuid5(NAMESPACE_URL, "https://example.org/shop.git")


def test_no_repository_has_no_id_by_itself(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give a repository id"):
        default_repository_id(tmp_path)
