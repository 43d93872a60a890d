"""A console on small data: an operator in memory, made-up numbers, and the real application around them."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.testclient import TestClient
from tests.web.small_search import NOW_S, SmallSearch

from vedette.adapters.crawl_store.url_list import ListedUrl, UrlFilter, UrlPage
from vedette.adapters.event_store.reader import QueryCount, Totals
from vedette.config import Rate, Serve
from vedette.errors import UsageError, VedetteError
from vedette.learn.workload import Drift, Mover, RisingQuery
from vedette.model import Site
from vedette.web.app import create_app
from vedette.web.commands.commands import Command, CommandResult, ReplaceToken, Undo
from vedette.web.console.ports.cluster import ClusterService
from vedette.web.console.ports.lab_reports import NO_REPORTS, ReportStore
from vedette.web.console.ports.monitoring import (
    BudgetReport,
    CalibrationBin,
    CrawlStatus,
    DiscoveryReport,
    DuePage,
    FoundPage,
    HostLine,
    HostList,
    RefreshStatus,
    RuntimeSettings,
    SearchStats,
    SourceLine,
    StoragePart,
    StorageStatus,
)
from vedette.web.console.ports.sites import (
    ActionLine,
    RemovalImpact,
    RobotsPreview,
    SiteLine,
    SitePreview,
    SiteService,
    StoredRule,
    StoredSite,
    UnlistedHost,
)
from vedette.web.console.routes import ConsoleServices
from vedette.web.observers.ports import ObserverService
from vedette.web.rendering import Branding

TOKEN = "vo_the-right-one"  # noqa: S105 - no one else's
WALL_S = 1_760_000_000.0
ADDRESS = "http://search.example.org"
OURS = {"sec-fetch-site": "same-origin"}
DAY_S = 86_400.0


class SmallOperator:
    """Knows one token, stores sessions and actions, and executes nothing; ``refusal`` says why it refuses."""

    def __init__(self) -> None:
        self.sessions: dict[str, float] = {}
        self.orders: list[Command] = []
        self.order_ids: list[str] = []
        self.lines: list[ActionLine] = []
        self.refusal: VedetteError | None = None
        self.digest = hashlib.sha256(TOKEN.encode()).hexdigest()

    def get_signing_secret(self) -> bytes:
        """Return always the same secret."""
        return b"a secret of this server"

    def is_operator_token(self, token: str) -> bool:
        """Check the token by its digest."""
        return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest() == self.digest

    def session_opened_s(self, digest: str) -> float | None:
        """Return when an open session was opened."""
        return self.sessions.get(digest)

    def open_session(self, digest: str, wall_s: float, _by: str) -> None:
        """Open a session until it is closed."""
        if self.refusal is not None:
            raise self.refusal
        self.sessions[digest] = wall_s

    def close_session(self, digest: str) -> None:
        """Close a session, if it is open."""
        if self.refusal is not None:
            raise self.refusal
        self.sessions.pop(digest, None)

    def run_command(self, order: Command, by: str, id_: str = "") -> CommandResult:
        """A new token ends all sessions; anything else is recorded."""
        self.order_ids.append(id_)
        if self.refusal is not None:
            raise self.refusal
        if isinstance(order, ReplaceToken):
            self.digest = order.digest
            self.sessions.clear()
        else:
            return self._noted(order, by)
        return CommandResult("done", 0)

    def list_actions(self, most: int, before: int | None = None) -> list[ActionLine]:
        """Return the latest first."""
        found = [line for line in reversed(self.lines) if before is None or line.id < before]
        return found[:most]

    def _noted(self, order: Command, by: str) -> CommandResult:
        if isinstance(order, Undo):
            line = next((each for each in self.lines if each.id == order.action and each.can_be_undone), None)
            if line is None:
                raise UsageError("there is no such action that can be undone")
            self.lines[self.lines.index(line)] = line._replace(can_be_undone=False, undone_s=NOW_S)
        self.orders.append(order)
        words = f"{type(order).__name__} was carried out"
        self.lines.append(ActionLine(len(self.lines) + 1, NOW_S - 60, words, by, not isinstance(order, Undo)))
        return CommandResult(words, len(self.lines))


class SmallWatch:
    """Numbers for each page; set its fields for other numbers."""

    def __init__(self) -> None:
        self.crawl_now = CrawlStatus(is_running=True, sites=1, known=12, waiting=3, hosts=2, waiting_why={"resting": 2})
        self.host_rows: tuple[HostLine, ...] = (HostLine("docs.example.org", 3, "resting", NOW_S + 90, 0, ""),)
        self.asked = SearchStats(
            Totals(40, 4, 30, 12, {"its user agent names a program": 3}, 11),
            (QueryCount("lag", "Lag", 9, 4, 0, 5, NOW_S - 60),),
            (QueryCount("lga", "lga", 2, 1, 2, 0, NOW_S - 600),),
            (RisingQuery("storm", 20.0, 0.5),),
            Drift(0.3, is_notable=True, movers=(Mover("storm", 0.2, 0.01),)),
        )
        home = DuePage("https://docs.example.org/", NOW_S - 30, "fixed: looked at every hour")
        page = DuePage("https://docs.example.org/lag", NOW_S + 3600, "", 1 / 3, 1 / 9, 1.0, 0.4, 0.7)
        tenths = (
            *[CalibrationBin(20.0, 2.0 * place + 1.0, 2.0 * place) for place in range(9)],
            CalibrationBin(0.0, 0.0, 0.0),
        )
        self.refresh_now = RefreshStatus("expected-gain", 0.8, 180.0, 108.0, tenths, 0.83, 12, (home, page))
        feed = SourceLine(f"{page.url}.xml", 12.0, 6.0, 24.0, 1.5, 9, 30, 2, NOW_S + 600, "accrual: because")
        still = SourceLine(home.url, 0.04, 0.001, 0.1, 0.0, 5, 0, 5, None, "due now: waiting for its host")
        times = ((60.0, 300.0), (4000.0, 120.0), (5000.0, 600.0), (6000.0, None))
        found = tuple(FoundPage(NOW_S - ago_s, late_s and NOW_S - ago_s - late_s) for ago_s, late_s in times)
        self.discovery_now = DiscoveryReport(found, (feed, still), 14.0, 30.0, 7.0)
        self.machine_now = RuntimeSettings("expected-gain", "0")
        self.budget_now = BudgetReport()
        self.won: list[tuple[float, float]] = []
        self.series: dict[str, list[tuple[float, float]]] = {}
        self.is_kept = True

    def get_crawl_status(self) -> CrawlStatus:
        """Return the test's value."""
        return self.crawl_now

    def list_hosts(self) -> HostList:
        """Return the test's value."""
        return HostList(self.host_rows, len(self.host_rows))

    def get_refresh_status(self) -> RefreshStatus:
        """Return the test's value."""
        return self.refresh_now

    def get_discovery_report(self) -> DiscoveryReport:
        """Return the test's value."""
        return self.discovery_now

    def get_budget_report(self, _days: int) -> BudgetReport:
        """Return the test's value, for any number of days."""
        return self.budget_now

    def get_runtime_settings(self) -> RuntimeSettings:
        """Return the test's value."""
        return self.machine_now

    def list_gains(self, since_s: float) -> list[tuple[float, float]]:
        """Return the test's values since a time."""
        return [point for point in self.won if point[0] >= since_s]

    def get_search_stats(self, _since_s: float) -> SearchStats:
        """Return the test's value, for any time."""
        return self.asked

    def count_filtered(self) -> Mapping[str, int]:
        """Return the test's value, for any time."""
        return self.asked.totals.filtered

    def get_storage_status(self) -> StorageStatus:
        """Return four parts."""
        sizes = (("Archive", 4e9), ("Index", 1e9), ("State", 5e8), ("Searches", 1e7))
        parts = tuple(StoragePart(name, f"what {name.lower()} is", size) for name, size in sizes)
        return StorageStatus(parts, 50 * 10**9, 10**9, 8 * 10**9, 30, 30, "data")

    def load_series(self, name: str, since_s: float, most: int) -> list[tuple[float, float]]:
        """Return the test's values since a time."""
        return [point for point in self.series.get(name, []) if point[0] >= since_s][-most:]

    def get_latest_values(self) -> Mapping[str, float]:
        """Return the last value of each series."""
        return {name: points[-1][1] for name, points in self.series.items() if points}

    def is_recording(self) -> bool:
        """Return the test's value."""
        return self.is_kept


class SmallDesk:
    """Sites in a list, with no other data."""

    def __init__(self, *sites: Site) -> None:
        self.kept = [StoredSite(site, paused=False) for site in sites]
        self.hosts: list[UnlistedHost] = []
        self.kept_rules: list[StoredRule] = []
        self.listed: list[ListedUrl] = []
        self.asked: list[UrlFilter] = []
        self.told: dict[str, Any] = {}

    def list_sites(self) -> list[SiteLine]:
        """Return all sites, as if each had some pages."""
        return [SiteLine(each.site, each.paused, "crawled", "", 5, 9, None, NOW_S - 60, 1.0) for each in self.kept]

    def find_site(self, start: str) -> StoredSite | None:
        """Find a site by its start URL."""
        return next((each for each in self.kept if each.site.start == start), None)

    def preview_site(self, site: Site, asked_s: float | None = None) -> SitePreview:
        """Return a preview that allows everything."""
        robots = RobotsPreview(f"{site.start}robots.txt", "allowed", "", "It was not asked.", asked_s=asked_s)
        return SitePreview(site.start.split("/")[2], "192.0.2.1", robots, ())

    def list_urls(self, which: UrlFilter, after: int, most: int) -> UrlPage:
        """Return the test's values by id, and record the request."""
        self.asked.append(which)
        rows = [row for row in self.listed if row.id > after][:most]
        last, known = (rows[-1].id if rows else after), (self.listed[-1].id if self.listed else 0)
        return UrlPage(tuple(rows), last if last < known else None, last - after, known)

    def preview_removal(self, _start: str) -> RemovalImpact:
        """Return a few pages."""
        return RemovalImpact(9, 5)

    def explain_url(self, url: str) -> dict[str, Any]:
        """Return the test's value."""
        return {"url": url, **self.told}

    def list_unlisted_hosts(self, most: int) -> list[UnlistedHost]:
        """Return the test's value."""
        return self.hosts[:most]

    def list_rules(self) -> list[StoredRule]:
        """Return the test's value."""
        return self.kept_rules


class Console:
    """A client of a whole application with a console. ``wall_s`` and ``clock_s`` are its times."""

    def __init__(
        self,
        serve: Serve | None = None,
        desk: SiteService | None = None,
        reports: ReportStore = NO_REPORTS,
        cluster: ClusterService | None = None,
        get_gap: Callable[[], str] = str,
        observers: ObserverService | None = None,
    ) -> None:
        self.operator, self.watch, self.desk = SmallOperator(), SmallWatch(), desk or SmallDesk()
        self.wall_s, self.clock_s = WALL_S, 0.0
        parts = ConsoleServices(
            self.operator,
            self.watch,
            self.desk,
            lambda: self.wall_s,
            reports,
            cluster=cluster,
            get_gap=get_gap,
            observers=observers,
        )
        self.app = create_app(
            SmallSearch(),
            serve or Serve(rate=Rate(0, 1.0)),
            Branding(),
            clock=lambda: self.clock_s,
            console=parts,
        )
        self.client = self.another()

    def another(self, address: str = "192.0.2.1") -> TestClient:
        """Return another user's browser."""
        return TestClient(self.app, ADDRESS, follow_redirects=False, client=(address, 50_000))

    def sign_in(self, client: TestClient | None = None, token: str = TOKEN, place: str = "") -> Any:
        """Post the token."""
        form = {"token": token, "next": place}
        return (client or self.client).post("/console/signin", data=form, headers=OURS)

    def mark(self) -> str:
        """Return the token in the forms of the session."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.client.get("/console/").text)
        assert found is not None
        return found[1]

    def post(self, path: str, **fields: str) -> Any:
        """Send a form as our own pages do."""
        return self.client.post(path, data={"csrf": self.mark(), **fields}, headers=OURS)


def signed_in(
    desk: SiteService | None = None,
    reports: ReportStore = NO_REPORTS,
    cluster: ClusterService | None = None,
    get_gap: Callable[[], str] = str,
    observers: ObserverService | None = None,
) -> Console:
    """Return a console with a signed-in operator."""
    console = Console(desk=desk, reports=reports, cluster=cluster, get_gap=get_gap, observers=observers)
    assert console.sign_in().status_code == 303
    return console
