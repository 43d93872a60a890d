"""Index generations are created and deleted while others read them."""

import fcntl
import threading
from pathlib import Path

import pytest

from vedette.adapters.index_store.generations import Generations
from vedette.errors import StoreBusy


def test_one_that_vanishes_while_it_is_looked_at_needs_no_news(tmp_path: Path) -> None:
    """If it disappears between listing it and checking its writer, it counts like a dangling link."""
    generations = Generations(tmp_path)
    serving = generations.begin()
    generations.activate(serving)
    generations.save_seq(serving, 7)
    (generations.folder / "99").symlink_to(tmp_path / "gone")
    assert generations.min_indexed_seq() == 7


def test_to_look_who_writes_one_leaves_nothing_behind(tmp_path: Path) -> None:
    """Otherwise, a folder that is being removed would not be empty."""
    generations = Generations(tmp_path)
    given_up = generations.begin()
    generations.min_indexed_seq()
    assert [path.name for path in given_up.iterdir()] == ["tantivy"]


def test_who_only_looks_does_not_keep_the_writer_out(tmp_path: Path) -> None:
    """The check only takes the lock for a moment, and the writer waits that long."""
    generations = Generations(tmp_path)
    generation = generations.begin()
    looking = (generation / "lock").open("a")
    fcntl.flock(looking, fcntl.LOCK_EX)
    threading.Timer(0.1, looking.close).start()
    generations.lock(generation).close()


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    """The second one gets an error that says what to do."""
    generations = Generations(tmp_path)
    generation = generations.begin()
    with generations.lock(generation), pytest.raises(StoreBusy, match="stop it, or wait"):
        generations.lock(generation)
