"""A web without its waves: changes of many pages at once are removed, except births."""

from pathlib import Path

import numpy as np
from tests.lab.git_repositories import Repository

from vedette.lab.worlds.git import read_git
from vedette.lab.worlds.history_views import has_waves, remove_waves


def page(text: str) -> bytes:
    """Return a page with this text."""
    return f"<title>x</title><p>{text}</p>".encode()


def test_waves_are_left_out_and_everything_else_stays(tmp_path: Path) -> None:
    """Of 30 pages that change together, only the single change is left, with its time and text; births stay."""
    born = {b"p%d.html" % number: page(f"first {number}") for number in range(30)}
    swept = {path: body + b"<p>swept</p>" for path, body in born.items()}
    edited = swept | {b"p7.html": page("edited alone")}
    world = Repository(tmp_path / "r").branch("main", (1000, born), (5000, swept), (9000, edited))
    history = read_git(world)
    calm = remove_waves(history)
    assert has_waves(history)
    assert not has_waves(calm)
    assert (calm.pages, len(calm.version_page)) == (30, 31)
    (late,) = np.flatnonzero(calm.version_at_s == 9000)
    assert calm.urls[calm.version_page[late]].endswith("p7.html")
    assert "edited alone" in calm.texts.text(int(late))
    assert len(calm.link_start) == 32
