"""Curves are rebuilt if there is a reason and enough time; pages are cached until they change."""

import os
from contextlib import closing
from math import nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.clock import start_clock
from vedette.adapters.index_store.gain_store import GainStore
from vedette.adapters.index_store.page_table import PageFacts, PageTable, PageTableWriter
from vedette.index.quality.query_curves import QueryCurveBuilder, QueryCurves
from vedette.index.quality.watched_queries import NO_WORDS, build_watched
from vedette.runtime.indexing.gain_meter import GainMeter
from vedette.runtime.indexing.query_curves import (
    CPU_SHARE,
    CURVES_FILE,
    CurveFile,
    CurveInfo,
    CurvesJob,
    is_due,
    read_curve_info,
    save_curves,
)
from vedette.text import hash_words

FACTS = PageFacts(3, 7, 120, -5, nan, 10.0, 20.0, 2, 0.25, "public", "en", "html")
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
MADE = CurveInfo(pages=1000, took_s=2.0, age_s=HOUR_S)
ENOUGH_S = MADE.took_s / CPU_SHARE


def no_curves() -> QueryCurves:
    """Return curves for no queries."""
    return QueryCurveBuilder(build_watched([])).build(0)


def write(writer: PageTableWriter, id_: int, body: str) -> None:
    """Return a page in the index."""
    numbers = hash_words(body.encode())
    writer.put(id_, FACTS, b"", (numbers, (0, 0, 0, 0, len(numbers))), None)


@pytest.mark.parametrize(
    ("pages", "changes", "age_s"), [(1600, 0, HOUR_S), (1000, 1001, HOUR_S), (1000, 1, DAY_S + HOUR_S)]
)
def test_a_reason_is_not_enough_without_pay(pages: int, changes: int, age_s: float) -> None:
    """After growth, changes or a day, curves are rebuilt once indexing has taken long enough."""
    made = MADE._replace(age_s=age_s)
    assert is_due(made, pages, changes, ENOUGH_S)
    assert not is_due(made, pages, changes, 0.9 * ENOUGH_S)
    assert not is_due(MADE, 1000, 1, 100 * ENOUGH_S)


def test_some_things_do_not_wait_for_pay() -> None:
    """Without curves, nothing is measured; much smaller or older ones are not useful."""
    assert is_due(None, 1, 1, 0.0)
    assert is_due(MADE, 4001, 1, 0.0)
    assert is_due(MADE._replace(age_s=8 * DAY_S), 1000, 1, 0.0)


@given(st.lists(st.tuples(st.floats(0.0, 50.0), st.integers(0, 3000)), max_size=80), st.floats(0.01, 5.0))
def test_making_curves_stays_a_small_part_of_indexing(steps: list[tuple[float, int]], took_s: float) -> None:
    """However much pages change, rebuilding takes no more than its share of the time for indexing."""
    made, since_s, changes, makings = MADE._replace(took_s=took_s), 0.0, 0, 0
    for spent_s, more in steps:
        since_s, changes = since_s + spent_s, changes + more
        if is_due(made, 1000, changes, since_s):
            since_s, changes, makings = 0.0, 0, makings + 1
    assert makings * took_s <= CPU_SHARE * sum(spent_s for spent_s, _ in steps) + 1e-9


def test_curves_say_how_they_were_made(tmp_path: Path) -> None:
    """They include number of pages, time and overlap with served results; damaged or old ones count as missing."""
    assert read_curve_info(tmp_path) is None
    save_curves(tmp_path, no_curves(), CurveInfo(12, 0.5, 0.0, 0.875))
    made = read_curve_info(tmp_path)
    assert made is not None
    assert (made.pages, made.took_s, made.overlap) == (12, 0.5, 0.875)
    with (tmp_path / CURVES_FILE).open("wb") as file:
        np.savez(file, numbers=np.zeros(0))
    assert read_curve_info(tmp_path) is None
    (tmp_path / CURVES_FILE).write_bytes(b"PK nothing")
    assert read_curve_info(tmp_path) is None
    assert CurveFile(tmp_path).load() is None


def test_after_a_restart_good_curves_are_left_as_they_are(tmp_path: Path) -> None:
    """A new process reads how they were built, and rebuilds them once when they are old."""
    with closing(PageTableWriter(tmp_path)) as writer:
        write(writer, 1, "tide")
    table = PageTable(tmp_path)
    save_curves(tmp_path, no_curves(), CurveInfo(1, 0.5, 0.0))
    with closing(CurvesJob(tmp_path, start_clock(0.0, 1.0))) as curving:
        assert not curving.step(table, 5, 100.0)
        old_s = (tmp_path / CURVES_FILE).stat().st_mtime - 8 * DAY_S
        os.utime(tmp_path / CURVES_FILE, (old_s, old_s))
        assert curving.step(table, 6, 200.0)
        assert not curving.step(table, 6, 300.0)


def test_pages_are_remembered_until_each_is_asked_for(tmp_path: Path) -> None:
    """A page that was not prefetched is read by itself, and does not affect the others."""
    with closing(PageTableWriter(tmp_path)) as writer, closing(GainStore(tmp_path)) as book:
        for id_, body in ((1, "low tide"), (2, "full moon"), (3, "sand")):
            write(writer, id_, body)
        gauge = GainMeter(writer, book)
        gauge.prefetch_words([1, 2, 99])
        assert gauge.get_words(99) == NO_WORDS
        assert gauge.get_words(3)[0].tolist() == hash_words(b"sand").tolist()
        write(writer, 1, "high tide")
        assert gauge.get_words(1)[0].tolist() == hash_words(b"low tide").tolist()
        assert gauge.get_words(2)[0].tolist() == hash_words(b"full moon").tolist()
        assert gauge.get_words(1)[0].tolist() == hash_words(b"high tide").tolist()
        idle = GainMeter(writer, None)
        idle.prefetch_words([1])
        assert idle.get_words(1) == NO_WORDS
