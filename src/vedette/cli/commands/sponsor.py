"""What ``vedette sponsor …`` does: by the keeper where one runs, else on the held folder; each change is logged."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from vedette.adapters.ads.campaign_store import Standing
from vedette.adapters.crawl_store.reader import open_view
from vedette.cli.data_folder import folder_of, hint, ordered, sentence
from vedette.cli.inner_verbs import add_inner
from vedette.cli.output import plain
from vedette.config import Config, load
from vedette.errors import UsageError
from vedette.runtime.ads.service import FolderMarketDesk
from vedette.web.ads.ports import CampaignLine, Figures
from vedette.web.ads.report import ad_as_json, campaign_as_json, report_csv
from vedette.web.commands.ads_commands import JudgeAd, KeepAd, KeepAdvertiser, KeepCampaign, MarketOrder, PauseCampaign
from vedette.web.commands.ads_text import ad_of, advertiser_of, campaign_of

__all__ = ["VERBS", "add"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Sponsored results: shown beside results, in a frame of their own, where the settings
say sponsored = true in [serve]. Every change can be undone in the console.

  vedette sponsor advertiser ann
  vedette sponsor campaign spring --advertiser ann --budget 5.00
  vedette sponsor add spring --title "Red shoes" --text "Made here" \\
      --url https://shop.example.org/ --bid 0.40 --broad "red shoes" --not free
  vedette sponsor approve 1
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    sponsor = verbs.add_parser("sponsor", help="sponsored results: campaigns, ads, reports", description=DESCRIPTION)
    sponsor.set_defaults(run=_say_what, parser=sponsor)
    inner = sponsor.add_subparsers(metavar="VERB", parser_class=type(sponsor))
    _add_payers(inner)
    _add_ads(inner)
    _verb(inner, "list", "all campaigns and ads")
    report = _verb(inner, "report", "what ads showed, brought and cost in the last 30 days")
    report.add_argument("--advertiser", metavar="NAME", default="", help="of this one only")
    report.add_argument("--csv", action="store_true", help="day by day, as CSV")


def _add_payers(inner: "argparse._SubParsersAction[Parser]") -> None:
    who = _verb(inner, "advertiser", "somebody may have campaigns; or another key for one who may")
    who.add_argument("name", metavar="NAME", help="by which he is known")
    who.add_argument(
        "--key",
        metavar="KEY",
        default="",
        help="the name of the key with which he reads his reports and orders what is his",
    )
    campaign = _verb(inner, "campaign", "make a campaign, or change its budget and days")
    campaign.add_argument("name", metavar="NAME", help="by which it is known")
    campaign.add_argument("--advertiser", metavar="NAME", required=True, help="whose it is")
    campaign.add_argument("--budget", metavar="AMOUNT", required=True, help="what a day may cost, such as 5.00")
    campaign.add_argument("--starts", metavar="DAY", default="", help="its first day, such as 2026-03-01")
    campaign.add_argument("--ends", metavar="DAY", default="", help="its last day")
    for name, purpose in (("pause", "show none of its ads"), ("resume", "show them again")):
        _verb(inner, name, purpose).add_argument("name", metavar="NAME", help="the name of the campaign")


def _add_ads(inner: "argparse._SubParsersAction[Parser]") -> None:
    more = _verb(inner, "add", "submit an ad, which then waits to be approved")
    more.add_argument("campaign", metavar="CAMPAIGN", help="to which it belongs")
    more.add_argument("--edit", metavar="NUMBER", type=int, default=0, help="in place of this ad")
    for name, purpose in (("title", "80 characters"), ("text", "200 characters"), ("url", "where it leads")):
        more.add_argument(f"--{name}", metavar=name.upper(), required=True, help=purpose)
    more.add_argument("--bid", metavar="AMOUNT", required=True, help="what a click may cost, such as 0.40")
    for way, purpose in (
        ("exact", "shown where a query is this"),
        ("phrase", "shown where a query has these words in this order"),
        ("broad", "shown where a query has these words"),
        ("not", "never shown where a query has these words"),
    ):
        more.add_argument(
            f"--{way}", metavar="PHRASE", action="append", default=[], help=f"{purpose} (may be repeated)"
        )
    for name, purpose in (("approve", "let an ad be shown"), ("revoke", "show an ad no more")):
        _verb(inner, name, purpose).add_argument("number", metavar="NUMBER", type=int, help="the number of the ad")


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_inner(verbs, name, purpose, "sponsor_keeping")


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError(
        "say advertiser, campaign, add, list, approve, pause, resume, revoke or report; see vedette sponsor --help"
    )


def _advertiser(options: argparse.Namespace) -> int:
    return _ordered(options, KeepAdvertiser(advertiser_of(options.name, options.key)))


def _campaign(options: argparse.Namespace) -> int:
    row = campaign_of(options.name, options.advertiser, options.budget, options.starts, options.ends)
    before = {line.campaign.name: line.campaign for line in _desk(options).campaigns()}
    paused = row.name in before and before[row.name].paused
    return _ordered(options, KeepCampaign(row._replace(paused=paused)))


def _add(options: argparse.Namespace) -> int:
    targets = [(way, phrase) for way in ("exact", "phrase", "broad") for phrase in getattr(options, way)]
    negatives: Sequence[str] = getattr(options, "not")
    ad = ad_of(
        options.campaign, options.title, options.text, options.url, options.bid, targets, negatives, options.edit
    )
    if why := _desk(options).refusal(ad.url):
        raise UsageError(why)
    code = _ordered(options, KeepAd(ad))
    if not options.json:
        print(f"It is shown once you approve it: {hint('sponsor approve NUMBER', options)}")
    return code


def _judge(standing: Standing) -> Callable[[argparse.Namespace], int]:
    def judged(options: argparse.Namespace) -> int:
        return _ordered(options, JudgeAd(options.number, standing))

    return judged


def _turn(*, paused: bool) -> Callable[[argparse.Namespace], int]:
    def turned(options: argparse.Namespace) -> int:
        return _ordered(options, PauseCampaign(options.name, paused=paused))

    return turned


def _list(options: argparse.Namespace) -> int:
    desk = _desk(options)
    campaigns, ads = desk.campaigns(), desk.ads()
    if options.json:
        told = {
            "campaigns": [campaign_as_json(line) for line in campaigns],
            "ads": [ad_as_json(line) for line in ads],
        }
        print(json.dumps(told))
        return 0
    for line in campaigns:
        row = line.campaign
        paused = ", paused" if row.paused else ""
        print(f"{row.name} ({row.advertiser}): {line.today.charged} of {row.budget} spent today{paused}")
        for each in ads:
            if each.ad.campaign == row.name:
                phrases = ", ".join(f"{way} {phrase}" for way, phrase in each.ad.targets)
                print(f"  {each.ad.id}  {plain(each.ad.title)}  bid {each.ad.bid}  {each.state}; {plain(phrases)}")
    if not campaigns:
        print(f"No campaigns yet: {hint('sponsor advertiser NAME', options)} is the first step.")
    return 0


def _report(options: argparse.Namespace) -> int:
    desk = _desk(options)
    if options.csv:
        print(bytes(report_csv(desk.days(options.advertiser)).body).decode(), end="")
        return 0
    lines = desk.campaigns(options.advertiser)
    if options.json:
        print(json.dumps({"campaigns": [campaign_as_json(line) for line in lines]}))
        return 0
    for line in lines:
        print(_told(line))
    if not lines:
        print("No campaign has anything to report.")
    return 0


def _told(line: CampaignLine) -> str:
    figures = line.figures
    lost = f"lost {figures.lost_budget} to budget, {figures.lost_rank} to rank, {figures.lost_reserve} to reserve"
    pace = "" if line.pace is None else f", pace {line.pace:.2f}"
    spent = f"{figures.charged} spent ({line.today.charged} of {line.campaign.budget} today{pace})"
    shown = f"{figures.shown} shown, {_rate(figures)}, {line.refused} clicks uncharged"
    return f"{line.campaign.name}: {shown}; {spent}; {lost}"


def _rate(figures: Figures) -> str:
    if figures.rate is None:
        return "no clicks"
    low, high = figures.interval
    average = "" if figures.average is None else f", {figures.average} each"
    return f"{figures.clicked} clicked ({figures.rate:.1%}, 95 % {low:.1%} to {high:.1%}{average})"


def _ordered(options: argparse.Namespace, order: MarketOrder) -> int:
    told = ordered(options, order)
    print(json.dumps(told) if options.json else sentence(told, options))
    return 0


def _desk(options: argparse.Namespace) -> FolderMarketDesk:
    folder = folder_of(options)
    with open_view(folder):  # a folder without a crawl is told in words, and none is made
        pass
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    config = load(path) if path else Config()
    return FolderMarketDesk(folder, ZoneInfo(config.serve.time_zone))


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "advertiser": _advertiser,
    "campaign": _campaign,
    "add": _add,
    "list": _list,
    "approve": _judge("approved"),
    "revoke": _judge("revoked"),
    "pause": _turn(paused=True),
    "resume": _turn(paused=False),
    "report": _report,
}
