"""Sites of earlier days, before they are asked again: which of them lie where nothing may be asked.

That is no reason not to begin: the others go on, and the console says so, too.
"""

from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.net.dns import look_up
from vedette.cli.commands.crawl import check_addresses
from vedette.errors import UsageError
from vedette.fetch.connect_to import detour_for
from vedette.model import origin_of
from vedette.runtime.processes.settings import LiveSettings, rules_for

__all__ = ["check_known"]


def check_known(settings: LiveSettings, rows: list[SiteRow]) -> list[str]:
    """What to do about each site that is not paused and may not be asked."""
    rules = rules_for(settings, rows)
    told = []
    for site in rules.sites:
        origin = origin_of(site.start)
        detour = detour_for(origin, settings.detours)
        addresses = (detour.address,) if detour else look_up(origin.host).addresses
        try:
            if addresses:
                check_addresses(site, addresses, rules)
        except UsageError as error:
            told.append(f"nothing of {site.start} is fetched: {error}; or pause it: vedette sites pause {site.start}")
    return told
