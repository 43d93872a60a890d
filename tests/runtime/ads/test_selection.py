"""Sponsored results with a real folder: separate, at the second price, refused with reasons, never over budget."""

import http.client
import re
import threading
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.data_folders import opened
from tests.runtime.ads.ads_folder import BROWSER, SECRET, SERVE, ad, app, market, ordered, serving, sponsor
from tests.tree_runs import PATIENCE_S

from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import LEDGER_FILE
from vedette.config import Serve
from vedette.runtime.commands.setting_commands import execute_setting_command
from vedette.serve.ads.click_validity import ClickRejection
from vedette.serve.ads.ledger import AdImpression
from vedette.web.auth.tokens import TokenClaims, sign_token
from vedette.web.commands.ads_commands import PauseCampaign, ReviewAd, SaveAd, SaveAdvertiser
from vedette.web.commands.ads_text import parse_advertiser
from vedette.web.commands.commands import SetMachine
from vedette.web.public.visits import Visitor

START_S = 1_800_000_000.0
PERSON = Visitor("198.51.100.7", "Browser")
_HREF = re.compile(r'href="(/sponsored/[^"]+)"')


@dataclass
class Clock:
    """The test's time."""

    now_s: float = START_S

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def browser(folder: Path, clock: Clock, address: str = "198.51.100.7") -> TestClient:
    """Return a client of the whole application."""
    made = app(folder, clock)
    return TestClient(
        made, "http://search.example.org", headers=BROWSER, follow_redirects=False, client=(address, 5000)
    )


def somebody(number: int) -> Visitor:
    """Return one of many people, each in a different network."""
    return Visitor(f"198.{51 + number // 250}.{number % 250}.7", "Browser")


def latest(folder: Path) -> list[AdImpression]:
    """Return the impressions, oldest first."""
    return LedgerReader(folder).read_latest(100)[::-1]


def test_ads_are_labeled_and_charged_the_second_price(tmp_path: Path) -> None:
    """They are in a labeled box, nothing is charged before a click, and the higher bid pays the second price."""
    clock = Clock()
    market(tmp_path, (ad("high", "2.00"), "9.00"), (ad("low", "0.50"), "9.00"))
    client = browser(tmp_path, clock)
    page = client.get("/search?q=cheap+red+shoes").text
    frame = page[page.index("<aside") : page.index("</aside>")]
    assert ">Sponsored</h2>" in frame
    assert frame.index("Shoes of high") < frame.index("Shoes of low")
    assert "/sponsored/" not in page.replace(frame, "")
    clock.now_s += 5
    for href in _HREF.findall(frame):
        answer = client.get(href)
        assert (answer.status_code, answer.headers["cache-control"]) == (303, "no-store")
        assert answer.headers["location"].endswith(".example.org/shoes")
    first, second = latest(tmp_path)
    # Nothing is known of either, so both are believed alike: the price is the other's bid, and a cent.
    assert (first.payer, first.price, first.closed) == ("high", Decimal("0.51"), "charged")
    assert (second.payer, second.price, second.closed) == ("low", Decimal("0.05"), "charged")
    assert (first.propensity, first.score > second.score > 0) == (1.0, True)
    assert "believed" in first.reason


def test_only_eligible_ads_are_shown(tmp_path: Path) -> None:
    """Ads are shown only to people, on the first page, and if they are running with a sufficient bid."""
    clock = Clock()
    market(tmp_path, (ad("high", "2.00"), "9.00"), (ad("poor", "0.04"), "9.00"))
    client = browser(tmp_path, clock)
    assert "Shoes of high" in client.get("/search?q=red+shoes").text
    for path in ("/search?q=blue+shoes", "/search?q=red+shoes&page=2", "/search?site=red.example"):
        assert "<aside" not in client.get(path).text
    assert "<aside" not in client.get("/search?q=red+shoes", headers={"user-agent": "curl/8"}).text
    found = {tally.payer: tally for tally in LedgerReader(tmp_path).read_tallies(latest(tmp_path)[0].day)}
    assert (found["high"].shown, found["poor"].shown, found["poor"].lost_reserve) == (1, 0, 1)
    ordered(tmp_path, PauseCampaign("high", paused=True))
    clock.now_s += 2
    assert "<aside" not in client.get("/search?q=red+shoes").text


def test_a_click_on_a_revoked_ad_leads_nowhere(tmp_path: Path) -> None:
    """It costs nothing."""
    clock = Clock()
    market(tmp_path, (ad("high", "2.00"), "9.00"))
    client = browser(tmp_path, clock)
    (href,) = _HREF.findall(client.get("/search?q=red+shoes").text)
    ordered(tmp_path, ReviewAd(1, "revoked"))
    clock.now_s += 5
    answer = client.get(href)
    assert (answer.status_code, ClickRejection.OFF_TARGET.value[3:] in answer.text) == (410, True)
    assert [one.said for one in latest(tmp_path)] == [ClickRejection.OFF_TARGET]


def test_ads_for_private_addresses_are_neither_shown_nor_charged(tmp_path: Path) -> None:
    """Even if a bug let such an ad into the state, it is not shown, and an existing link leads nowhere."""
    clock = Clock()
    market(tmp_path, (ad("high", "2.00"), "9.00"))
    client = browser(tmp_path, clock)
    (href,) = _HREF.findall(client.get("/search?q=red+shoes").text)
    ordered(tmp_path, SaveAd(ad("high", "2.00")._replace(id=1, url="http://10.0.0.1/")), ReviewAd(1, "approved"))
    clock.now_s += 5
    answer = client.get(href)
    assert (answer.status_code, "10.0.0.1 is a private address" in answer.text) == (410, True)
    assert [one.closed for one in latest(tmp_path)] == ["refused"]
    assert "<aside" not in client.get("/search?q=red+shoes").text


def test_forged_and_foreign_tokens_are_refused_with_a_reason(tmp_path: Path) -> None:
    """This includes slate tokens and other signatures; there is no redirect, and it is counted."""
    clock = Clock()
    market(tmp_path, (ad("high", "2.00"), "9.00"))
    client = browser(tmp_path, clock)
    (href,) = _HREF.findall(client.get("/search?q=red+shoes").text)
    tokens = [
        sign_token(TokenClaims(latest(tmp_path)[0].token, START_S), SECRET),
        sign_token(TokenClaims("00" * 16, START_S), b"guessed"),
        href.removeprefix("/sponsored/")[:-1] + ("A" if href[-1] != "A" else "B"),
        "https:%2F%2Fevil.example.org",
        "x" * 5000,
    ]
    for token in tokens:
        answer = client.get(f"/sponsored/{token}")
        assert (answer.status_code, "location" in answer.headers) in {(403, False), (404, False)}
        assert answer.status_code == 404 or "not one of ours" in answer.text
    assert client.head(href).status_code == 405
    assert [one.closed for one in latest(tmp_path)] == [""]
    (refused,) = LedgerReader(tmp_path).read_refused_clicks(latest(tmp_path)[0].day)
    assert (refused.payer, refused.reason, refused.times >= 4) == ("", ClickRejection.FORGED.value, True)


def test_repeated_clicks_are_charged_once(tmp_path: Path) -> None:
    """The visitor is redirected each time, but only one click is charged; the reasons are counted."""
    clock = Clock()
    market(tmp_path, (ad("high", "2.00"), "9.00"))
    client = browser(tmp_path, clock)
    (href,) = _HREF.findall(client.get("/search?q=red+shoes").text)
    clock.now_s += 5
    assert {client.get(href).status_code for _ in range(20)} == {303}
    day = latest(tmp_path)[0].day
    assert LedgerReader(tmp_path).read_balances(day)["high"].charged == Decimal("0.05")
    assert [one[1:] for one in LedgerReader(tmp_path).read_refused_clicks(day)] == [
        ("high", ClickRejection.DUPLICATE.value, 19)
    ]


def test_days_begin_where_the_operator_is(tmp_path: Path) -> None:
    """A budget that is spent before midnight is available again after it."""
    market(tmp_path, (ad("high", "0.05"), "0.05"))
    clock = Clock(1_800_053_940.0)  # 2027-01-15 22:59 in UTC, a minute before midnight in Berlin
    berlin = sponsor(tmp_path, clock, SERVE.__class__(sponsored=True, time_zone="Europe/Berlin"))
    (shown,) = berlin.choose_ads("red shoes", PERSON)
    clock.now_s += 10
    assert berlin.charge_click(shown.impression, PERSON).refusal == ""
    clock.now_s += 10
    assert berlin.choose_ads("red shoes", PERSON) == ()
    clock.now_s += 120
    assert len(berlin.choose_ads("red shoes", PERSON)) == 1
    assert [one.day.isoformat() for one in latest(tmp_path)] == ["2027-01-15", "2027-01-16"]


def test_an_advertiser_pays_no_more_than_its_own_budget(tmp_path: Path) -> None:
    """Two campaigns with their own budgets together spend what their advertiser allows, and are then not shown."""
    clock = Clock()
    market(tmp_path, (ad("one", "0.05"), "9.00"), (ad("two", "0.05"), "9.00"))
    ordered(tmp_path, SaveAdvertiser(parse_advertiser("ann", budget="0.20")))
    here = sponsor(tmp_path, clock)
    for number in range(12):
        for shown in here.choose_ads("red shoes", somebody(number)):
            clock.now_s += 2
            here.charge_click(shown.impression, somebody(number))
        clock.now_s += 2
    balances = LedgerReader(tmp_path).read_balances(latest(tmp_path)[0].day)
    assert sum(balance.charged for balance in balances.values()) == Decimal("0.20")
    assert here.choose_ads("red shoes", PERSON) == ()


def test_a_budget_is_not_gone_by_morning(tmp_path: Path) -> None:
    """After a day with searches at all hours, an ad without competition spreads its budget over the day."""
    clock = Clock(1_800_057_600.0)  # 2027-01-16 00:00
    market(tmp_path, (ad("high", "0.50"), "1.00"))
    here = sponsor(tmp_path, clock)
    charged: list[int] = []
    visitors = count()
    for hour in range(48):
        for _ in range(3):
            visitor = somebody(next(visitors))
            shown = here.choose_ads("red shoes", visitor)
            clock.now_s += 2
            clicked = [here.charge_click(each.impression, visitor) for each in shown if hour >= 24]
            charged += [hour - 24 for each in clicked if each.refusal == ""]
            clock.now_s += 1_198
    assert len(charged) == 20  # 1.00 by 0.05
    assert sum(hour < 6 for hour in charged) <= 8
    assert sum(hour >= 12 for hour in charged) >= 6


def test_searches_work_with_a_broken_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There are no ads then, and the operator is notified once."""
    market(tmp_path, (ad("high", "2.00"), "9.00"))
    (tmp_path / "ledger.db").write_bytes(b"no ledger" * 1000)
    client = browser(tmp_path, Clock())
    for _ in range(2):
        assert "<aside" not in client.get("/search?q=red+shoes").text
    assert capsys.readouterr().err.count("no sponsored results for now") == 1


def test_learned_click_rates_order_ads(tmp_path: Path) -> None:
    """Of two equal bids, the ad that people click soon comes first."""
    clock = Clock()
    market(tmp_path, (ad("dull", "0.50"), "900.00"), (ad("good", "0.50"), "900.00"))
    here = sponsor(tmp_path, clock)
    for turn in range(25):
        for shown in here.choose_ads("red shoes", somebody(turn)):
            clock.now_s += 1
            if "good" in shown.title:
                here.charge_click(shown.impression, somebody(turn))
        clock.now_s += 700
    (first, _) = here.choose_ads("red shoes", PERSON)
    assert "good" in first.title


def test_lower_slots_count_by_how_much_they_are_seen(tmp_path: Path) -> None:
    """The initial guess is replaced: if the lower slot is clicked as often, it soon counts nearly as much."""
    clock = Clock()
    market(tmp_path, (ad("first", "0.60"), "900.00"), (ad("second", "0.50"), "900.00"))
    here = sponsor(tmp_path, clock)

    def views() -> dict[str, float]:
        return dict(LEDGER_FILE.query(tmp_path, "SELECT payer, sum(views) FROM tally GROUP BY payer"))

    here.choose_ads("red shoes", PERSON)
    assert views() == {"first": 1.0, "second": 0.55}
    for turn in range(160):
        for shown in here.choose_ads("red shoes", somebody(turn)):
            clock.now_s += 1
            if turn % 2:
                here.charge_click(shown.impression, somebody(turn))
        clock.now_s += 120
    before = views()
    clock.now_s += 700
    here.choose_ads("red shoes", PERSON)
    after = views()
    least = min(after[name] - before[name] for name in after)
    assert 0.62 < least < 1.0


def test_sixteen_clients_on_the_last_cent(tmp_path: Path) -> None:
    """With two real servers and concurrent clicks, all visitors are redirected, and exactly the budget is charged."""
    market(tmp_path, (ad("high", "0.05"), "0.20"))
    clock = Clock()
    landed: list[int] = []
    with serving(app(tmp_path, clock)) as one, serving(app(tmp_path, clock)) as other:
        gate = threading.Barrier(16, action=lambda: setattr(clock, "now_s", clock.now_s + 5))

        def client(number: int) -> None:
            port, own = (one, other)[number % 2], (f"127.0.1.{number + 1}", 0)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S, source_address=own)
            hrefs: list[str] = []
            for _ in range(2):
                connection.request("GET", "/search?q=red+shoes", headers=BROWSER)
                hrefs += _HREF.findall(connection.getresponse().read().decode())
            gate.wait()
            for href in hrefs * 2:
                connection.request("GET", href, headers=BROWSER)
                answer = connection.getresponse()
                answer.read()
                landed.append(answer.status)
            connection.close()

        threads = [threading.Thread(target=client, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    day = latest(tmp_path)[0].day
    assert LedgerReader(tmp_path).read_balances(day)["high"].charged == Decimal("0.20")
    refused = {one.reason: one.times for one in LedgerReader(tmp_path).read_refused_clicks(day)}
    assert set(landed) == {303}
    # Each of 64 clicks is sent twice. The first of each address costs at most a fourth of the budget; four are paid.
    assert len(landed) == 64
    assert refused[ClickRejection.DUPLICATE] == 32
    assert sum(refused.values()) == 64 - 4


def test_ads_do_not_go_dark(tmp_path: Path) -> None:
    """With 1.00 a day, a search every 30 s and no clicks, the ad is shown all day, to one visitor or to many."""
    for name, visitor in (("one", lambda _: PERSON), ("many", somebody)):
        clock = Clock(1_800_057_600.0)  # 2027-01-16 00:00
        folder = tmp_path / name
        folder.mkdir()
        market(folder, (ad("high", "0.50"), "1.00"))
        here = sponsor(folder, clock)
        shown = 0
        for number in range(300):
            shown += len(here.choose_ads("red shoes", visitor(number)))
            clock.now_s += 30
        assert shown >= 0.9 * 300


def test_all_that_match_take_part(tmp_path: Path) -> None:
    """The best of three hundred ads is shown, even if it was submitted last."""
    names = [f"c{number}" for number in range(300)]
    bids = dict.fromkeys(names[:-1], "0.10") | {names[-1]: "0.90"}
    market(tmp_path, *((ad(name, bids[name]), "9.00") for name in names))
    shown = sponsor(tmp_path, Clock()).choose_ads("red shoes", PERSON)
    assert shown[0].title == f"Shoes of {names[-1]}"


def test_reserved_budget_lowers_no_bid(tmp_path: Path) -> None:
    """A campaign with many recent impressions stays above one with a lower bid, at the same price."""
    clock = Clock()
    market(tmp_path, (ad("high", "0.50"), "0.50"), (ad("low", "0.30"), "9.00"))
    here = sponsor(tmp_path, clock, Serve(sponsored=True, sponsored_exploration=0))
    for number in range(8):
        assert here.choose_ads("red shoes", somebody(number))[0].title == "Shoes of high"
        clock.now_s += 2
    own = [one for one in latest(tmp_path) if one.payer == "high"]
    assert {one.closed for one in own} == {""}
    assert own[0].price == own[1].price == Decimal("0.31")


def test_searching_cannot_exhaust_a_rival(tmp_path: Path) -> None:
    """One address searches five hundred times a minute without clicking: others still see the ad."""
    clock = Clock()
    market(tmp_path, (ad("victim", "0.50"), "0.50"), (ad("rival", "0.40"), "9.00"))
    here = sponsor(tmp_path, clock)
    before = here.choose_ads("red shoes", somebody(1))
    for _ in range(500):
        clock.now_s += 0.12
        here.choose_ads("red shoes", PERSON)
    clock.now_s += 2
    after = here.choose_ads("red shoes", somebody(2))
    assert {one.title for one in after} == {one.title for one in before} == {"Shoes of victim", "Shoes of rival"}
    held = LedgerReader(tmp_path).read_balances(latest(tmp_path)[0].day)["victim"].held
    assert held < Decimal("0.12")  # five impressions at most, with one click expected in twenty


def test_another_policy_takes_over_without_a_restart(tmp_path: Path) -> None:
    """A chosen policy applies from the next search on, in the server and in explanations.

    Undo restores the configured one.
    """
    clock = Clock()
    market(tmp_path, (ad("high", "2.00"), "9.00"))
    server = sponsor(tmp_path, clock)
    for policy in ("research:greedy", None):
        with opened(tmp_path) as state:
            execute_setting_command(SetMachine({"serve.sponsored_policy": policy}), state, clock.now_s)
        clock.now_s += 60
        assert server.choose_ads("red shoes", PERSON)
    greedy, paced = (showing.reason for showing in latest(tmp_path))
    assert greedy != paced
