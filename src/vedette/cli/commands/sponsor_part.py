"""``vedette sponsor …``: who advertises, with which campaigns and ads, and what came of them."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.inner_verbs import add_inner
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

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
