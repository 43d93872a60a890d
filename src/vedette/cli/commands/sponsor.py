"""What ``vedette sponsor …`` does: by the keeper where one runs, else on the held folder; each change is logged."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from vedette.adapters.ads.campaign_store import Standing
from vedette.adapters.crawl_store.reader import open_view
from vedette.cli.data_folder import folder_of, hint
from vedette.cli.ordering import ordered, sentence
from vedette.cli.output import plain
from vedette.config import Config, load
from vedette.errors import UsageError
from vedette.runtime.ads.service import FolderMarketDesk
from vedette.web.ads.ports import CampaignLine, Figures
from vedette.web.ads.report import ad_as_json, campaign_as_json, report_csv
from vedette.web.commands.ads_commands import JudgeAd, KeepAd, KeepAdvertiser, KeepCampaign, MarketOrder, PauseCampaign
from vedette.web.commands.ads_text import ad_of, advertiser_of, campaign_of

__all__ = ["VERBS"]


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
