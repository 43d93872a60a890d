"""Robots review: when robots.txt changes, the pages of a large host are checked a few at a time."""

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, page, robots, rules_for

from vedette.engine.coordinator import robots_review
from vedette.fetch.robots.state import RobotsResponse
from vedette.model import origin_of

A = "https://a.test"


def test_all_pages_are_judged_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that a new file disallows are deleted in batches, even across a restart; others are left alone."""
    monkeypatch.setattr(robots_review, "MAX_URLS", 8)
    paths = [f"/{folder}/{number}" for number in range(10) for folder in ("open", "closed")]
    web = MemoryWeb({f"{A}/start": page(*paths), f"{A}/robots.txt": robots()})
    web.replies |= {f"{A}{path}": page(title=path) for path in paths}
    drive = Drive(web, rules_for(f"{A}/start", recrawl=True)).begin().run(3600.0)
    assert len(drive.pages()) == 21
    web.replies[f"{A}/robots.txt"] = robots("Disallow: /closed/")
    body = b"User-agent: *\nDisallow: /closed/\n"
    _, state = drive.keeper.host_table.apply_robots(origin_of(A), RobotsResponse(drive.now_s, 200, body, 0, ()))
    drive.book.save_robots(origin_of(A), state)
    drive.keeper._robots_review.start(origin_of(A))
    assert 11 < len(drive.pages()) < 21
    left = drive.after(clean=False).run(3600.0).pages()
    assert {url for url in left if "/closed/" in url} == set()
    assert sum("/open/" in url for url in left) == 10
