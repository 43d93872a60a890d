"""Ad reports: the same campaign and ad figures as a table, as CSV, and as JSON for programs."""

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from vedette.web.ads.ports import AdLine, AdStats, CampaignLine, DayLine
from vedette.web.console.ui.tables import Column, Table, csv_response

REPORT_TABLE: Final = Table[DayLine](
    (
        Column("day", "Day", lambda line: line.tally.day),
        Column("advertiser", "Advertiser", lambda line: line.advertiser),
        Column("campaign", "Campaign", lambda line: line.tally.payer),
        Column("ad", "Ad", lambda line: line.tally.ad, is_number=True),
        Column("title", "Title", lambda line: line.title),
        Column("phrase", "Phrase", lambda line: line.tally.phrase),
        Column("shown", "Impressions", lambda line: line.tally.shown, is_number=True),
        Column("clicked", "Clicks", lambda line: line.tally.clicked, is_number=True),
        Column("spend", "Spend", lambda line: str(line.tally.charged)),
        Column("budget", "Lost to budget", lambda line: line.tally.lost_budget, is_number=True),
        Column("rank", "Lost to rank", lambda line: line.tally.lost_rank, is_number=True),
        Column("reserve", "Lost to reserve", lambda line: line.tally.lost_reserve, is_number=True),
    ),
    default_sort="-day",
    prefix="days",
)


def report_csv_response(lines: Sequence[DayLine]) -> Response:
    """Return the daily ad report as a CSV download."""
    rows = [[column.get_cell(line) for column in REPORT_TABLE.columns] for line in lines]
    return csv_response("sponsored", [column.title for column in REPORT_TABLE.columns], rows)


def campaign_to_json(line: CampaignLine) -> dict[str, object]:
    """Return a campaign of the ad report as JSON; money is text, so that it stays exact."""
    row = line.campaign
    return {
        "name": row.name,
        "advertiser": row.advertiser,
        "budget": row.budget,
        "starts": row.starts or None,
        "ends": row.ends or None,
        "paused": row.paused,
        "spent_today": str(line.today.charged),
        "held_today": str(line.today.held),
        "pace": line.pace,
        "clicks_uncharged": line.refused,
        **_stats_to_json(line.figures),
    }


def ad_to_json(line: AdLine) -> dict[str, object]:
    """Return an ad of the ad report as JSON, as it was submitted."""
    ad = line.ad
    return {
        "ad": ad.id,
        "campaign": ad.campaign,
        "title": ad.title,
        "text": ad.text,
        "url": ad.url,
        "phrases": [{name: value for name, value in target._asdict().items() if value} for target in ad.targets],
        "negatives": list(ad.negatives),
        "bid": ad.bid,
        "standing": ad.standing,
        "state": line.state,
        **_stats_to_json(line.figures),
    }


def _stats_to_json(figures: AdStats) -> dict[str, object]:
    low, high = figures.interval
    return {
        "impressions": figures.shown,
        "clicks": figures.clicked,
        "ctr": figures.rate,
        "ctr_low": low,
        "ctr_high": high,
        "spend": str(figures.charged),
        "average_charge": None if figures.average is None else str(figures.average),
        "lost_to_budget": figures.lost_budget,
        "lost_to_rank": figures.lost_rank,
        "lost_to_reserve": figures.lost_reserve,
    }
