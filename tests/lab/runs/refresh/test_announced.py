"""Sites that announce their changes: a policy that listens is fresher, and no worse once announcements stop."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from tests.lab.histories import P, V, web

from vedette.lab.runs.refresh.run import RefreshGame, RefreshSetup, run_refresh
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints, rng_for
from vedette.refresh.policies.expected_gain import ExpectedGain

DAY_S = 86_400.0
DAYS, PAGES, BUDGET = 50, 40, 8.0
# From when on it is measured, and when announcements stop.
STOP_D = 20.0


def changing_site() -> History:
    """Return a site whose pages change at random, once in 4 to 60 days on average.

    In total, about three times a day.
    """
    rng = rng_for(5, "tests/announced")
    gaps_d = [rng.exponential(mean_d, 4 * DAYS) for mean_d in np.geomspace(4.0, 60.0, PAGES)]
    times_s = [[0.0, *(at_d * DAY_S for at_d in np.cumsum(gaps) if at_d < DAYS)] for gaps in gaps_d]
    pages = [P([V(at_s) for at_s in each], url=f"https://a.test/d/{n}") for n, each in enumerate(times_s)]
    return web(pages, end_s=DAYS * DAY_S)


@dataclass(frozen=True)
class Sitemap:
    """A sitemap that is fetched with every batch and dates all changes until a day; then it may be unreadable."""

    history: History
    until_d: float = np.inf
    is_readable: bool = True

    def announce(self, pages: Ints, now_s: float) -> dict[str, Floats]:
        """Return when each page last changed, according to the sitemap, and when the sitemap was last fetched."""
        until_s = min(now_s, self.until_d * DAY_S)
        at_s = self.history.version_at(pages, until_s)
        changed_s = self.history.version_at_s[at_s]
        heard_s = now_s if self.is_readable else until_s
        return {"signal_s": np.where(changed_s > 0, changed_s, np.nan), "heard_s": np.full(len(pages), heard_s)}


@cache
def stale_share(until_d: float | None, *, is_readable: bool = True) -> float:
    """Return the share of outdated copies after the first days; None means a site without a sitemap."""
    history = changing_site()
    sitemap = Sitemap(history, until_d, is_readable) if until_d is not None else None
    game = RefreshGame(0.0, DAYS * DAY_S, BUDGET, step_s=DAY_S / 3, warm_up=STOP_D / DAYS)
    return 1 - run_refresh(history, RefreshSetup(ExpectedGain(), announcer=sitemap), game).freshness


def test_pages_that_are_announced_perfectly_are_fresh() -> None:
    """With a fetch for every announced change, there are hardly any outdated copies, far fewer than without."""
    assert stale_share(np.inf) <= 0.05
    assert stale_share(np.inf) < stale_share(None) / 2


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_sitemap_that_stops_does_no_harm(*, is_readable: bool) -> None:
    """When announcements stop, copies are as fresh as without any, even if the sitemap is unreadable."""
    assert stale_share(STOP_D, is_readable=is_readable) <= stale_share(None) + 0.01
