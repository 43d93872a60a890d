"""What an operator should know of a site before it is one: where its host lies, and what to think of first."""

from collections.abc import Iterator, Sequence

from vedette.adapters.net.dns import Lookup
from vedette.discover.urls.scope import in_scope, site_of
from vedette.engine.search.hidden import lies_in
from vedette.fetch.address_guard import is_public
from vedette.model import Failure, Site, origin_of
from vedette.runtime.processes.settings import LiveSettings
from vedette.web.commands.commands import Rule
from vedette.web.console.ports.sites import RobotsLook

__all__ = ["addresses_in_words", "warnings_of"]

MOST_NAMED = 3


def addresses_in_words(lookup: Lookup) -> str:
    """Where a host lies."""
    if lookup.failure is Failure.NAME:
        return "no such name, as far as the resolver knows"
    return ", ".join(lookup.addresses) or "the resolver does not answer"


def warnings_of(
    site: Site,
    others: Sequence[Site],
    rules: Sequence[Rule],
    found: tuple[Lookup, RobotsLook],
    settings: LiveSettings,
) -> tuple[str, ...]:
    """What an operator should think of before a site is added, the gravest first."""
    lookup, robots = found
    return (
        *_of_address(site, lookup, settings),
        *_of_robots(site, robots),
        *_of_others(site, others),
        *_of_rules(site, rules),
    )


def _of_address(site: Site, lookup: Lookup, settings: LiveSettings) -> Iterator[str]:
    if lookup.failure is Failure.NAME:
        yield f"{lookup.host} does not exist, as far as the resolver knows. Check the spelling."
        return
    public = [address for address in lookup.addresses if is_public(address)]
    if public and not settings.config.crawl.contact:
        yield (
            "No contact is set, so nothing is fetched from public hosts: whoever runs them must be able to reach you. "
            "Set crawl.contact in vedette.toml and start again."
        )
    if lookup.addresses and not public and not (site.allow_private or settings.allow_private):
        yield (
            f"{lookup.host} lies at the private address {lookup.addresses[0]}, where nothing is fetched. "
            "Allow private addresses under “More” below if you mean it."
        )


def _of_robots(site: Site, robots: RobotsLook) -> Iterator[str]:
    if robots.says == "disallowed" and not site.ignore_robots:
        yield (
            f"robots.txt disallows {site.start} by the line “{robots.line}”, so it is not fetched and no link is found "
            "there. Begin at a page that is allowed."
        )


def _of_others(site: Site, others: Sequence[Site]) -> Iterator[str]:
    taken = site_of(site.start, others)
    if taken is not None and taken.start == site.start:
        yield f"{site.start} is a site already."
        return
    if taken is not None:
        yield f"{taken.start} takes this start already (scope {taken.scope}); its settings hold for what both take."
    inside = [other.start for other in others if in_scope(other.start, site) is None]
    if inside:
        more = f" and {len(inside) - MOST_NAMED} more" if len(inside) > MOST_NAMED else ""
        yield f"It takes the start of {', '.join(inside[:MOST_NAMED])}{more}, whose settings hold for what both take."


def _of_rules(site: Site, rules: Sequence[Rule]) -> Iterator[str]:
    blocked = frozenset(rule.value for rule in rules if rule.kind == "block")
    host = origin_of(site.start).host
    if lies_in(host, blocked):
        yield f"{host} is on a domain that you blocked: nothing of it is fetched unless you unblock it under Rules."
