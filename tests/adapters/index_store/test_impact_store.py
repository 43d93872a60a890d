"""What first fetches are expected to bring, as files: read whole or not at all, and what is damaged says nothing."""

from pathlib import Path

import numpy as np
import pytest

from vedette.adapters.index_store.impact_store import (
    IMPACT_FILE,
    PLACES,
    TOLD,
    Expected,
    forget_expected,
    places_of,
    read_told,
    write_expected,
    write_told,
)
from vedette.frontier.impact.url_features import folders_of

URLS = ["https://a.test/good/1", "https://a.test/good/2", "https://a.test/bad/3"]
GAINS = np.array([np.nan, 4.0, 2.0, 0.0], np.float32)


def written(folder: Path, gains: "np.ndarray[tuple[int], np.dtype[np.float32]]" = GAINS) -> Expected:
    """Gains of three URLs, with ids 1 to 3."""
    folder.mkdir(parents=True, exist_ok=True)
    places = places_of(*folders_of(URLS), gains[1:].astype(np.float64), gains[1:].astype(np.float64))
    write_expected(folder, gains, places)
    return Expected(folder)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """By id; what was not worked out is not known, and neither is an id from later."""
    expected = written(tmp_path)
    assert expected.turn > 0
    assert expected.known(np.array([0, 1, 2, 3, 4, 99], np.uint32)).tolist()[1:4] == [4.0, 2.0, 0.0]
    assert np.isnan(expected.known(np.array([0, 4, 99], np.uint32))).all()


def test_what_is_found_later_counts_as_is_usual_where_it_lies(tmp_path: Path) -> None:
    """In a folder that brings more it is worth more; elsewhere on the host in between."""
    expected = written(tmp_path)
    urls = ["https://a.test/good/77", "https://a.test/bad/77", "https://b.test/x/y"]
    good, bad, elsewhere = expected.gains(np.zeros(3, np.uint32), urls).tolist()
    assert good > elsewhere > bad > 0
    assert expected.fronts(np.array([4.0, 0.0])).tolist() == [1, 7]


def test_another_making_is_seen_and_none_is_none(tmp_path: Path) -> None:
    """The keeper looks now and then; what is forgotten is not foreseen any more."""
    expected = Expected(tmp_path)
    assert expected.turn == 0
    assert not expected.refresh()
    written(tmp_path)
    assert expected.refresh()
    first = expected.turn
    written(tmp_path, np.array([np.nan, 9.0], np.float32).repeat([1, 3]))
    assert expected.refresh()
    assert expected.turn != first
    assert expected.known(np.array([1], np.uint32)).tolist() == [9.0]
    forget_expected(tmp_path)
    assert expected.refresh()
    assert expected.turn == 0
    assert np.isnan(expected.gains(np.array([1], np.uint32), URLS[:1])).all()


@pytest.mark.parametrize("name", [IMPACT_FILE, PLACES])
@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 nothing", b"\x93NUMPY\x01\x00 half"])
def test_damage_is_as_if_nobody_knew(tmp_path: Path, name: str, damage: bytes) -> None:
    """A file that a full disk cut short, or that something else wrote over, fails nobody."""
    written(tmp_path)
    (tmp_path / name).write_bytes(damage)
    expected = Expected(tmp_path)
    gains = expected.gains(np.array([1, 99], np.uint32), URLS[:2])
    assert np.isnan(gains[0]) or gains[0] == 4.0 or name == IMPACT_FILE
    assert len(expected.fronts(np.array([1.0]))) == 1


def test_numbers_that_make_no_sense_are_not_believed(tmp_path: Path) -> None:
    """Neither infinite gains nor gains below nothing."""
    expected = written(tmp_path, np.array([np.inf, -1.0, 5.0, -np.inf], np.float32))
    assert np.isnan(expected.known(np.array([0, 1, 3], np.uint32))).all()


def test_columns_of_another_kind_are_not_taken_for_gains(tmp_path: Path) -> None:
    """A file of whole numbers, say."""
    with (tmp_path / IMPACT_FILE).open("wb") as file:
        np.save(file, np.arange(5))
    assert Expected(tmp_path).turn == 0


def test_how_it_was_made_is_told_or_not(tmp_path: Path) -> None:
    """What cannot be read tells nothing."""
    assert read_told(tmp_path) is None
    write_told(tmp_path, {"weighed": 3})
    assert read_told(tmp_path) == {"weighed": 3}
    (tmp_path / TOLD).write_text("[1,")
    assert read_told(tmp_path) is None
