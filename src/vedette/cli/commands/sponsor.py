"""What ``vedette sponsor …`` does: by the keeper where one runs, else on the held folder; each change is logged."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from vedette.adapters.ads.campaign_store import AdStatus
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.cli.data_folder import data_folder, format_command, format_done, run_command
from vedette.cli.inner_verbs import add_subcommand
from vedette.cli.output import sanitize
from vedette.config import Config, load
from vedette.errors import UsageError
from vedette.runtime.ads.service import FolderAdService
from vedette.web.ads.ports import AdStats, CampaignLine
from vedette.web.ads.report import ad_to_json, campaign_to_json, report_csv_response
from vedette.web.commands.ads_commands import AdCommand, PauseCampaign, ReviewAd, SaveAd, SaveAdvertiser, SaveCampaign
from vedette.web.commands.ads_text import parse_ad, parse_advertiser, parse_campaign

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


def add_command(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    sponsor = verbs.add_parser("sponsor", help="sponsored results: campaigns, ads, reports", description=DESCRIPTION)
    sponsor.set_defaults(run=_require_subcommand, parser=sponsor)
    inner = sponsor.add_subparsers(metavar="VERB", parser_class=type(sponsor))
    _add_campaign_commands(inner)
    _add_ad_commands(inner)
    _add_subcommand(inner, "list", "all campaigns and ads")
    report = _add_subcommand(inner, "report", "what ads showed, brought and cost in the last 30 days")
    report.add_argument("--advertiser", metavar="NAME", default="", help="of this one only")
    report.add_argument("--csv", action="store_true", help="day by day, as CSV")


def _add_campaign_commands(inner: "argparse._SubParsersAction[Parser]") -> None:
    who = _add_subcommand(inner, "advertiser", "somebody may have campaigns; or another key for one who may")
    who.add_argument("name", metavar="NAME", help="by which he is known")
    who.add_argument(
        "--key",
        metavar="KEY",
        default="",
        help="the name of the key with which he reads his reports and orders what is his",
    )
    campaign = _add_subcommand(inner, "campaign", "make a campaign, or change its budget and days")
    campaign.add_argument("name", metavar="NAME", help="by which it is known")
    campaign.add_argument("--advertiser", metavar="NAME", required=True, help="whose it is")
    campaign.add_argument("--budget", metavar="AMOUNT", required=True, help="what a day may cost, such as 5.00")
    campaign.add_argument("--starts", metavar="DAY", default="", help="its first day, such as 2026-03-01")
    campaign.add_argument("--ends", metavar="DAY", default="", help="its last day")
    for name, purpose in (("pause", "show none of its ads"), ("resume", "show them again")):
        _add_subcommand(inner, name, purpose).add_argument("name", metavar="NAME", help="the name of the campaign")


def _add_ad_commands(inner: "argparse._SubParsersAction[Parser]") -> None:
    more = _add_subcommand(inner, "add", "submit an ad, which then waits to be approved")
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
        _add_subcommand(inner, name, purpose).add_argument(
            "number", metavar="NUMBER", type=int, help="the number of the ad"
        )


def _add_subcommand(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_subcommand(verbs, name, purpose, "sponsor_keeping")


def _require_subcommand(_: argparse.Namespace) -> int:
    raise UsageError(
        "say advertiser, campaign, add, list, approve, pause, resume, revoke or report; see vedette sponsor --help"
    )


def _save_advertiser(options: argparse.Namespace) -> int:
    return _run_and_print(options, SaveAdvertiser(parse_advertiser(options.name, options.key)))


def _save_campaign(options: argparse.Namespace) -> int:
    row = parse_campaign(options.name, options.advertiser, options.budget, options.starts, options.ends)
    before = {line.campaign.name: line.campaign for line in _open_ads_service(options).list_campaigns()}
    paused = row.name in before and before[row.name].paused
    return _run_and_print(options, SaveCampaign(row._replace(paused=paused)))


def _submit_ad(options: argparse.Namespace) -> int:
    targets = [(way, phrase) for way in ("exact", "phrase", "broad") for phrase in getattr(options, way)]
    negatives: Sequence[str] = getattr(options, "not")
    ad = parse_ad(
        options.campaign, options.title, options.text, options.url, options.bid, targets, negatives, options.edit
    )
    if why := _open_ads_service(options).check_landing_url(ad.url):
        raise UsageError(why)
    code = _run_and_print(options, SaveAd(ad))
    if not options.json:
        print(f"It is shown once you approve it: {format_command('sponsor approve NUMBER', options)}")
    return code


def _review_runner(standing: AdStatus) -> Callable[[argparse.Namespace], int]:
    def judged(options: argparse.Namespace) -> int:
        return _run_and_print(options, ReviewAd(options.number, standing))

    return judged


def _pause_runner(*, paused: bool) -> Callable[[argparse.Namespace], int]:
    def turned(options: argparse.Namespace) -> int:
        return _run_and_print(options, PauseCampaign(options.name, paused=paused))

    return turned


def _list(options: argparse.Namespace) -> int:
    desk = _open_ads_service(options)
    campaigns, ads = desk.list_campaigns(), desk.list_ads()
    if options.json:
        told = {
            "campaigns": [campaign_to_json(line) for line in campaigns],
            "ads": [ad_to_json(line) for line in ads],
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
                print(
                    f"  {each.ad.id}  {sanitize(each.ad.title)}  bid {each.ad.bid}  {each.state}; {sanitize(phrases)}"
                )
    if not campaigns:
        print(f"No campaigns yet: {format_command('sponsor advertiser NAME', options)} is the first step.")
    return 0


def _report(options: argparse.Namespace) -> int:
    desk = _open_ads_service(options)
    if options.csv:
        print(bytes(report_csv_response(desk.load_daily_report(options.advertiser)).body).decode(), end="")
        return 0
    lines = desk.list_campaigns(options.advertiser)
    if options.json:
        print(json.dumps({"campaigns": [campaign_to_json(line) for line in lines]}))
        return 0
    for line in lines:
        print(_format_report_line(line))
    if not lines:
        print("No campaign has anything to report.")
    return 0


def _format_report_line(line: CampaignLine) -> str:
    figures = line.figures
    lost = f"lost {figures.lost_budget} to budget, {figures.lost_rank} to rank, {figures.lost_reserve} to reserve"
    pace = "" if line.pace is None else f", pace {line.pace:.2f}"
    spent = f"{figures.charged} spent ({line.today.charged} of {line.campaign.budget} today{pace})"
    shown = f"{figures.shown} shown, {_format_click_rate(figures)}, {line.refused} clicks uncharged"
    return f"{line.campaign.name}: {shown}; {spent}; {lost}"


def _format_click_rate(figures: AdStats) -> str:
    if figures.rate is None:
        return "no clicks"
    low, high = figures.interval
    average = "" if figures.average is None else f", {figures.average} each"
    return f"{figures.clicked} clicked ({figures.rate:.1%}, 95 % {low:.1%} to {high:.1%}{average})"


def _run_and_print(options: argparse.Namespace, order: AdCommand) -> int:
    told = run_command(options, order)
    print(json.dumps(told) if options.json else format_done(told, options))
    return 0


def _open_ads_service(options: argparse.Namespace) -> FolderAdService:
    folder = data_folder(options)
    with open_state_reader(folder):  # a folder without a crawl is told in words, and none is made
        pass
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    config = load(path) if path else Config()
    return FolderAdService(folder, ZoneInfo(config.serve.time_zone))


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "advertiser": _save_advertiser,
    "campaign": _save_campaign,
    "add": _submit_ad,
    "list": _list,
    "approve": _review_runner("approved"),
    "revoke": _review_runner("revoked"),
    "pause": _pause_runner(paused=True),
    "resume": _pause_runner(paused=False),
    "report": _report,
}
