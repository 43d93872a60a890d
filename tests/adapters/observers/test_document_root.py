"""A watched document root: changed files become the URLs that serve them."""

import os
from pathlib import Path

import pytest

from vedette.adapters.observers.document_root import DocumentRoot, parse_watch
from vedette.errors import UsageError


def test_new_changed_and_deleted_files_are_found_once(tmp_path: Path) -> None:
    """Each change is reported once, under the URL that serves the file; hidden files are not."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.html").write_text("one")
    (tmp_path / "a b.html").write_text("one")
    root = DocumentRoot(tmp_path, "https://www.example.org")
    assert root.find_changed() == []
    (tmp_path / "docs" / "index.html").write_text("another")
    (tmp_path / "new.html").write_text("new")
    (tmp_path / ".htaccess").write_text("secret")
    (tmp_path / "a b.html").unlink()
    assert sorted(root.find_changed()) == [
        "https://www.example.org/a%20b.html",
        "https://www.example.org/docs/",
        "https://www.example.org/new.html",
    ]
    assert root.find_changed() == []


def test_the_same_size_with_another_time_is_a_change(tmp_path: Path) -> None:
    """A file may change without growing."""
    file = tmp_path / "index.html"
    file.write_text("one")
    root = DocumentRoot(tmp_path, "https://www.example.org/")
    os.utime(file, ns=(1, 1))
    assert root.find_changed() == ["https://www.example.org/"]


@pytest.mark.parametrize("text", [".", ".=www.example.org", "/no/such/folder=https://www.example.org/"])
def test_what_cannot_be_watched_is_refused(text: str) -> None:
    """The error says what to type."""
    with pytest.raises(UsageError, match="--watch"):
        parse_watch(text)
