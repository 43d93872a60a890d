"""Opening waves for a whole batch gives the same as one page after another, bit for bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.policy import Ints, rng_for
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.waves import AGE_CHANGES, BEFORE, FIRST_WAVE, HIT, LIKE, WAVES, Waves


def open_one_by_one(model: Waves, after: Memory, batch: KnownPages, rows: Ints, unexpected: Ints, level: int) -> None:
    """Open waves as the model defines them: look at the group's waves for every page."""
    for place in unexpected.tolist():
        waves = after.groups[rows[place]][FIRST_WAVE:AGE_CHANGES].reshape(WAVES, 4)
        if (waves[:, BEFORE] > batch.before_s[place]).any():
            continue
        oldest = waves[int(waves[:, BEFORE].argmin())]
        like = after.groups[0, LIKE + 2 * level : LIKE + 2 * level + 2]
        if oldest[BEFORE] > 0:
            like += 0.2 * oldest[HIT:]
            like *= min(1.0, model.remembered / like.sum())
        oldest[:] = batch.before_s[place], batch.last_fetch_s[place], *(like * (model.doubt / like.sum()))


@given(seed=st.integers(0, 2**32), pages=st.integers(0, 40), groups=st.integers(1, 6), batches=st.integers(1, 6))
def test_a_batch_opens_the_waves_of_its_pages_in_turn(seed: int, pages: int, groups: int, batches: int) -> None:
    """This is true for any order and times of fetches, and for any number of changed pages in a group."""
    rng, model = rng_for(seed, "waves"), Waves()
    start = np.zeros((groups, model.group_width))
    start[0, LIKE:] = 0.02, 1.0, 0.01, 2.0
    fast, plain = Memory(np.zeros((pages, 3)), start), Memory(np.zeros((pages, 3)), start.copy())
    for _ in range(batches):
        before_s = np.floor(rng.uniform(1, 50, pages))
        last_s, changed = before_s + np.floor(rng.uniform(1, 20, pages)), rng.random(pages) < 0.7
        no = np.zeros(pages, bool)
        batch = KnownPages(np.arange(pages), last_s, changed, no, np.full(pages, np.nan), before_s=before_s)
        rows, unexpected = rng.integers(0, groups, pages), np.flatnonzero(changed)
        model._open_waves(fast, batch, rows, unexpected, 1)
        open_one_by_one(model, plain, batch, rows, unexpected, 1)
        fast.groups[:, FIRST_WAVE + HIT] += 1.0
        plain.groups[:, FIRST_WAVE + HIT] += 1.0
        assert fast.groups.tobytes() == plain.groups.tobytes()
