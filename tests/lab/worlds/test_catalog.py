"""Worlds are found by name anywhere, opened once, and have names that do not reveal paths."""

from pathlib import Path

import numpy as np
import pytest

from vedette.errors import UsageError
from vedette.lab.worlds.catalog import (
    WorldMissing,
    fingerprint_world,
    get_label,
    list_worlds,
    locate_world,
    open_frontpages,
    open_history,
    register_world,
)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Histories, data and cache in folders of this test."""
    for variable, name in (("HISTORIES", "kept"), ("DATA", "data"), ("CACHE", "cache")):
        monkeypatch.setenv(f"VEDETTE_{variable}", str(tmp_path / name))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def repository(path: Path, text: str = "<title>Home</title><p>Ships and harbours.") -> Path:
    """A repository with one page in the folder ``content``."""
    pygit2 = pytest.importorskip("pygit2", reason='the lab reads git with pygit2: pip install "vedette[lab]"')
    made = pygit2.init_repository(str(path), bare=True)
    page, folder = made.TreeBuilder(), made.TreeBuilder()
    page.insert("index.html", made.create_blob(text.encode()), pygit2.enums.FileMode.BLOB)
    folder.insert("content", page.write(), pygit2.enums.FileMode.TREE)
    who = pygit2.Signature("A", "a@example.org", 1_600_000_000, 0)
    tip = made.lookup_reference_dwim("refs/heads/live").target if "refs/heads/live" in list(made.references) else None
    made.create_commit("refs/heads/live", who, who, "first", folder.write(), [tip] if tip else [])
    return path


def test_a_repository_is_found_under_its_published_name(folders: Path) -> None:
    """``git:owner/name`` is looked up in VEDETTE_HISTORIES, as owner+name/repo; its label is that name."""
    repository(folders / "kept" / "harbour+site" / "repo")
    name = "git:harbour/site#live:content"
    assert get_label(name) == name
    assert open_history(name).pages == 1
    assert "git:harbour/site" in list_worlds()


def test_a_path_that_exists_wins_and_is_not_told(folders: Path) -> None:
    """Your own clone is only called by its last name, which opens it from then on."""
    path = repository(folders / "somewhere" / "mine.git")
    label = register_world(f"git:{path}#live:content")
    assert label == "git:mine#live:content"
    assert open_history(label).pages == 1
    assert str(folders) not in open_history(label).name


def test_what_was_imported_is_read_from_the_cache(folders: Path) -> None:
    """The history is stored in a file by its contents; a new commit has another file and another fingerprint."""
    name = f"git:{repository(folders / 'web')}#live:content"
    before, _ = fingerprint_world(name), open_history(name)
    kept = list((folders / "cache" / "histories").iterdir())
    assert len(kept) == 1
    assert open_history(f"git:{kept[0]}").pages == 1
    repository(folders / "web", "<title>Home</title><p>Ships, harbours and tides.")
    assert fingerprint_world(name) != before
    assert len(open_history(f"{name}").version_page) in {1, 2}


@pytest.mark.parametrize(
    "name",
    ["git:harbour/none", "frontpages:none.npz", "live:nowhere", "git:../none", "git:~none/none", "git:" + "a" * 9999],
)
def test_a_world_that_is_not_here_says_how_to_get_it(folders: Path, name: str) -> None:
    """This is not the user's mistake, and other worlds can be run without it."""
    with pytest.raises(WorldMissing, match="not found"):
        locate_world(name)
    assert folders.is_dir()


@pytest.mark.parametrize("name", ["", "made", "made:", "moon:tiny", "made:tiney", "made:tiny:x", "made:tiny:1:2"])
def test_a_name_that_is_none_is_refused_with_those_that_are(folders: Path, name: str) -> None:
    """The error says what to write, and lists the synthetic worlds."""
    with pytest.raises(UsageError, match="small"):
        locate_world(name)
    assert folders.is_dir()


def test_two_worlds_of_one_label_are_not_mixed_up(folders: Path) -> None:
    """Rows would be ambiguous, so the second one is refused."""
    register_world(f"git:{repository(folders / 'a' / 'twin')}")
    with pytest.raises(UsageError, match="git:twin"):
        register_world(f"git:{repository(folders / 'b' / 'twin')}")


def test_a_seed_is_part_of_a_synthetic_world() -> None:
    """Another seed gives another web with another label; the default is seed 1."""
    assert get_label("made:tiny:1") == get_label("made:tiny") == "made:tiny"
    assert fingerprint_world("made:tiny:2") != fingerprint_world("made:tiny")
    assert not np.array_equal(open_history("made:tiny:2").born_s, open_history("made:tiny").born_s)
    assert open_history("made:tiny") is open_history("made:tiny")


def test_kinds_are_not_mixed_up(folders: Path) -> None:
    """Front pages have no complete history, and a history has no front pages; each error says what to write."""
    (folders / "data" / "discovery").mkdir(parents=True)
    (folders / "data" / "discovery" / "front.npz").write_bytes(b"")
    with pytest.raises(UsageError, match="git:PATH"):
        open_history("frontpages:front.npz")
    with pytest.raises(UsageError, match=r"frontpages:FILE\.npz"):
        open_frontpages("made:tiny")
