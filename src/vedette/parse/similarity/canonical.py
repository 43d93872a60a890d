"""Choose the canonical URL of a group of copies, to be shown and refreshed, in explainable steps.

Within a site (a registrable domain) the first step that makes a difference decides:

1. *declared*: the URL that most of the site's copies in the group declare as canonical;
2. *https* over http;
3. *redirects*: other URLs redirect to it;
4. *query*: none, over some, over one with a session or tracking parameter;
5. *present*: the previous choice stays, unless one of the steps above is against it;
6. *in-links*: more links point to it;
7. *shorter*: no index file, fewer segments, fewer characters;
8. *found*: known longer; if all else is equal, the first in alphabetical order.

Then the best of each site are compared: one whose own page declares a copy on another site as canonical gives way to it
(*yields*), and then steps 5 to 8 decide. What a site says about itself counts for nothing against another site, nor
does its https or its tidy URLs: otherwise anyone who copies a page with better markup could take its place.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vedette.model import SESSION_PARAMETERS, TRACKING_PARAMETERS, registrable_domain

_INDEX_FILE = re.compile(r"/(?:index|default)\.[a-z]{2,5}\Z", re.IGNORECASE)
_TRACKING = re.compile(
    "(?:" + "|".join(re.escape(name).replace(r"\*", ".*") for name in TRACKING_PARAMETERS + SESSION_PARAMETERS) + ")",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Member:
    """A URL of a group of copies, as a candidate for the canonical URL.

    ``declared`` is the absolute URL that its page declares as canonical, empty for none; ``redirects`` is how many
    known URLs redirect to it; ``found`` grows with the time of discovery.
    """

    url: str
    declared: str = ""
    redirects: int = 0
    in_links: int = 0
    found: float = 0.0


class _SiteRank(NamedTuple):
    """The rank of a member for canonical URL within its site, step by step; larger is better."""

    declared: int
    https: bool
    redirects: bool
    query: int
    present: bool
    in_links: int
    shorter: tuple[bool, int, int]
    found: float


class _CrossSiteRank(NamedTuple):
    """The rank of a site's best member for canonical URL against those of other sites; larger is better."""

    holds: bool
    present: bool
    in_links: int
    shorter: tuple[bool, int, int]
    found: float


_Ranking = list[tuple[_SiteRank, Member]] | list[tuple[_CrossSiteRank, Member]]

_REASONS: Mapping[str, str] = {
    "declared": "more copies name it as canonical",
    "https": "it is https",
    "redirects": "redirects lead to it",
    "query": "its query is cleaner",
    "holds": "the other yields to a copy on another site",
    "present": "it was chosen before, and there is no strong reason to change",
    "in_links": "more links lead to it",
    "shorter": "its URL is simpler",
    "found": "it was found first",
}


def choose_canonical(members: Sequence[Member], present: str = "") -> tuple[int, str]:
    """Choose the canonical URL of a group of copies: its index, and why it beats the runner-up.

    The order of members does not matter.

    ``present`` is the previous choice, empty for none.

    >>> choose_canonical([Member("http://a.example/x?utm_source=b"), Member("http://a.example/x")])
    (1, 'its query is cleaner, unlike http://a.example/x?utm_source=b')
    """
    if not members:
        raise ValueError("a group of copies needs at least one member")
    sites: dict[str, list[Member]] = {}
    for member in members:
        sites.setdefault(_get_site(member.url), []).append(member)
    rankings = [_rank_within(site, present) for site in sites.values()]
    ranking = rankings[0] if len(rankings) == 1 else _rank_between([best[0][1] for best in rankings], sites, present)
    return members.index(ranking[0][1]), _describe_choice(ranking)


def _rank_within(site: Sequence[Member], present: str) -> _Ranking:
    votes = Counter(member.declared for member in site)
    return _sort_ranking([(_rank_member(member, votes[member.url], present), member) for member in site])


def _rank_between(bests: Sequence[Member], sites: Mapping[str, Sequence[Member]], present: str) -> _Ranking:
    site_of = {member.url: name for name, site in sites.items() for member in site}
    shown = site_of.get(present)
    return _sort_ranking([(_rank_best(best, site_of, shown), best) for best in bests])


def _sort_ranking(standings: _Ranking) -> _Ranking:
    """Sort candidates for the canonical URL, best first; equal ones by the alphabet."""
    standings.sort(key=lambda each: each[1].url)
    standings.sort(key=lambda each: each[0], reverse=True)
    return standings


def _rank_member(member: Member, votes: int, present: str) -> _SiteRank:
    url = member.url
    return _SiteRank(
        declared=votes,
        https=url.startswith("https://"),
        redirects=member.redirects > 0,
        query=_score_query(url),
        present=url == present,
        in_links=member.in_links,
        shorter=_score_simplicity(url),
        found=-member.found,
    )


def _rank_best(best: Member, site_of: Mapping[str, str], shown: str | None) -> _CrossSiteRank:
    ours = site_of[best.url]
    return _CrossSiteRank(
        holds=site_of.get(best.declared, ours) == ours,
        present=ours == shown,
        in_links=best.in_links,
        shorter=_score_simplicity(best.url),
        found=-best.found,
    )


def _score_query(url: str) -> int:
    """Score the query of a URL for canonical choice: 2 for none, 1 for one, 0 for a session or tracking one."""
    query = url.partition("?")[2]
    if not query:
        return 2
    return 0 if any(_TRACKING.fullmatch(piece.partition("=")[0]) for piece in query.split("&")) else 1


def _score_simplicity(url: str) -> tuple[bool, int, int]:
    path = url.partition("?")[0]
    return not _INDEX_FILE.search(path), -path.rstrip("/").count("/"), -len(url)


def _get_site(url: str) -> str:
    authority = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    host, colon, port = authority.rpartition(":")
    return registrable_domain(host if colon and port.isdigit() else authority)


def _describe_choice(ranking: _Ranking) -> str:
    if len(ranking) == 1:
        return "it is the only one"
    (best, _), (second, runner_up) = ranking[:2]
    steps = zip(best._fields, best, second, strict=True)
    decisive = next((step for step, ours, theirs in steps if ours != theirs), "")
    return f"{_REASONS.get(decisive, 'it comes first in the alphabet')}, unlike {runner_up.url}"
