"""The history of a web as arrays: queried, stored in a file, and given another future."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.altered_worlds import alter_future
from tests.lab.histories import END_S, histories, same

from vedette.errors import StoreCorrupt, StoreNewer, UsageError
from vedette.lab.worlds.history import History, HistoryFetcher, Texts
from vedette.lab.worlds.history_file import load_history, save_history

moments = st.integers(0, END_S).map(float)


@given(histories(), moments)
def test_versions_are_found_by_time(history: History, now_s: float) -> None:
    """``version_at`` is the last version of a living page that is not in the future, for any pages in any order."""
    expected = []
    for page in range(history.pages):
        mine = [row for row in range(len(history.digest)) if history.version_page[row] == page]
        past = [row for row in mine if history.version_at_s[row] <= now_s]
        expected.append(past[-1] if past and now_s < history.died_s[page] else -1)
    assert history.version_at(np.arange(history.pages), now_s).tolist() == expected
    assert history.version_at(np.arange(history.pages)[::-1], now_s).tolist() == expected[::-1]
    assert history.live_pages_at(now_s).tolist() == [page for page, row in enumerate(expected) if row >= 0]


@given(histories())
def test_a_version_holds_until_the_next_or_the_death(history: History) -> None:
    """Just before the end of a version, it is the page's version, but not at the end."""
    for row, end_s in enumerate(history.version_end_s):
        page = history.version_page[row : row + 1]
        assert history.version_at(page, float(np.nextafter(end_s, 0)))[0] == row
        assert np.isinf(end_s) or history.version_at(page, float(end_s))[0] != row


@given(histories())
def test_sites_are_born_with_their_first_page(history: History) -> None:
    """The birth of a site is the earliest of its pages; a site without pages is never born."""
    for site, born_s in enumerate(history.site_born_s):
        assert born_s == min(history.born_s[history.site == site], default=np.inf)


@given(histories(), moments)
def test_no_fetch_tells_of_pages_that_are_not_born(history: History, now_s: float) -> None:
    """A fetch returns the links of the current version in order, without those to future pages."""
    pages = np.arange(history.pages)
    answers = HistoryFetcher(history).fetch(pages, now_s)
    for version, digest, links in zip(answers.version, answers.digest, answers.links, strict=True):
        expected = history.links_of(version).tolist() if version >= 0 else []
        assert links.tolist() == [page for page in expected if history.born_s[page] <= now_s]
        assert digest == (history.digest[version] if version >= 0 else 0)


def test_time_goes_forward_only() -> None:
    """A fetch at an earlier time than the last one is the caller's error."""
    none = np.zeros(0, np.int64)
    asked = HistoryFetcher(nothing())
    asked.fetch(none, 5.0)
    with pytest.raises(AssertionError, match="past"):
        asked.fetch(none, 4.0)


def nothing() -> History:
    """Return a web without pages."""
    none, some = np.zeros(0, np.int64), np.zeros(0)
    kinds, digests, waves = np.zeros(0, np.uint8), np.zeros(0, np.uint64), np.zeros(0, np.bool_)
    start = np.zeros(1, np.int64)
    return History("none", 0.0, 9.0, [], none, kinds, some, some, none, none, some, digests, none, waves, start, none)


# Kept in a file.


@given(histories())
def test_what_was_saved_is_loaded(tmp_path_factory: pytest.TempPathFactory, history: History) -> None:
    """A file has every column and text, and saving the loaded history gives the same bytes."""
    path = tmp_path_factory.getbasetemp() / "any.history"
    assert save_history(history, path) == path.stat().st_size
    loaded = load_history(path)
    same(loaded, history)
    first = path.read_bytes()
    save_history(loaded, path)
    assert path.read_bytes() == first


def test_nothing_can_be_saved_too(tmp_path: Path) -> None:
    """A web without pages can be saved and loaded."""
    save_history(nothing(), tmp_path / "x")
    same(load_history(tmp_path / "x"), nothing())


def test_long_texts_come_back_from_their_blocks(tmp_path: Path) -> None:
    """Texts that fill several blocks are found in any order, including empty and invalid ones."""
    texts = ["x" * 700_000, "", "y" * 2_000_000, "\ud800 lone", "z" * 10]

    class Long(Texts):
        def text(self, version: int) -> str:
            return texts[version]

    count = len(texts)
    whole = replace(
        nothing(),
        urls=["https://example.org/"],
        site=np.zeros(1, np.int64),
        kind=np.zeros(1, np.uint8),
        born_s=np.zeros(1),
        died_s=np.full(1, np.inf),
        moved_to=np.full(1, -1),
        version_page=np.zeros(count, np.int64),
        version_at_s=np.arange(count, dtype=np.float64),
        digest=np.arange(1, count + 1).astype(np.uint64),
        words=np.zeros(count, np.int64),
        wave=np.zeros(count, np.bool_),
        link_start=np.zeros(count + 1, np.int64),
        texts=Long(),
    )
    save_history(whole, tmp_path / "x")
    loaded = load_history(tmp_path / "x")
    assert [loaded.texts.text(row) for row in (4, 3, 2, 1, 0)] == [texts[4], "? lone", *texts[2::-1]]


@given(histories(), st.data())
def test_damage_is_noticed(tmp_path_factory: pytest.TempPathFactory, history: History, data: st.DataObject) -> None:
    """Any changed byte, and any truncation, is an error that says what to do."""
    path = tmp_path_factory.getbasetemp() / "damaged.history"
    save_history(history, path)
    raw = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[at] ^= data.draw(st.integers(1, 255))
    else:
        del raw[at:]
    path.write_bytes(raw)
    with pytest.raises((StoreCorrupt, StoreNewer, UsageError), match="import"):
        same(load_history(path), history)


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    """A missing, empty or foreign file is reported, with what to type."""
    (tmp_path / "empty").touch()
    (tmp_path / "other").write_bytes(b"PK\x03\x04" * 20)
    for name in ("absent", "empty", "other"):
        with pytest.raises(UsageError, match="import-git"):
            load_history(tmp_path / name)


# Another future.


@given(histories(), moments, st.integers(0, 9))
def test_another_future_has_the_same_past(history: History, at_s: float, seed: int) -> None:
    """Up to that time, every fetch returns the same from both, and the altered history is valid."""
    other = alter_future(history, at_s, seed)
    old = int(np.count_nonzero(history.born_s <= at_s))
    for now_s in sorted({0.0, at_s / 2, at_s}):
        one, two = (HistoryFetcher(world).fetch(np.arange(old), now_s) for world in (history, other))
        assert one.digest.tolist() == two.digest.tolist()
        assert [links.tolist() for links in one.links] == [links.tolist() for links in two.links]
        assert history.live_pages_at(now_s).tolist() == other.live_pages_at(now_s).tolist()
        assert [read_text(history, row) for row in one.version] == [read_text(other, row) for row in two.version]
    assert other.urls[:old] == list(history.urls)[:old]
    assert_is_history(other)
    same(other, alter_future(history, at_s, seed))


def read_text(history: History, version: int) -> str:
    """Return the text of a version, if there is one."""
    return history.texts.text(int(version)) if version >= 0 else ""


def assert_is_history(history: History) -> None:
    """Check the invariants of a history."""
    assert (np.diff(history.born_s) >= 0).all()
    assert (history.born_s < history.died_s).all()
    assert (np.diff(history.version_page) >= 0).all()
    assert history.version_at_s[history.first_version].tolist() == history.born_s.tolist()
    assert (history.version_end_s > history.version_at_s).all()
    assert (history.digest != 0).all()
    assert len(history.link_start) == len(history.digest) + 1
    for version in range(len(history.digest)):
        links = history.links_of(version).tolist()
        assert len(dict.fromkeys(links)) == len(links)
        assert all(0 <= page < history.pages for page in links)


@given(histories())
def test_another_future_is_another(history: History) -> None:
    """From the middle on, versions, births and links differ, and they differ by seed."""
    one, two = (alter_future(history, END_S / 2, seed) for seed in (1, 2))
    assert one.version_at_s.tolist() != history.version_at_s.tolist()
    assert one.version_at_s.tolist() != two.version_at_s.tolist()
    assert one.born_s.tolist() != history.born_s.tolist()
