"""Impact estimates as files: read completely or not at all; a damaged file counts as missing."""

from pathlib import Path

import numpy as np
import pytest

from vedette.adapters.index_store.impact_store import (
    IMPACT_FILE,
    INFO_FILE,
    PLACES_FILE,
    ImpactEstimates,
    average_places,
    delete_estimates,
    read_info,
    write_estimates,
    write_info,
)
from vedette.frontier.impact.url_features import hash_folders

URLS = ["https://a.test/good/1", "https://a.test/good/2", "https://a.test/bad/3"]
GAINS = np.array([np.nan, 4.0, 2.0, 0.0], np.float32)


def written(folder: Path, gains: "np.ndarray[tuple[int], np.dtype[np.float32]]" = GAINS) -> ImpactEstimates:
    """Return gains of three URLs, with ids 1 to 3."""
    folder.mkdir(parents=True, exist_ok=True)
    places = average_places(*hash_folders(URLS), gains[1:].astype(np.float64), gains[1:].astype(np.float64))
    write_estimates(folder, gains, places)
    return ImpactEstimates(folder)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Gains are found by id; URLs without an estimate and later ids are unknown."""
    expected = written(tmp_path)
    assert expected.version > 0
    assert expected.get_known(np.array([0, 1, 2, 3, 4, 99], np.uint32)).tolist()[1:4] == [4.0, 2.0, 0.0]
    assert np.isnan(expected.get_known(np.array([0, 4, 99], np.uint32))).all()


def test_what_is_found_later_counts_as_is_usual_where_it_lies(tmp_path: Path) -> None:
    """It is worth more in a folder with higher gains; elsewhere on the host, it is in between."""
    expected = written(tmp_path)
    urls = ["https://a.test/good/77", "https://a.test/bad/77", "https://b.test/x/y"]
    good, bad, elsewhere = expected.get_gains(np.zeros(3, np.uint32), urls).tolist()
    assert good > elsewhere > bad > 0
    assert expected.get_front_queues(np.array([4.0, 0.0])).tolist() == [1, 7]


def test_another_making_is_seen_and_none_is_none(tmp_path: Path) -> None:
    """The coordinator polls the file; after it was deleted, there are no estimates."""
    expected = ImpactEstimates(tmp_path)
    assert expected.version == 0
    assert not expected.refresh()
    written(tmp_path)
    assert expected.refresh()
    first = expected.version
    written(tmp_path, np.array([np.nan, 9.0], np.float32).repeat([1, 3]))
    assert expected.refresh()
    assert expected.version != first
    assert expected.get_known(np.array([1], np.uint32)).tolist() == [9.0]
    delete_estimates(tmp_path)
    assert expected.refresh()
    assert expected.version == 0
    assert np.isnan(expected.get_gains(np.array([1], np.uint32), URLS[:1])).all()


@pytest.mark.parametrize("name", [IMPACT_FILE, PLACES_FILE])
@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 nothing", b"\x93NUMPY\x01\x00 half"])
def test_damage_is_as_if_nobody_knew(tmp_path: Path, name: str, damage: bytes) -> None:
    """A truncated or overwritten file causes no failure."""
    written(tmp_path)
    (tmp_path / name).write_bytes(damage)
    expected = ImpactEstimates(tmp_path)
    gains = expected.get_gains(np.array([1, 99], np.uint32), URLS[:2])
    assert np.isnan(gains[0]) or gains[0] == 4.0 or name == IMPACT_FILE
    assert len(expected.get_front_queues(np.array([1.0]))) == 1


def test_numbers_that_make_no_sense_are_not_believed(tmp_path: Path) -> None:
    """Infinite and negative gains are ignored."""
    expected = written(tmp_path, np.array([np.inf, -1.0, 5.0, -np.inf], np.float32))
    assert np.isnan(expected.get_known(np.array([0, 1, 3], np.uint32))).all()


def test_columns_of_another_kind_are_not_taken_for_gains(tmp_path: Path) -> None:
    """An example is a file of integers."""
    with (tmp_path / IMPACT_FILE).open("wb") as file:
        np.save(file, np.arange(5))
    assert ImpactEstimates(tmp_path).version == 0


def test_how_it_was_made_is_told_or_not(tmp_path: Path) -> None:
    """An unreadable file has no description."""
    assert read_info(tmp_path) is None
    write_info(tmp_path, {"weighed": 3})
    assert read_info(tmp_path) == {"weighed": 3}
    (tmp_path / INFO_FILE).write_text("[1,")
    assert read_info(tmp_path) is None
