"""Communities of pages and users around a topic (Pandey08, 5.4 and 5.7.1), by name.

    community:NAME[+exact][+EXPONENT][+visitsN][+surfX]

``+exact`` lets the engine measure popularity without noise, as in the thesis: awareness times quality. Otherwise it
counts likes. ``+0.5`` sets the exponent of the quality distribution, which is ``0.4 i^(-2/3)`` by default.
``+visits100000`` sets visits per day, with as many users (figure 5.9), ``+surf0.6`` the share of visits that follow
links or chance instead of a list (figure 5.11).
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from vedette.attention import visibility
from vedette.errors import UsageError
from vedette.lab.core.registry import suggest_name
from vedette.policy import Floats, rng_for

BEST_QUALITY = 0.4
_YEAR_DAYS = 365.0
_NAME = re.compile(r"([a-z-]+)(\+exact)?(?:\+(\d\.\d{1,4}))?(?:\+visits(\d{2,6}))?(?:\+surf(0\.\d{1,2}|1\.0))?")


class Community(NamedTuple):
    """A community: pages, users, visits per day, and page lifetimes. A tenth of the users is monitored.

    ``surf_share`` is the share of visits that follow links or chance instead of a ranked list (5.9).
    """

    pages: int = 10_000
    users: int = 1_000
    visits_per_day: int = 1_000
    life_days: float = 1.5 * _YEAR_DAYS
    surf_share: float = 0.0
    exponent: float = 2 / 3
    exact: bool = False

    @property
    def monitored_users(self) -> int:
        """Return the number of monitored users of the community (m)."""
        return self.users // 10

    @property
    def views_per_day(self) -> int:
        """Return the visits per day of the community's monitored users (v)."""
        return self.visits_per_day // 10


# Sweeps keep fixed what section 5.8 does: by size and by visit rate there are as many users as visits, a tenth of the
# pages in the first case; by users the visits stay.
COMMUNITIES: Mapping[str, Community] = {
    "default": Community(),
    "small": Community(pages=1_000, users=100, visits_per_day=100),
    "large": Community(pages=100_000, users=10_000, visits_per_day=10_000),
    "short-lived": Community(life_days=0.5 * _YEAR_DAYS),
    "long-lived": Community(life_days=4.5 * _YEAR_DAYS),
    "quiet": Community(users=100, visits_per_day=100),
    "busy": Community(users=10_000, visits_per_day=10_000),
    "few-users": Community(users=100),
    "many-users": Community(users=10_000),
    "surfing": Community(surf_share=0.3),
}


def parse_community(name: str) -> Community:
    """Parse a community from the part of its name after the colon.

    >>> parse_community("quiet+exact").monitored_users, parse_community("default+0.5").exponent
    (10, 0.5)
    >>> parse_community("default+visits5000").monitored_users, parse_community("default+exact+surf0.6").surf_share
    (500, 0.6)
    """
    read = _NAME.fullmatch(name)
    if read is None or read[1] not in COMMUNITIES:
        raise UsageError(f'there is no world "community:{name}"; {suggest_name(name.partition("+")[0], COMMUNITIES)}')
    found = COMMUNITIES[read[1]]._replace(exact=bool(read[2]))
    if read[3]:
        found = found._replace(exponent=float(read[3]))
    if read[4]:
        found = found._replace(users=int(read[4]), visits_per_day=int(read[4]))
    return found._replace(surf_share=float(read[5])) if read[5] else found


def draw_qualities(community: Community, seed: int) -> Floats:
    """Draw the quality of each page of a community, in random order."""
    ranks = np.arange(1, community.pages + 1, dtype=np.float64)
    return rng_for(seed, "community/qualities").permutation(BEST_QUALITY * ranks**-community.exponent)


def view_shares(pages: int) -> Floats:
    """Return the share of a community's views that each rank of a result list gets (eq. 5.5)."""
    shares = visibility(np.arange(1, pages + 1))
    return np.asarray(shares / shares.sum())


def ideal_qpc(quality: Floats) -> float:
    """Return the quality per click of a community ranked by true quality: without surfing, no policy exceeds it.

    >>> round(ideal_qpc(np.array([0.1, 0.4])), 3)
    0.322
    """
    return float(view_shares(len(quality)) @ np.sort(quality)[::-1])
