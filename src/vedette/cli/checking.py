"""Sites of earlier days, before they are asked again: none may be at an address that must not be asked.

A name that is gone meanwhile is no reason not to begin: the keeper says so in time, and the others go on.
"""

from vedette.cli.crawling import check_addresses
from vedette.edges.book import SiteRow
from vedette.edges.dns import look_up
from vedette.facts import origin_of
from vedette.fetch.connect import detour_for
from vedette.live.settings import LiveSettings, rules_for

__all__ = ["check_known"]


def check_known(settings: LiveSettings, rows: list[SiteRow]) -> None:
    """Raise with what to do, if a site that is not paused may not be asked."""
    rules = rules_for(settings, rows)
    for site in rules.sites:
        origin = origin_of(site.start)
        detour = detour_for(origin, settings.detours)
        addresses = (detour.address,) if detour else look_up(origin.host).addresses
        if addresses:
            check_addresses(site, addresses, rules)
