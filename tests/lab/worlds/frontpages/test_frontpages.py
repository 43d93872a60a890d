"""Recorded front pages: results of polls, which files are refused, and the import of a recording in git."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.altered_worlds import alter_frontpages
from tests.lab.small_frontpages import BEGIN_S, HOUR_S, front, fronts

from vedette.errors import UsageError
from vedette.lab.worlds.frontpages import Frontpages, import_frontpages, load_frontpages, save_frontpages
from vedette.lab.worlds.frontpages.recording import LINK_HASH_DTYPE, ImportSummary, hash_links


def list_links(world: Frontpages, source: int, snapshot: int) -> list[int]:
    """Return the links that a poll finds, sorted."""
    return sorted(world.links(source, snapshot).tolist())


def everything(world: Frontpages, end: int) -> list[list[int]]:
    """Return the links that all polls before a snapshot would find."""
    return [list_links(world, source, at) for at in range(end) for source in range(world.sources)]


def test_a_link_is_shown_from_its_start_until_before_its_stop() -> None:
    """A row from 1 to 3 is visible at 1 and 2, but not at 0 or 3."""
    world = front([(0, 0, 1, 3)], snapshots=5, hosts=[0])
    assert [list_links(world, 0, at) for at in range(5)] == [[], [0], [0], [], []]


def test_a_failed_scrape_brings_nothing_and_is_known_as_failed() -> None:
    """A snapshot that the recording lacks shows nothing, even if the ones before and after it do."""
    world = front([(0, 0, 0, 3), (1, 1, 0, 3)], snapshots=3, hosts=[0, 0], failed=[(1, 0)])
    looks = world.poll(np.array([0, 1]), 1)
    assert looks.ok.tolist() == [False, True]
    assert looks.target.tolist() == [1]
    assert looks.row.tolist() == [1]


@given(world=fronts(), data=st.data())
def test_a_look_brings_what_the_rows_say(world: Frontpages, data: st.DataObject) -> None:
    """A poll shows the targets whose rows cover it, although rows are rearranged for speed.

    All polls together show all.
    """
    at = data.draw(st.integers(0, world.snapshots - 1))
    holds = (world.start <= at) & (at < world.stop) & world.ok[at, world.source]
    expected = sorted(zip(world.source[holds].tolist(), world.target[holds].tolist(), strict=True))
    shown = sorted(zip(*(each.tolist() for each in world.visible_links(at)), strict=True))
    looks = world.poll(np.arange(world.sources), at)
    assert shown == expected
    assert sorted(zip(looks.row.tolist(), looks.target.tolist(), strict=True)) == expected


def test_a_target_is_seen_from_the_first_look_that_could_show_it() -> None:
    """Shown from 0 to 6 by a source whose scrapes fail at 0 and 5, it can be seen from 1 until before 5.

    The second target is on for one snapshot, for which the scrape fails, so no one can see it. In the span from 2 to 4,
    the first one is seen from 2 until before 4.
    """
    world = front([(0, 0, 0, 6), (0, 1, 5, 6)], snapshots=8, hosts=[0], failed=[(0, 0), (5, 0)])
    seen = world.compute_visibility()
    assert (seen.first.tolist(), seen.gone.tolist()) == ([1, -1], [5, -1])
    inside = world.compute_visibility(2, 4)
    assert (inside.first.tolist(), inside.gone.tolist()) == ([2, -1], [4, -1])


@given(world=fronts())
def test_what_is_seen_is_what_looks_show(world: Frontpages) -> None:
    """The first and last snapshots of each target are those of the first and last polls that show it."""
    first, gone = [-1] * world.targets, [-1] * world.targets
    for at in range(world.snapshots):
        for target in world.visible_links(at)[1].tolist():
            first[target] = at if first[target] < 0 else first[target]
            gone[target] = at + 1
    seen = world.compute_visibility()
    assert (seen.first.tolist(), seen.gone.tolist()) == (first, gone)


def test_a_host_can_be_looked_at_alone() -> None:
    """Its sources and targets are renumbered, and what other hosts show is not there."""
    world = front([(0, 0, 0, 2), (1, 1, 0, 2), (2, 2, 1, 2)], snapshots=2, hosts=[0, 1, 0], failed=[(0, 2)])
    alone = world.host_view("host0")
    assert (alone.sources, alone.targets, alone.host_names) == (2, 2, ("host0",))
    assert alone.source_names == ("host0/0", "host0/2")
    assert [list_links(alone, 1, at) for at in range(2)] == [[], [1]]


@given(world=fronts())
def test_a_file_keeps_what_can_be_seen(world: Frontpages, tmp_path_factory: pytest.TempPathFactory) -> None:
    """After writing and reading, every poll finds the same; a page without a link counts as a failed scrape."""
    path = tmp_path_factory.mktemp("front") / "front.npz"
    save_frontpages(world, path)
    again = load_frontpages(path, "again")
    assert everything(again, world.snapshots) == everything(world, world.snapshots)
    assert (again.source_names, again.times.tolist()) == (world.source_names, world.times.tolist())


def good() -> dict[str, Any]:
    """Return the arrays of a small valid file: one source, three snapshots, the last scrape failed."""
    return {
        "times": np.array([100, 200, 300]),
        "source": np.array([0, 0]),
        "target": np.array([0, 1]),
        "start": np.array([0, 1]),
        "stop": np.array([2, 2]),
        "observed": np.array([[0, 0, 1], [1, 0, 2], [2, 0, 0]]),
        "source_host": np.array(["a.example"]),
        "source_name": np.array(["a.example/index"]),
    }


@pytest.mark.parametrize(
    ("name", "wrong", "text"),
    [
        ("times", None, "times is missing"),
        ("times", np.array([100, 300, 200]), "times do not increase"),
        ("times", np.array([100.0, 200.0, 300.0]), "the wrong shape or type"),
        ("source", np.array([0, 1]), "a source that does not exist"),
        ("source", np.array([0]), "rows differ in length"),
        ("target", np.array([0, 10**9]), "not numbered from 0"),
        ("target", np.array([0, 0]), "twice at the same time"),
        ("stop", np.array([2, 1]), "ends before it starts"),
        ("stop", np.array([2, 4]), "ends before it starts"),
        ("observed", np.array([[0, 0, 1], [1, 0, 7]]), "does not match the links"),
        ("observed", np.array([[0, 0, 1], [0, 0, 1]]), "duplicate or negative"),
        ("observed", np.array([[0, 3, 1]]), "source or snapshot that does not exist"),
        ("observed", np.array([[0, 0]]), "three columns"),
        ("source_host", np.array(["a", "b"]), "differ in length"),
        ("source_name", np.array([1]), "the wrong shape or type"),
        ("source_name", np.array(["x", None], dtype=object), "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, name: str, wrong: Any, text: str) -> None:
    """The error names the fault and what was expected."""
    arrays = good() | {name: wrong}
    path = tmp_path / "front.npz"
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})
    with pytest.raises(UsageError, match=r"expected: an \.npz file") as refusal:
        load_frontpages(path, "wrong")
    assert text in str(refusal.value)


def test_a_right_file_is_taken(tmp_path: Path) -> None:
    """The file from which the wrong ones are made is valid."""
    np.savez(tmp_path / "front.npz", **good())
    world = load_frontpages(tmp_path / "front.npz", "frontpages:front.npz")
    assert [list_links(world, 0, at) for at in range(3)] == [[0], [0, 1], []]


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 torn"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file with any other bytes is refused with a reason."""
    path = tmp_path / "front.npz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="not a recording of front pages"):
        load_frontpages(path, "wrong")
    with pytest.raises(UsageError, match="no such file"):
        load_frontpages(tmp_path / "absent.npz", "absent")


@given(world=fronts(), index=st.integers(0, 40), seed=st.integers(0, 99))
def test_an_altered_world_has_the_same_past(world: Frontpages, index: int, seed: int) -> None:
    """Every poll before the index finds the same, and the same scrapes failed."""
    other = alter_frontpages(world, index, seed)
    assert everything(other, index) == everything(world, index)
    assert np.array_equal(other.ok[:index], world.ok[:index])


def test_an_altered_world_has_another_future() -> None:
    """A source that shows everything is a different one afterwards, and half of the later targets are not shown."""
    rows = [(0, target, 0, 10) for target in range(5)] + [(0, target, 6, 10) for target in range(5, 45)]
    other = alter_frontpages(front(rows, snapshots=10, hosts=[0, 0, 0]), 5, seed=1)
    assert list_links(other, 0, 5) == []
    assert max(len(list_links(other, source, 5)) for source in (1, 2)) == 5
    assert 5 + 5 <= max(len(list_links(other, source, 6)) for source in (1, 2)) <= 5 + 35


def commit(repository: Any, at_s: int, files: dict[str, Any]) -> None:
    """Commit these files on top of the existing ones."""
    import pygit2

    index = repository.index
    for name, content in files.items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        index.add(pygit2.IndexEntry(name, repository.create_blob(data), pygit2.enums.FileMode.BLOB))
    index.write()
    signature = pygit2.Signature("somebody", "somebody@example.org", at_s, 0)
    parents = [] if repository.head_is_unborn else [repository.head.target]
    repository.create_commit("HEAD", signature, signature, "", index.write_tree(), parents)


def scrape(stamp: str, *urls: str) -> dict[str, Any]:
    """Return a page as in the recording."""
    articles = [{"title": "t", "url": url} for url in urls]
    return {"timestamp": stamp, "url": "https://x.example/", "response": {"status": 200}, "articles": articles}


def recording(folder: Path) -> Any:
    """Return four commits to a recording, one of them unrelated; a file that a commit does not change was not scraped.

    a.example shows x and y, then y (twice, once for its comments) and z, then its scrape fails, then it shows z.
    b.example is there from the first, is not scraped with the second, and is broken in the third.
    """
    pygit2 = pytest.importorskip("pygit2", reason='pip install "vedette[lab]"')
    repository = pygit2.init_repository(str(folder), bare=True)
    first, second = "docs/snapshots/a.example/index.json", "docs/snapshots/b.example/sport.json"
    commit(repository, BEGIN_S, {first: scrape("1", "x", "y"), second: scrape("1", "q"), "README.md": b"words"})
    commit(repository, BEGIN_S + HOUR_S, {first: scrape("2", "y", "z", "y#comments", "#top")})
    commit(repository, BEGIN_S + HOUR_S + 9, {"README.md": b"other words"})
    commit(repository, BEGIN_S + HOUR_S, {first: scrape("3"), second: b"{broken"})
    commit(repository, BEGIN_S + 3 * HOUR_S, {first: scrape("4", "z"), second: scrape("4", "q", "x")})
    return repository


@pytest.mark.parametrize("many", [1, 1000])
def test_a_recording_in_git_becomes_a_file(tmp_path: Path, many: int) -> None:
    """The file has all targets and times, and the summary counts them, with one or several processes."""
    recording(tmp_path / "clone")
    received: list[tuple[int, int]] = []
    out = tmp_path / "front.npz"
    told_of = import_frontpages(tmp_path / "clone", out, lambda done, total: received.append((done, total)), many=many)
    world = load_frontpages(out, "front")

    assert received == [(done, 4) for done in range(1, 5)]
    assert told_of == ImportSummary(4, 2, 4, len(world.target), 2, 0, out.stat().st_size)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [out.name]
    assert (world.times - BEGIN_S).tolist() == [0, HOUR_S, HOUR_S + 1, 3 * HOUR_S]
    assert (world.source_names, world.host_names) == (
        ("a.example/index", "b.example/sport"),
        ("a.example", "b.example"),
    )
    assert world.ok.tolist() == [[True, True], [True, False], [False, False], [True, True]]
    x, y, q, z = 0, 1, 2, 3
    assert [list_links(world, 0, at) for at in range(4)] == [[x, y], [y, z], [], [z]]
    assert [list_links(world, 1, at) for at in range(4)] == [[q], [], [], [x, q]]


def test_a_clock_that_runs_ahead_once_moves_its_own_snapshot_only(tmp_path: Path) -> None:
    """The snapshot is placed between its neighbors, and those after it keep their times."""
    pygit2 = pytest.importorskip("pygit2", reason='pip install "vedette[lab]"')
    repository = pygit2.init_repository(str(tmp_path / "clone"))
    for number, hours in enumerate([0, 1, 100_000, 3, 4]):
        files = {"docs/snapshots/a.example/index.json": scrape(str(number), "x")}
        commit(repository, BEGIN_S + hours * HOUR_S, files)
    import_frontpages(tmp_path / "clone", tmp_path / "front.npz")
    times = load_frontpages(tmp_path / "front.npz", "front").times - BEGIN_S
    assert times.tolist() == [0, HOUR_S, HOUR_S + 1, 3 * HOUR_S, 4 * HOUR_S]


def test_objects_that_a_clone_lacks_are_counted(tmp_path: Path) -> None:
    """A scrape without content shows nothing, and the rest is read."""
    repository = recording(tmp_path / "clone")
    lost = str(repository.revparse_single("HEAD:docs/snapshots/b.example/sport.json").id)
    (tmp_path / "clone" / "objects" / lost[:2] / lost[2:]).unlink()
    found = import_frontpages(tmp_path / "clone", tmp_path / "front.npz")
    assert (found.missing, found.failed) == (1, 3)
    assert load_frontpages(tmp_path / "front.npz", "front").ok.tolist()[-1] == [True, False]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"7", b'{"articles": 1}', b'{"articles": [1, {"url": []}]}', b"[" * 10**5]
)
def test_a_scrape_that_is_not_as_it_should_be_shows_nothing(body: bytes) -> None:
    """Reading does not fail for any content."""
    assert hash_links(body) == b""


def test_any_text_may_be_an_address() -> None:
    """JSON can contain what UTF-8 cannot: such a URL is like any other."""
    assert len(hash_links(b'{"articles": [{"url": "\\ud800"}, {"url": "a"}]}')) == 2 * LINK_HASH_DTYPE.itemsize


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    """A missing folder, an empty one, an empty repository, and one without the layout each have their own error."""
    pygit2 = pytest.importorskip("pygit2", reason='pip install "vedette[lab]"')
    out = tmp_path / "out.npz"
    (tmp_path / "folder").mkdir()
    for name, text in [("absent", "no such repository"), ("folder", "as a git repository")]:
        with pytest.raises(UsageError, match=text):
            import_frontpages(tmp_path / name, out)
    repository = pygit2.init_repository(str(tmp_path / "clone"))
    with pytest.raises(UsageError, match="is empty"):
        import_frontpages(tmp_path / "clone", out)
    commit(repository, BEGIN_S, {"docs/snapshots": b"a file, not a folder"})
    with pytest.raises(UsageError, match="a clone of the recording"):
        import_frontpages(tmp_path / "clone", out)
    assert not out.exists()


def test_where_nothing_can_be_written_nothing_is_read(tmp_path: Path) -> None:
    """Reading takes long, so a missing folder is reported at once."""
    with pytest.raises(UsageError, match="an existing folder"):
        import_frontpages(tmp_path / "whatever", tmp_path / "absent" / "front.npz")
