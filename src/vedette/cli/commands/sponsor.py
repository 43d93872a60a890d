"""``vedette sponsor …``: manage advertisers, campaigns and ads, and print their reports; each change is logged."""

import argparse
import json
from collections.abc import Sequence
from functools import partial

from vedette.adapters.ads.campaign_store import AdStatus
from vedette.cli.data_folder import crawled_folder, execute_and_print, format_command, load_config
from vedette.cli.options import Subparsers, add_folder_subcommand, add_subcommands, require_subcommand
from vedette.cli.output import sanitize
from vedette.errors import UsageError
from vedette.runtime.ads.selection import build_settings
from vedette.runtime.ads.service import LiveAdService
from vedette.runtime.ads.storage import FolderAdStorage
from vedette.web.ads.ports import AdStats, CampaignLine
from vedette.web.ads.report import ad_to_json, campaign_to_json, report_csv_response
from vedette.web.commands.ads_commands import PauseCampaign, ReviewAd, SaveAd, SaveAdvertiser, SaveCampaign
from vedette.web.commands.ads_text import format_target, parse_ad, parse_advertiser, parse_campaign, parse_target

DESCRIPTION = """\
Manage sponsored results. If serve.sponsored is true, they are shown in a
separate box next to the results. You can undo any change in the console.

  vedette sponsor advertiser ann
  vedette sponsor campaign spring --advertiser ann --budget 5.00
  vedette sponsor add spring --title "Red shoes" --text "Made here" \\
      --url https://shop.example.org/ --bid 0.40 --broad "red shoes" --not free
  vedette sponsor approve 1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette sponsor`` and their options."""
    inner = add_subcommands(parser)
    _add_campaign_commands(inner)
    _add_ad_commands(inner)
    add_folder_subcommand(inner, "list", "list all campaigns and ads", _list)
    why = add_folder_subcommand(inner, "why", "explain why an ad is or is not shown for a query", _explain)
    why.add_argument("number", metavar="NUMBER", type=int, help="the number of the ad")
    why.add_argument("query", metavar="QUERY", help="the query")
    purpose = "report impressions, clicks and costs for the last 30 days"
    report = add_folder_subcommand(inner, "report", purpose, _report)
    report.add_argument("--advertiser", metavar="NAME", default="", help="only this advertiser")
    report.add_argument("--csv", action="store_true", help="day by day, as CSV")


run = require_subcommand


def _add_campaign_commands(inner: Subparsers) -> None:
    purpose = "add an advertiser, or change its key or budget"
    who = add_folder_subcommand(inner, "advertiser", purpose, _save_advertiser)
    who.add_argument("name", metavar="NAME", help="the advertiser's name")
    who.add_argument(
        "--key",
        metavar="KEY",
        help="the name of the key that gives the advertiser access to reports and ads; '' for none",
    )
    who.add_argument(
        "--budget", metavar="AMOUNT", help="daily limit across all of the advertiser's campaigns; '' for no limit"
    )
    purpose = "create a campaign, or change its budget and dates"
    campaign = add_folder_subcommand(inner, "campaign", purpose, _save_campaign)
    campaign.add_argument("name", metavar="NAME", help="the campaign's name")
    campaign.add_argument(
        "--advertiser", metavar="NAME", required=True, help="the advertiser that pays for the campaign"
    )
    campaign.add_argument("--budget", metavar="AMOUNT", required=True, help="daily budget, such as 5.00")
    campaign.add_argument("--starts", metavar="DAY", default="", help="the campaign's first day, such as 2026-03-01")
    campaign.add_argument("--ends", metavar="DAY", default="", help="the campaign's last day")
    for name, purpose in (("pause", "stop showing a campaign's ads"), ("resume", "resume a paused campaign")):
        one = add_folder_subcommand(inner, name, purpose, partial(_pause, paused=name == "pause"))
        one.add_argument("name", metavar="NAME", help="the name of the campaign")


def _add_ad_commands(inner: Subparsers) -> None:
    more = add_folder_subcommand(inner, "add", "submit an ad for approval", _submit_ad)
    more.add_argument("campaign", metavar="CAMPAIGN", help="the campaign that the ad belongs to")
    more.add_argument("--edit", metavar="NUMBER", type=int, default=0, help="replace this ad")
    for name, purpose in (
        ("title", "at most 80 characters"),
        ("text", "at most 200 characters"),
        ("url", "the landing page"),
    ):
        more.add_argument(f"--{name}", metavar=name.upper(), required=True, help=purpose)
    more.add_argument("--bid", metavar="AMOUNT", required=True, help="maximum price per click, such as 0.40")
    for way, purpose in (
        ("exact", "show the ad for exactly this query"),
        ("phrase", "show the ad for queries with these words in this order"),
        ("broad", "show the ad for queries with these words"),
        ("not", "never show the ad for queries with these words"),
    ):
        more.add_argument(
            f"--{way}",
            metavar="PHRASE" if way == "not" else "PHRASE[=BID]",
            action="append",
            default=[],
            help=f"{purpose} (may be repeated)",
        )
    verdicts: dict[str, tuple[str, AdStatus]] = {
        "approve": ("approve an ad so it can be shown", "approved"),
        "revoke": ("stop showing an ad", "revoked"),
    }
    for name, (purpose, status) in verdicts.items():
        one = add_folder_subcommand(inner, name, purpose, partial(_judge, status))
        one.add_argument("number", metavar="NUMBER", type=int, help="the number of the ad")


def _save_advertiser(options: argparse.Namespace) -> int:
    row = parse_advertiser(options.name, options.key or "", options.budget or "")
    # Omitted options stay as they are.
    for before in _open_ads_service(options).list_advertisers():
        if before.name == row.name:
            row = row._replace(key=before.key) if options.key is None else row
            row = row._replace(budget=before.budget) if options.budget is None else row
    return execute_and_print(options, SaveAdvertiser(row))


def _save_campaign(options: argparse.Namespace) -> int:
    row = parse_campaign(options.name, options.advertiser, options.budget, options.starts, options.ends)
    before = {line.campaign.name: line.campaign for line in _open_ads_service(options).list_campaigns()}
    paused = row.name in before and before[row.name].paused
    return execute_and_print(options, SaveCampaign(row._replace(paused=paused)))


def _submit_ad(options: argparse.Namespace) -> int:
    targets = [parse_target(way, typed) for way in ("exact", "phrase", "broad") for typed in getattr(options, way)]
    negatives: Sequence[str] = getattr(options, "not")
    ad = parse_ad(
        options.campaign, options.title, options.text, options.url, options.bid, targets, negatives, options.edit
    )
    if why := _open_ads_service(options).check_landing_url(ad.url):
        raise UsageError(why)
    code = execute_and_print(options, SaveAd(ad))
    if not options.json:
        print(f"To approve it: {format_command('sponsor approve NUMBER', options)}")
    return code


def _judge(status: AdStatus, options: argparse.Namespace) -> int:
    return execute_and_print(options, ReviewAd(options.number, status))


def _pause(options: argparse.Namespace, *, paused: bool) -> int:
    return execute_and_print(options, PauseCampaign(options.name, paused=paused))


def _list(options: argparse.Namespace) -> int:
    desk = _open_ads_service(options)
    campaigns, ads = desk.list_campaigns(), desk.list_ads()
    if options.json:
        listed = {"campaigns": list(map(campaign_to_json, campaigns)), "ads": list(map(ad_to_json, ads))}
        print(json.dumps(listed))
        return 0
    for line in campaigns:
        row = line.campaign
        paused = ", paused" if row.paused else ""
        print(f"{row.name} ({row.advertiser}): {line.today.charged} of {row.budget} spent today{paused}")
        for each in ads:
            if each.ad.campaign == row.name:
                phrases = ", ".join(f"{target.way} {format_target(target)}" for target in each.ad.targets)
                print(
                    f"  {each.ad.id}  {sanitize(each.ad.title)}  bid {each.ad.bid}  {each.state}; {sanitize(phrases)}"
                )
    if not campaigns:
        print(f"No campaigns yet. First add an advertiser: {format_command('sponsor advertiser NAME', options)}")
    return 0


def _explain(options: argparse.Namespace) -> int:
    explanation = _open_ads_service(options).explain_ad(options.number, options.query)
    if explanation is None:
        raise UsageError(f'there is no ad {options.number}; for a list, run "vedette sponsor list"')
    if options.json:
        print(json.dumps(explanation._asdict()))
        return 0
    print(f"{'Shown' if explanation.shown else 'Not shown'}. {sanitize(explanation.reason)}")
    if explanation.advice:
        print(sanitize(explanation.advice))
    print(explanation.history)
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
        print("No campaigns to report.")
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
    return f"{figures.clicked} clicked ({figures.rate:.1%}, 95% CI {low:.1%} to {high:.1%}{average})"


def _open_ads_service(options: argparse.Namespace) -> LiveAdService:
    return LiveAdService(FolderAdStorage(crawled_folder(options)), build_settings(load_config(options).serve))
