"""The console's Sponsored page and the API for advertisers, with a real folder and a coordinator."""

import csv
import io
import re
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.data_folders import NOW_S, opened
from tests.runtime.ads.ads_folder import ad, market, ordered, sponsor
from tests.web.small_operator import ADDRESS, Console, SmallDesk, SmallOperator, SmallWatch
from tests.web.small_search import SmallSearch, made_key

from vedette.adapters.ads.campaign_store import AdTarget
from vedette.config import Rate, Serve
from vedette.errors import UsageError
from vedette.runtime.ads.selection import build_settings
from vedette.runtime.ads.service import LiveAdService
from vedette.runtime.ads.storage import FolderAdStorage
from vedette.runtime.commands.search_commands import row_from_key
from vedette.serve.ads.live_policies import AD_POLICIES
from vedette.web.app import create_app
from vedette.web.auth.keys import Key
from vedette.web.commands.ads_commands import AdCommand, PauseCampaign, ReviewAd, SaveAd, SaveAdvertiser, SaveCampaign
from vedette.web.commands.ads_text import parse_advertiser, parse_campaign
from vedette.web.commands.commands import CommandResult, SetMachine
from vedette.web.console.ports.sites import ActionLine
from vedette.web.console.routes import ConsoleServices
from vedette.web.public.visits import Visitor
from vedette.web.rendering import Branding

SERVE = Serve(rate=Rate(0, 1.0), sponsored=True)


class Desk(LiveAdService):
    """The real service, except that commands run here, because no coordinator is running."""

    def __init__(self, folder: Path, operator: SmallOperator) -> None:
        super().__init__(FolderAdStorage(folder), build_settings(SERVE))
        self.folder, self.operator = folder, operator
        self.by: list[str] = []

    def run_command(self, command: AdCommand, by: str, _id: str = "") -> CommandResult:
        """Run it immediately."""
        ordered(self.folder, command)
        self.by.append(by)
        self.operator.lines.append(
            ActionLine(len(self.by), NOW_S, f"did {type(command).__name__}", by, can_be_undone=True)
        )
        return CommandResult("done", len(self.by))


def console_over(folder: Path, keys: tuple[Key, ...] = ()) -> tuple[Console, Desk]:
    """A console with a signed-in operator."""
    console = Console()
    console.operator = SmallOperator()
    desk = Desk(folder, console.operator)
    parts = ConsoleServices(console.operator, SmallWatch(), SmallDesk(), lambda: console.wall_s, ads=desk)
    console.app = create_app(SmallSearch(), SERVE, Branding(), lambda: keys, clock=lambda: 0.0, console=parts)
    console.client = console.another()
    assert console.sign_in().status_code == 303
    return console, desk


def show(folder: Path, times: int = 1) -> None:
    """Let people search, and let the first one click."""
    now_s = time.time() - 60
    clock = [now_s]
    here = sponsor(folder, lambda: clock[0])
    for turn in range(times):
        shown = here.choose_ads("red shoes", Visitor(f"198.51.{turn}.7", "Browser"))
        clock[0] += 2
        if not turn:
            here.charge_click(shown[0].impression, Visitor("198.51.100.7", "Browser"))


def test_ads_are_absent_until_they_are_turned_on() -> None:
    """Neither the page, nor a link to it, nor the API exists."""
    console = Console()
    assert console.sign_in().status_code == 303
    assert console.client.get("/console/sponsored").status_code == 404
    assert "/console/sponsored" not in console.client.get("/console/").text
    assert console.client.get("/api/v1/sponsored").status_code == 404
    assert console.client.get("/sponsored/x").status_code == 404


def test_figures_and_reasons_are_seen(tmp_path: Path) -> None:
    """Shows spend, click rate with its interval, lost searches, and why each ad was chosen; the same as CSV."""
    market(tmp_path, (ad("high", "2.00"), "9.00"), (ad("poor", "0.04"), "9.00"))
    show(tmp_path, 3)
    console, _ = console_over(tmp_path)
    page = console.client.get("/console/sponsored").text
    assert "<strong>0.05</strong> spent today" in page
    assert "33.3%" in page
    assert "believed to click" in page
    assert "clicked and charged" in page
    (row, poor) = csv.DictReader(io.StringIO(console.client.get("/console/sponsored?csv=1").text))
    assert (row["Impressions"], row["Clicks"], row["Lost to reserve"]) == ("3", "1", "0")
    assert (poor["Impressions"], poor["Lost to reserve"]) == ("0", "3")
    for name, many in (("ads", 2), ("shown", 3), ("days", 2)):
        got = console.client.get(f"/console/sponsored?csv={name}").text
        assert len(list(csv.DictReader(io.StringIO(got)))) == many


def test_an_ad_is_approved_and_revoked(tmp_path: Path) -> None:
    """Buttons work, actions are logged and can be undone, and errors are reported."""
    market(tmp_path, (ad("high", "2.00"), "9.00"))
    ordered(tmp_path, SaveAd(ad("high", "1.00", title="Other shoes")))
    console, desk = console_over(tmp_path)
    assert "<strong>1</strong> ad waiting" in console.client.get("/console/sponsored").text
    answer = console.post("/console/sponsored/judge", ad="2", verdict="approve")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sponsored?done=1")
    assert [line.ad.standing for line in desk.list_ads()] == ["approved", "approved"]
    assert "Undo" in console.client.get("/console/sponsored?done=1").text
    console.post("/console/sponsored/judge", ad="1", verdict="revoke")
    console.post("/console/sponsored/pause", name="high", paused="yes")
    assert [line.state for line in desk.list_ads()] == ["revoked", "its campaign is paused"]
    for path, form in (
        ("judge", {"ad": "99", "verdict": "approve"}),
        ("judge", {"ad": "-1", "verdict": "approve"}),
        ("judge", {"ad": "1", "verdict": "love"}),
        ("pause", {"name": "<script>", "paused": "yes"}),
    ):
        answer = console.post(f"/console/sponsored/{path}", **form)
        assert (answer.status_code, 'role="alert"' in answer.text, "<script>" in answer.text) == (422, True, False)
    forged = console.client.post("/console/sponsored/judge", data={"ad": "1", "verdict": "approve"})
    assert forged.status_code == 403


def test_a_campaign_and_an_ad_are_made_by_forms(tmp_path: Path) -> None:
    """Forms create a campaign and an ad; an edit needs approval again; errors are next to their fields."""
    with opened(tmp_path):
        pass
    console, desk = console_over(tmp_path)
    assert console.client.get("/console/sponsored/ad", follow_redirects=True).url.path.endswith("/advertiser")
    assert console.post("/console/sponsored/advertiser", name="ann", key="").status_code == 303
    form = {"name": "spring", "advertiser": "ann", "budget": "much", "starts": "", "ends": "soon"}
    wrong = console.post("/console/sponsored/campaign", **form)
    assert (wrong.status_code, wrong.text.count('aria-invalid="true"')) == (422, 2)
    assert 'value="much"' in wrong.text
    form |= {"budget": "5", "ends": "2027-01-31"}
    assert console.post("/console/sponsored/campaign", **form).status_code == 303
    assert (
        console.post("/console/sponsored/campaign", **form).status_code == 422
    )  # it is there, and was not to be edited
    form |= {"known": "spring", "budget": "6"}
    assert console.post("/console/sponsored/campaign", **form).status_code == 303
    assert [(each.campaign.budget, each.campaign.ends) for each in desk.list_campaigns()] == [("6.00", "2027-01-31")]
    typed = {"campaign": "spring", "title": "<b>Shoes", "text": "Red", "url": "http://10.0.0.1/", "bid": "x"}
    wrong = console.post("/console/sponsored/ad", **typed)
    assert (wrong.status_code, wrong.text.count('aria-invalid="true"'), "<b>Shoes" in wrong.text) == (422, 3, False)
    typed |= {"title": "Shoes", "url": "https://93.184.216.34/", "bid": "0.40"}
    assert "at least one phrase" in console.post("/console/sponsored/ad", **typed).text
    typed |= {"broad": "red shoes\nshoes", "exact": "boots", "negatives": "free"}
    assert console.post("/console/sponsored/ad", **typed).status_code == 303
    console.post("/console/sponsored/judge", ad="1", verdict="approve")
    edit = console.client.get("/console/sponsored/ad?ad=1").text
    assert "red shoes\nshoes</textarea>" in edit
    assert console.post("/console/sponsored/ad", **{**typed, "ad": "1", "title": "Boots"}).status_code == 303
    (kept,) = [line.ad for line in desk.list_ads()]
    assert (kept.id, kept.title, kept.standing, len(kept.targets)) == (1, "Boots", "submitted", 3)
    assert console.client.get("/console/sponsored/ad?ad=9").status_code == 404


def test_charts_are_of_all_campaigns_or_of_one(tmp_path: Path) -> None:
    """Shows impressions, clicks, rate with its interval, spend, pace, average charge, and losses by reason."""
    market(tmp_path, (ad("high", "2.00"), "9.00"), (ad("poor", "0.04"), "9.00"))
    show(tmp_path, 3)
    console, _ = console_over(tmp_path)

    def latest(address: str) -> dict[str, str]:
        found = re.findall(r'class="what">(.*?)</span> <span class="latest">(.*?)<', console.client.get(address).text)
        return dict(found)

    every = latest("/console/sponsored")
    assert {"Impressions", "Clicks", "Spend per day", "Spent today", "Average cost per click"} <= set(every)
    assert (every["Impressions"], every["Clicks"], every["Spent today"]) == ("3", "1", "0.05")
    assert (every["Lost to budget"], every["Lost to rank"], every["Lost to reserve"]) == ("0", "0", "3")
    poor = latest("/console/sponsored?campaign=poor")
    assert (poor["Impressions"], poor["Lost to reserve"]) == ("0", "3")


def test_hostile_text_is_escaped(tmp_path: Path) -> None:
    """Even text that was never validated, in the console and next to results."""
    hostile = '"><script>alert(1)</script>'
    market(tmp_path, (ad("high", "2.00")._replace(title=hostile, text=hostile), "9.00"))
    show(tmp_path)
    console, _ = console_over(tmp_path)
    assert "<script>alert" not in console.client.get("/console/sponsored").text


def keyed(folder: Path) -> tuple[Console, Desk, dict[str, TestClient]]:
    """Create two advertisers with an ad and a key each, an unrelated key, an operator key, and none."""
    made = {name: made_key(name) for name in ("annkey", "bobkey", "other")}
    boss, boss_key = made_key("boss", "search", "admin")
    market(folder, (ad("high", "2.00"), "9.00"))
    with opened(folder) as state:
        for _, key in made.values():
            state.store.save_user_key(row_from_key(key))
    ordered(
        folder,
        SaveAdvertiser(parse_advertiser("ann", "annkey")),
        SaveAdvertiser(parse_advertiser("bob", "bobkey")),
        SaveCampaign(parse_campaign("bobs", "bob", "1.00")),
        SaveAd(ad("bobs", "0.10")),
    )
    console, desk = console_over(folder, (*(key for _, key in made.values()), boss_key))
    secrets = {**{name: secret for name, (secret, _) in made.items()}, "boss": boss, "": ""}

    def asking(secret: str) -> TestClient:
        return TestClient(console.app, ADDRESS, headers={"authorization": f"Bearer {secret}"} if secret else {})

    return console, desk, {name: asking(secret) for name, secret in secrets.items()}


def test_a_key_sees_only_its_advertiser(tmp_path: Path) -> None:
    """Nothing else is visible; without a key, with another key or with a recreated key, nothing is."""
    _, _, asked = keyed(tmp_path)
    show(tmp_path)
    ann = asked["annkey"].get("/api/v1/sponsored").json()
    assert (ann["advertiser"], [each["name"] for each in ann["campaigns"]]) == ("ann", ["high"])
    assert [each["campaign"] for each in ann["ads"]] == ["high"]
    assert len(asked["boss"].get("/api/v1/sponsored").json()["ads"]) == 2
    for name, many in (("annkey", 1), ("bobkey", 0), ("boss", 1)):
        answer = asked[name].get("/api/v1/sponsored/report.csv")
        assert len(list(csv.DictReader(io.StringIO(answer.text)))) == many
    for place in ("", "/report.csv"):
        assert asked[""].get(f"/api/v1/sponsored{place}").status_code == 401
        assert asked["other"].get(f"/api/v1/sponsored{place}").status_code == 403
        assert asked["annkey"].get(f"/api/v1/sponsored{place}?advertiser=bob").status_code == 400
    with opened(tmp_path) as state:
        row = next(row for row in state.store.list_user_keys() if row.name == "annkey")
        state.store.save_user_key(row._replace(digest="ff" * 32))
    assert asked["annkey"].get("/api/v1/sponsored").status_code == 403
    assert "/api/v1/sponsored/orders" in asked[""].get("/api/openapi.json").json()["paths"]


AD = {
    "campaign": "high",
    "title": "Blue shoes",
    "text": "As well",
    "url": "https://93.184.216.34/blue",
    "bid": "0.30",
    "phrases": [{"way": "exact", "phrase": "blue shoes"}],
    "negatives": ["free"],
}
ORDERS = "/api/v1/sponsored/orders"


def test_an_advertiser_submits_edits_and_revokes_own_ads(tmp_path: Path) -> None:
    """The advertiser's key is enough, at any time; only the operator can approve, again after each edit."""
    _, desk, asked = keyed(tmp_path)
    ann, boss = asked["annkey"], asked["boss"]

    def standing() -> tuple[str, str]:
        found = next(line for line in desk.list_ads() if line.ad.id == 3)
        return found.ad.standing, found.ad.title

    output = ann.post(ORDERS, json={"order": "submit_ad", **AD}).json()
    assert output["ad"] == 3
    assert standing() == ("submitted", "Blue shoes")
    refused = ann.post(ORDERS, json={"order": "approve_ad", "ad": 3})
    assert (refused.status_code, "operator" in refused.json()["error"]["message"]) == (400, True)
    assert boss.post(ORDERS, json={"order": "approve_ad", "ad": 3}).status_code == 200
    assert standing() == ("approved", "Blue shoes")
    assert ann.post(ORDERS, json={"order": "edit_ad", "ad": 3, "title": "Bluer shoes"}).json()["ad"] == 3
    assert standing() == ("submitted", "Bluer shoes")
    kept = next(line.ad for line in desk.list_ads() if line.ad.id == 3)
    assert (kept.targets, kept.negatives, kept.bid) == ((AdTarget("exact", "blue shoes"),), ("free",), "0.30")
    assert ann.post(ORDERS, json={"order": "revoke_ad", "ad": 3}).status_code == 200
    assert standing() == ("revoked", "Bluer shoes")
    assert ann.post(ORDERS, json={"order": "pause_campaign", "campaign": "high"}).status_code == 200
    changed = {"order": "keep_campaign", "campaign": "high", "budget": "3.00", "ends": "2027-01-31"}
    assert ann.post(ORDERS, json=changed).status_code == 200
    assert ann.post(ORDERS, json={"order": "keep_campaign", "campaign": "more", "budget": "1.00"}).status_code == 200
    mine = {line.campaign.name: line.campaign for line in desk.list_campaigns("ann")}
    assert (mine["high"].budget, mine["high"].ends, mine["high"].paused) == ("3.00", "2027-01-31", True)
    assert mine["more"].advertiser == "ann"
    assert set(desk.by) == {"the key annkey", "the key boss"}


def test_settings_that_a_command_omits_are_kept(tmp_path: Path) -> None:
    """Changing the budget keeps the key and vice versa; an empty budget removes the limit."""
    _, desk, asked = keyed(tmp_path)

    def order(**fields: str) -> tuple[str, str]:
        assert asked["boss"].post(ORDERS, json={"order": "keep_advertiser", **fields}).status_code == 200
        row = next(row for row in desk.list_advertisers() if row.name == "ann")
        return row.key, row.budget

    assert order(advertiser="ann", budget="20.00") == ("annkey", "20.00")
    assert order(advertiser="Ann", key="annkey") == ("annkey", "20.00")
    assert order(advertiser="ann", budget="") == ("annkey", "")


@pytest.mark.parametrize(
    ("order", "status"),
    [
        ({"order": "edit_ad", "ad": 2, "title": "Mine now"}, 400),
        ({"order": "revoke_ad", "ad": 2}, 400),
        ({"order": "submit_ad", **AD, "campaign": "bobs"}, 400),
        ({"order": "pause_campaign", "campaign": "bobs"}, 400),
        ({"order": "remove_campaign", "campaign": "bobs"}, 400),
        ({"order": "keep_campaign", "campaign": "bobs", "budget": "900.00"}, 409),
        ({"order": "keep_campaign", "campaign": "more", "advertiser": "bob", "budget": "9.00"}, 400),
        ({"order": "keep_advertiser", "advertiser": "bob", "key": "annkey"}, 400),
        ({"order": "submit_ad", **AD, "url": "http://169.254.169.254/latest"}, 400),
        ({"order": "submit_ad", **AD, "title": "<script>alert(1)</script>"}, 400),
        ({"order": "submit_ad", **AD, "phrases": [{"way": "any", "phrase": "x"}]}, 400),
        ({"order": "submit_ad", **AD, "bid": 0.3}, 400),
        ({"order": "submit_ad", **AD, "standing": "approved"}, 400),
        ({"order": "edit_ad", "ad": True, "title": "x"}, 400),
        ({"order": "edit_ad", "ad": 1}, 400),
        ([], 400),
        ({}, 400),
    ],
)
def test_commands_on_other_advertisers_ads_are_refused(tmp_path: Path, order: object, status: int) -> None:
    """The error is readable, and nothing changes; the same is true for anyone without such a key."""
    _, desk, asked = keyed(tmp_path)
    before = desk.list_campaigns(), desk.list_ads()
    answer = asked["annkey"].post(ORDERS, json=order)
    assert (answer.status_code, bool(answer.json()["error"]["message"])) == (status, True)
    assert asked["other"].post(ORDERS, json={"order": "revoke_ad", "ad": 1}).status_code == 403
    assert asked[""].post(ORDERS, json={"order": "revoke_ad", "ad": 1}).status_code == 401
    assert asked["annkey"].post(ORDERS, data={"order": "revoke_ad"}).status_code == 415
    assert (desk.list_campaigns(), desk.list_ads()) == before


def test_orders_are_checked(tmp_path: Path) -> None:
    """Whatever the market refuses is refused here."""
    market(tmp_path, (ad("high", "2.00"), "9.00"))
    _, desk = console_over(tmp_path)
    with pytest.raises(UsageError):
        desk.run_command(ReviewAd(1, "approved"), "a test")
    assert desk.run_command(PauseCampaign("high", paused=True), "a test").action == 1


def test_why_an_ad_is_not_shown(tmp_path: Path) -> None:
    """The operator sees it in the console, and an advertiser in the API, without the ads of others."""
    console, _, clients = keyed(tmp_path)
    ordered(tmp_path, SaveAd(ad("high", "0.04", "blue hats")), SaveAd(ad("high", "0.30", "green tea")))
    ordered(tmp_path, ReviewAd(2, "approved"), ReviewAd(3, "approved"), PauseCampaign("bobs", paused=True))

    def why(number: int, query: str) -> str:
        page = console.client.get("/console/sponsored/why", params={"ad": number, "q": query}).text
        return page[page.index('id="answer"') :]

    assert "It is shown in position 1" in why(1, "cheap red shoes")
    assert "campaign is paused" in why(2, "red shoes")
    assert "is below 0.05" in why(3, "blue hats")
    assert "matches none of its phrases" in why(1, "green tea")
    assert "waits to be approved" in why(4, "green tea")
    output = clients["annkey"].get("/api/v1/sponsored/why", params={"ad": 1, "q": "red shoes"}).json()
    assert (output["shown"], output["ad"], "position 1" in output["reason"]) == (True, 1, True)
    assert clients["annkey"].get("/api/v1/sponsored/why", params={"ad": 2, "q": "red shoes"}).status_code == 404
    assert clients["annkey"].get("/api/v1/sponsored/why", params={"ad": 1}).status_code == 400


def test_each_reason_has_a_text(tmp_path: Path) -> None:
    """This includes a negative phrase, spent budgets and better ads, with what would help."""
    market(tmp_path, *((ad(name, bid), "0.10") for name, bid in (("a", "0.60"), ("b", "0.50"), ("c", "0.07"))))
    ordered(tmp_path, SaveAd(ad("a", "0.60", "blue hats")._replace(negatives=("free",))), ReviewAd(4, "approved"))
    clock = [NOW_S]
    desk = LiveAdService(FolderAdStorage(tmp_path), build_settings(SERVE), lambda: clock[0])
    here = sponsor(tmp_path, lambda: clock[0])

    def why(number: int, query: str) -> str:
        output = desk.explain_ad(number, query)
        assert output is not None
        assert not output.shown
        return f"{output.reason} {output.advice}"

    assert "contains the negative phrase" in why(4, "free blue hats")
    assert "2 other ads are shown" in why(3, "red shoes")
    # Nothing is known of their click rates: what beats the second is a little more than its bid, capped by its budget.
    assert "A bid of 0.11 would be enough" in why(3, "red shoes")
    (first, _) = here.choose_ads("red shoes", Visitor("198.51.100.1", "Browser"))
    clock[0] += 5
    assert here.charge_click(first.impression, Visitor("198.51.100.1", "Browser")).refusal == ""
    clock[0] += 2
    number = 1 if first.title == "Shoes of a" else 2
    assert "Today's campaign budget is spent: 0.10 of 0.10" in why(number, "red shoes")
    ordered(tmp_path, SaveAdvertiser(parse_advertiser("ann", budget="0.12")))
    assert "The advertiser's budget for today" in why(3, "red shoes")


def test_the_policy_is_set_on_the_page(tmp_path: Path) -> None:
    """Every policy that may run live is offered: three by name, and the others for research."""
    market(tmp_path)
    console, _ = console_over(tmp_path)
    page = console.client.get("/console/sponsored").text
    assert all(f'value="{name}"' in page for name in AD_POLICIES)
    assert page.index('value="bmix-e"') < page.index("<summary>Research</summary>") < page.index('value="research:')
    assert console.post("/console/sponsored/set", policy="research:msvv").status_code == 303
    assert console.operator.orders[-1] == SetMachine({"serve.sponsored_policy": "research:msvv"})
    answer = console.post("/console/sponsored/set", policy="of tomorrow")
    assert (answer.status_code, 'id="policy-wrong"' in answer.text) == (422, True)
