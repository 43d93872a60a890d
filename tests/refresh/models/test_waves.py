"""Pace, age and waves: what a change shows about the page, pages of its age, and its neighbors."""

from dataclasses import replace

import numpy as np

from vedette.policy import Floats, rng_for
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.waves import Waves

DAY_S = 86_400.0
PAGES = 40
# Pages 0 to 19 are in one section (row 2), the others in another (row 3), all of one site (row 1).
SECTION = np.repeat([2, 3], PAGES // 2)


def build_batch(pages: list[int], last_d: float, before_d: Floats | None, *, changed: bool | list[bool]) -> KnownPages:
    """Return a batch about some pages, in days."""
    count, rows = len(pages), np.array(pages)
    return KnownPages(
        rows,
        np.full(count, last_d * DAY_S),
        np.full(count, changed) if isinstance(changed, bool) else np.array(changed),
        np.full(count, before_d is None),
        np.full(count, np.nan),
        before_s=np.full(count, np.nan) if before_d is None else before_d * DAY_S,
        section=SECTION[rows],
        site=np.ones(count, np.int64),
    )


def build_memory() -> Memory:
    """Return pages that were fetched once, and then observed twice without a change."""
    model, every = Waves(), list(range(PAGES))
    memory = model.learn(
        Memory.empty(model.page_width, model.group_width), build_batch(every, 100.0, None, changed=False)
    )
    memory = model.learn(memory, build_batch(every, 150.0, np.full(PAGES, 100.0), changed=False))
    return model.learn(memory, build_batch(every, 200.0, np.full(PAGES, 150.0), changed=False))


def chances(memory: Memory, pages: list[int], last_d: float, at_d: float) -> Floats:
    """Return the probability that each page has changed since a day."""
    batch = build_batch(pages, last_d, None, changed=False)
    return Waves().chance(memory, batch, np.full(len(pages), at_d * DAY_S))


def test_a_change_that_nobody_expected_makes_neighbours_suspect() -> None:
    """After pages of a section changed together, the rest is more likely to have changed than pages elsewhere."""
    before = build_memory()
    after = Waves().learn(before, build_batch([0, 1, 2], 210.0, np.full(3, 200.0), changed=True))
    near, far = ([10], [30])
    assert chances(after, near, 200.0, 210.0) > 1.2 * chances(before, near, 200.0, 210.0)
    assert chances(after, near, 200.0, 210.0) > chances(after, far, 200.0, 210.0)


def test_who_was_fetched_after_a_wave_is_not_suspect() -> None:
    """A wave affects copies from before it; later copies are as good as ever."""
    model = Waves()
    memory = model.learn(build_memory(), build_batch([0, 1, 2, 3], 210.0, np.full(4, 200.0), changed=True))
    assert chances(memory, [10], 200.0, 211.0) > 2 * chances(memory, [10], 210.0, 211.0)


def test_fetches_that_find_nothing_end_a_suspicion() -> None:
    """Unchanged neighbors are evidence for the rest."""
    model = Waves()
    suspect = model.learn(build_memory(), build_batch([0, 1, 2], 210.0, np.full(3, 200.0), changed=True))
    cleared = model.learn(suspect, build_batch([4, 5, 6, 7, 8], 211.0, np.full(5, 200.0), changed=False))
    assert chances(cleared, [10], 200.0, 211.0) < chances(suspect, [10], 200.0, 211.0)


def test_pages_that_rested_go_on_resting() -> None:
    """If changes follow changes, the age factor decreases: the longer a page is quiet, the less it is suspected."""
    model, rng = Waves(), rng_for(1, "tests/waves")
    memory = Memory.empty(model.page_width, model.group_width)
    every, at_d = list(range(PAGES)), 0.0
    last_change_d = np.zeros(PAGES)
    memory = model.learn(memory, build_batch(every, at_d + 1.0, None, changed=False))
    for _ in range(60):
        age_d = at_d - last_change_d
        changed = rng.random(PAGES) < np.where(age_d < 3.0, 0.5, 0.01)
        memory = model.learn(
            memory, build_batch(every, at_d + 2.0, np.full(PAGES, at_d + 1.0), changed=changed.tolist())
        )
        at_d += 1.0
        last_change_d[changed] = at_d
    young, old = (int(page) for page in (last_change_d.argmax(), last_change_d.argmin()))
    now_d = at_d + 1.0
    hazard = model.belief(
        memory, build_batch([young, old], now_d, None, changed=False), np.full(2, now_d * DAY_S)
    ).hazard
    assert hazard[0] > 2 * hazard[1]


def test_a_page_that_is_gone_teaches_nothing() -> None:
    """A death affects neither pace nor waves."""
    memory, model = build_memory(), Waves()
    dead = build_batch([0], 210.0, np.full(1, 200.0), changed=True)
    after = model.learn(memory, replace(dead, gone=np.array([True])))
    assert (after.pages == memory.pages).all()
    assert (after.groups == memory.groups).all()
