"""Runtime settings: the start parameters of a process tree, as plain values that every process gets."""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.net.renderer import explain_missing_browser
from vedette.config import Config
from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.decision_record import Decision, DecisionRecorder, format_decision
from vedette.engine.scheduling.schedule import Schedule
from vedette.errors import UsageError
from vedette.fetch.connect_to import ConnectOverride
from vedette.model import Site
from vedette.refresh.policies.fixed import Fixed

if TYPE_CHECKING:  # one machine imports nothing of a cluster
    from vedette.runtime.cluster.gateway import GatewaySettings
    from vedette.runtime.cluster.lease import ShardSettings

LEASE_SPAN_WALL_S = 10.0
AHEAD_WALL_S = 1.0


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """Settings of one process tree: configuration, clock and options of a ``crawl`` or ``up``.

    ``forever`` serves all sites of the state, fetches pages again, and ends only when it is stopped. Otherwise the
    named sites are crawled until nothing is left, or until only troubled hosts are left for ``patience_s``.
    ``only_requested`` restricts fetching to URLs requested by name. A fetcher that sends nothing for ``lease_wall_s``
    loses its tasks. ``listener`` is the serving address, if any; ``demo`` means that the web is synthetic.
    ``shard`` is the part of a cluster that the tree runs, if it is one; ``gateway`` is set if it only serves a cluster.
    """

    config: Config
    clock: Clock
    folder: Path
    agent: str
    sites: tuple[Site, ...] = ()
    detours: tuple[ConnectOverride, ...] = ()
    allow_private: bool = False
    max_pages: int | None = None
    forever: bool = False
    only_requested: bool = False
    patience_s: float = 300.0
    workers: int = 1
    lease_wall_s: float = 300.0
    listener: socket.socket | None = None
    demo: bool = False
    shard: "ShardSettings | None" = None
    gateway: "GatewaySettings | None" = None

    @property
    def has_observers(self) -> bool:
        """Whether remote observers may report to this tree: one that serves, on one machine."""
        return self.forever and self.listener is not None and self.shard is None and self.gateway is None


def build_rules(settings: RuntimeSettings, sites: list[SiteRow], blocked: frozenset[str] = frozenset()) -> CrawlRules:
    """Build the coordinator's crawl rules from settings, the state's sites and the blocked domains."""
    crawl = settings.config.crawl
    named = {site.start for site in settings.sites}
    active = [not row.paused and (settings.forever or row.site.start in named) for row in sites]
    return CrawlRules(
        sites=tuple(row.site for row, runs in zip(sites, active, strict=True) if runs),
        paused=tuple(row.site for row, runs in zip(sites, active, strict=True) if not runs),
        blocked=blocked,
        delay_s=crawl.delay_s,
        address_delay_s=crawl.address_delay_s,
        budget_per_s=crawl.budget.requests / crawl.budget.per_s,
        allow_public=bool(crawl.contact),
        allow_private=settings.allow_private,
        detours=settings.detours,
        max_pages=settings.max_pages,
        max_redirects=crawl.max_redirects,
        robots_max_age_s=crawl.robots_max_age_s,
        order=crawl.order,
        refresh=settings.config.refresh.policy,
        discovery=crawl.discovery_policy,
        idle_share=settings.config.refresh.idle_share / 100,
        idle_interval_s=settings.config.refresh.idle_interval_s,
        lease_span_s=LEASE_SPAN_WALL_S * settings.clock.speed,
        ahead_s=AHEAD_WALL_S * settings.clock.speed,
        recrawl=settings.forever,
        render=not explain_missing_browser(crawl.browser),
        only_requested=settings.only_requested,
        agent=settings.agent,
        guess_sitemaps=crawl.guess_sitemaps,
    )


def build_schedule(settings: RuntimeSettings) -> Schedule:
    """Build the recrawl schedule from settings.

    A ``crawl`` fetches nothing again, but an ``up`` that follows it needs the times.
    """
    sources = Fixed(interval_s=settings.config.crawl.source_interval_s)
    return Schedule(recrawl=True, sources=sources, witness=open_decision_log())


DECISIONS_ENV = "VEDETTE_DECISIONS"


def open_decision_log() -> DecisionRecorder | None:
    """Open the decision log and return its recorder, if the environment variable requests one."""
    name = os.environ.get(DECISIONS_ENV)
    return _build_writer(Path(name)) if name else None


def _build_writer(path: Path) -> DecisionRecorder:
    try:
        path.open("a").close()
    except OSError as error:
        raise UsageError(f"{DECISIONS_ENV}: cannot write {path} ({error.strerror}); choose another file") from error

    def write(decision: Decision) -> None:
        # A full disk ends the log, not the crawl.
        with suppress(OSError), path.open("a", encoding="utf-8") as file:
            file.write(format_decision(decision) + "\n")

    return write
