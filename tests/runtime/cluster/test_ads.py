"""Ads of a cluster: gateways with one ledger in PostgreSQL, clickers at all of them, and one that is killed."""

import http.client
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal

import pytest
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres
from tests.runtime.ads.ads_folder import BROWSER, SERVE, ad
from tests.tree_runs import PATIENCE_S

from vedette.adapters.ads.ledger_store import load_entries
from vedette.adapters.ads.postgres_ledger import AdDatabase, PostgresLedger
from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.adapters.registry.command_log import list_latest
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.registry import create_cluster
from vedette.errors import ClusterError, UsageError
from vedette.runtime.ads.selection import LiveAdServer, build_settings
from vedette.runtime.ads.service import LiveAdService
from vedette.runtime.cluster.ads import ClusterAdStorage
from vedette.serve.ads.ledger import EntryKind
from vedette.web.commands.ads_commands import AdCommand, PauseCampaign, ReviewAd, SaveAd, SaveAdvertiser, SaveCampaign
from vedette.web.commands.ads_text import parse_advertiser, parse_campaign
from vedette.web.public.visits import Visitor

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)

CLICKERS, GATEWAYS = 16, 4
LIMIT = Decimal("1.20")
BUDGET = Decimal("0.80")
_HREF = re.compile(r'href="(/sponsored/[^"]+)"')

GATEWAY = """
import sys
from dataclasses import replace
from tests.runtime.ads.ads_folder import SECRET, SERVE
from tests.web.small_search import SmallSearch
from vedette.runtime.ads.selection import LiveAdServer, build_settings
from vedette.runtime.cluster.ads import ClusterAdStorage
from vedette.web.app import create_app
from vedette.web.public.ads import AdLinks
from vedette.web.rendering import Branding
from vedette.web.server import bind, create_server

storage = ClusterAdStorage(sys.argv[1], list, str)
serve = replace(SERVE, trusted_proxies=("127.0.0.1",))
ads = LiveAdServer(storage, build_settings(serve), storage.get_salt)
listener = bind("127.0.0.1:0")
print(listener.getsockname()[1], flush=True)
app = create_app(SmallSearch(), serve, Branding(), sponsored=AdLinks(ads, SECRET))
create_server(app, ("127.0.0.1",)).run([listener])
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of this module."""
    with run_postgres() as server:
        yield server


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    """A cluster without nodes."""
    dsn = postgres.create_database()
    create_cluster(dsn, 2, 600.0)
    return dsn


def open_storage(dsn: str) -> ClusterAdStorage:
    """Open the ads of the cluster, as a gateway does."""
    return ClusterAdStorage(dsn, lambda: [UserKeyRow("ann", "digest", {}, 0.0, None)], str)


def open_market(dsn: str, budget: Decimal, limit: Decimal) -> ClusterAdStorage:
    """Create an advertiser with two campaigns of this budget, and a limit for both."""
    storage = open_storage(dsn)
    orders: list[AdCommand] = [SaveAdvertiser(parse_advertiser("ann", "ann", str(limit)))]
    for number, campaign in enumerate(("spring", "fall"), 1):
        orders.append(SaveCampaign(parse_campaign(campaign, "ann", str(budget))))
        orders += [SaveAd(ad(campaign, "0.09")), ReviewAd(number, "approved")]
    for order in orders:
        storage.run_command(order, "a test", "")
    return storage


class Clickers:
    """Sixteen people, each with a separate network for each search, who search and click at random gateways."""

    def __init__(self, ports: list[int]) -> None:
        self._ports, self._lost = ports, set[int]()
        self.paid = 0
        self.is_over = False

    def lose(self, port: int) -> None:
        """Stop using a gateway."""
        self._lost.add(port)

    def run(self, number: int) -> None:
        """Search and click until everything is spent."""
        draw = random.Random(number)  # noqa: S311 - which gateway
        for turn in range(200):
            if self.is_over:
                return
            address = f"198.{number}.{turn}.7"
            found = _HREF.findall(self._get(draw, "/search?q=red+shoes", address))
            time.sleep(0.6)  # a person reads first
            for href in found:
                self.paid += "303" in self._get(draw, href, address)

    def _get(self, draw: random.Random, path: str, address: str) -> str:
        """Send a request to a gateway; a killed one does not respond."""
        port = draw.choice([port for port in self._ports if port not in self._lost])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path, headers=BROWSER | {"x-forwarded-for": address})
            answer = connection.getresponse()
            return f"{answer.status} {answer.read().decode()}"
        except (OSError, http.client.HTTPException):
            return ""
        finally:
            connection.close()


def test_sixteen_clickers_over_four_gateways_overspend_nothing(dsn: str) -> None:
    """One gateway is killed while all click: the ledger balances, and the advertiser pays exactly its limit."""
    open_market(dsn, BUDGET, LIMIT).close()
    gateways = [
        subprocess.Popen([sys.executable, "-c", GATEWAY, dsn], stdout=subprocess.PIPE, text=True)
        for _ in range(GATEWAYS)
    ]
    try:
        ports = [int(gateway.stdout.readline()) for gateway in gateways if gateway.stdout is not None]
        clickers = Clickers(ports)
        threads = [threading.Thread(target=clickers.run, args=(number,)) for number in range(CLICKERS)]
        for thread in threads:
            thread.start()
        with closing(AdDatabase(dsn)) as database:
            wait_for_charges(database, LIMIT / 3)
            gateways[0].kill()
            clickers.lose(ports[0])
            wait_for_charges(database, LIMIT)
            time.sleep(2.0)  # clicks go on when there is nothing left
            clickers.is_over = True
            for thread in threads:
                thread.join()
            PostgresLedger(database)  # whose opening checks the books
            with database.read() as db:
                entries = list(load_entries(db))
    finally:
        for gateway in gateways:
            gateway.kill()
            gateway.communicate()
    charged = [entry for entry in entries if entry.kind is EntryKind.CHARGED]
    by_payer = {payer: sum(one.amount for one in charged if one.payer == payer) for payer in ("spring", "fall")}
    assert sum(by_payer.values()) == LIMIT
    assert max(by_payer.values()) <= BUDGET
    assert len({one.token for one in charged}) == len(charged)
    assert clickers.paid >= len(charged) - CLICKERS  # the killed gateway may have charged some without an answer


def wait_for_charges(database: AdDatabase, least: Decimal) -> None:
    """Wait until this much has been charged."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        with database.read() as db:
            if sum(entry.amount for entry in load_entries(db) if entry.kind is EntryKind.CHARGED) >= least:
                return
        time.sleep(0.1)  # nothing signals that a click was charged
    raise AssertionError("too few clicks were charged")


def test_a_command_on_ads_is_executed_once(dsn: str) -> None:
    """Repeated with the same id, it has the same outcome, even if refused. Both are in the cluster's log."""
    storage = open_market(dsn, BUDGET, LIMIT)
    done = [storage.run_command(SaveAd(ad("spring", "0.10", title="More")), "a test", "one") for _ in range(2)]
    assert done[0] == done[1]
    assert len(storage.load_market().ads) == 3
    for _ in range(2):
        with pytest.raises(UsageError, match='there is no campaign "winter"'):
            storage.run_command(PauseCampaign("winter", paused=True), "a test", "two")
    storage.close()
    with connect(dsn) as connection:
        assert [words[:8] for _, words in list_latest(connection, 2, None)] == ["there is", "submitte"]


def test_all_gateways_know_a_person_and_the_reports(dsn: str) -> None:
    """The salt of the day is the same, and reports, keys and explanations come from PostgreSQL."""
    open_market(dsn, BUDGET, LIMIT).close()
    one, other = (open_storage(dsn) for _ in range(2))
    assert one.get_salt("2027-01-15") == other.get_salt("2027-01-15") != other.get_salt("2027-01-16")
    settings = build_settings(SERVE)
    shown = LiveAdServer(one, settings, one.get_salt).choose_ads("red shoes", Visitor("198.51.100.7", "Browser"))
    assert shown
    service = LiveAdService(other, settings)
    assert sum(line.figures.shown for line in service.list_campaigns()) == len(shown)
    assert service.find_advertiser("ann") == "ann"
    explained = service.explain_ad(1, "blue shoes")
    assert explained is not None
    assert not explained.shown
    one.close()
    other.close()


def test_without_postgres_there_are_no_ads(postgres: Postgres) -> None:
    """While PostgreSQL is down, a search is answered without ads immediately."""
    dsn = postgres.dsn("missing")
    storage = open_storage(dsn)
    ads = LiveAdServer(storage, build_settings(SERVE), lambda _day: b"salt")
    for _ in range(2):
        assert ads.choose_ads("red shoes", Visitor("198.51.100.7", "Browser")) == ()
        assert not ads.charge_click("token", Visitor("198.51.100.7", "Browser")).url
    with pytest.raises(ClusterError, match="database missing"):
        storage.load_market()
