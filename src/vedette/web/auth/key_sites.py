"""What a key that is for some sites only may search: these, or parts of them, whatever the query itself says."""

import re
from collections.abc import Iterable, Mapping

from vedette.model import origin_of
from vedette.serve.slate import Slate
from vedette.web.api.openapi import SHAPES
from vedette.web.api.parameters import WrongParameter, shaped
from vedette.web.ports import Count

__all__ = ["covers", "limited", "site_to_search", "sites_met"]

_PORT = re.compile(r":[0-9]{1,5}\Z")


def site_to_search(values: Mapping[str, str], limits: tuple[str, ...]) -> str:
    """The site that the parameter ``site`` names; under limits it is one of these, or a part of one.

    >>> site_to_search({"site": "https://docs.example.org/api/"}, ("example.org",))
    'docs.example.org/api/'
    """
    words = 'site is a host or the beginning of a path on it, such as "docs.example.org/api/".'
    site = shaped(values, "site", SHAPES["site"], words).removeprefix("https://").removeprefix("http://")
    if not limits or (site and any(_within(site, limit) for limit in limits)):
        return site
    if len(limits) == 1 and not site:
        return limits[0]
    raise WrongParameter("site", f"This key is for {', '.join(limits)}: name one of these in site, or a part of one.")


def limited(slate: Slate, limits: tuple[str, ...]) -> Slate:
    """Without results outside the limits."""
    kept = [each for each in slate.results if covers(limits, each.url)]
    return slate._replace(results=tuple(kept))


def covers(limits: tuple[str, ...], url: str) -> bool:
    """Whether a page may be shown under limits; without any, all may.

    >>> covers(("docs.example.org/api",), "https://docs.example.org/api/v1"), covers(("example.org",), "https://org/")
    (True, False)
    """
    place = f"{str(origin_of(url)).partition('://')[2]}/{url.partition('://')[2].partition('/')[2]}"
    return not limits or any(_within(place, limit) for limit in limits)


def sites_met(sites: Iterable[Count], limits: tuple[str, ...]) -> list[Count]:
    """The hosts of which some pages may be shown."""
    return [each for each in sites if not limits or any(_meets(each.value, limit) for limit in limits)]


def _within(site: str, limit: str) -> bool:
    """Whether all of a site belongs to a limit."""
    host, _, path = site.partition("/")
    limit_host, _, limit_path = limit.partition("/")
    if not _PORT.search(limit_host):  # a limit without a port is for all of them
        host = _PORT.sub("", host)
    same = host.lower() == limit_host or (not limit_path and host.lower().endswith(f".{limit_host}"))
    return same and path.startswith(limit_path)


def _meets(host: str, limit: str) -> bool:
    limit_host, _, path = limit.partition("/")
    return host == limit_host or (not path and host.endswith(f".{limit_host}"))
