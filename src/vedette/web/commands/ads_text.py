"""Advertisers, campaigns and ads as people write them: each part is read, or refused with what is right."""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal, InvalidOperation

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow
from vedette.errors import UsageError
from vedette.fetch.address_guard import is_public
from vedette.model import origin_of
from vedette.serve.ads.auction import CENT
from vedette.serve.ads.matching import Way
from vedette.text import words_of
from vedette.web.commands.rule_text import web_url

__all__ = [
    "ad_of",
    "advertiser_of",
    "campaign_of",
    "landing_refusal",
    "read_amount",
    "read_day",
    "read_landing",
    "read_name",
    "read_phrase",
    "read_text",
    "read_title",
]

LONGEST_TITLE, LONGEST_TEXT, LONGEST_URL, LONGEST_PHRASE = 80, 200, 2000, 100
MOST_TARGETS = 100
MOST_AMOUNT = Decimal(1_000_000)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_AMOUNT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,2})?")
# Names that are good inside one network only, or on one machine.
_INNER_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "onion")


def advertiser_of(name: str, key: str = "") -> AdvertiserRow:
    """The advertiser that was meant.

    >>> advertiser_of(" Ann ").name
    'ann'
    """
    return AdvertiserRow(read_name(name), key.strip()[:100])


def campaign_of(name: str, advertiser: str, budget: str, starts: str = "", ends: str = "") -> CampaignRow:
    """The campaign that was meant.

    >>> campaign_of("spring", "ann", "5", "2026-03-01").budget
    '5.00'
    """
    first, last = read_day(starts), read_day(ends)
    if first and last and last < first:
        raise UsageError(f"a campaign that starts on {first} cannot end on {last}: change one of the two")
    return CampaignRow(read_name(name), read_name(advertiser), read_amount(budget, "a budget"), first, last)


def ad_of(
    campaign: str,
    title: str,
    text: str,
    url: str,
    bid: str,
    targets: Sequence[tuple[str, str]],
    negatives: Sequence[str] = (),
    number: int = 0,
) -> AdRow:
    """The ad that was meant; it waits to be approved."""
    if not targets:
        raise UsageError("say what the ad is shown for: name a phrase")
    if max(len(targets), len(negatives)) > MOST_TARGETS:
        raise UsageError(f"an ad has {MOST_TARGETS} phrases at most, and as many that keep it away")
    return AdRow(
        number,
        read_name(campaign),
        read_title(title),
        read_text(text),
        read_landing(url),
        tuple(dict.fromkeys((Way(way).value, read_phrase(phrase)) for way, phrase in targets)),
        tuple(dict.fromkeys(map(read_phrase, negatives))),
        read_amount(bid, "a bid"),
    )


def read_amount(text: str, what: str) -> str:
    """An amount of money, with its cents.

    >>> read_amount("0.4", "a bid")
    '0.40'
    """
    text = text.strip()
    try:
        amount = Decimal(text) if _AMOUNT.fullmatch(text) else None
    except InvalidOperation:
        amount = None
    if amount is None or not CENT <= amount <= MOST_AMOUNT:
        raise UsageError(f"{what} is an amount from {CENT} to {MOST_AMOUNT}, such as 2.50")
    return str(amount.quantize(CENT))


def landing_refusal(url: str) -> str:
    """Why nobody is sent to a URL, as far as the URL itself says; empty where nothing speaks against it.

    >>> landing_refusal("https://shop.example.org/")
    ''
    >>> landing_refusal("http://169.254.169.254/latest/")
    '169.254.169.254 is a private address: an ad leads to a public one'
    """
    if not url.startswith(("http://", "https://")):
        return "an ad leads to an http(s) URL"
    host = origin_of(url).host.strip("[]").rstrip(".").lower()
    if ":" in host or host.rpartition(".")[2].isdigit():
        return "" if is_public(host) else f"{host} is a private address: an ad leads to a public one"
    if "." not in host or any(host == name or host.endswith(f".{name}") for name in _INNER_NAMES):
        return f"{host[:100]} is a name of a private network: an ad leads to a public one"
    return ""


def read_landing(text: str) -> str:
    """Where an ad leads, as far as the URL itself says."""
    text = text.strip()
    if not text or len(text) > LONGEST_URL:
        raise UsageError(f"the URL of an ad has 1 to {LONGEST_URL} characters")
    if "://" in text and not text.lower().startswith(("http://", "https://")):
        raise UsageError("an ad leads to an http(s) URL, such as https://example.org/offers")
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise UsageError("the URL of an ad has no name and password in front of its host")
    url = web_url(text)
    if why := landing_refusal(url):
        raise UsageError(why)
    return url


def read_name(text: str) -> str:
    """The name of an advertiser or a campaign."""
    name = text.strip().lower()
    if not _NAME.fullmatch(name):
        raise UsageError(
            "advertisers and campaigns have names of letters, digits and -._ , 64 at most, such as spring-sale"
        )
    return name


def read_day(text: str) -> str:
    """A day; empty for none."""
    text = text.strip()
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise UsageError(f"{text[:40]!r} is no day: write one as 2026-01-31") from None


def read_title(text: str) -> str:
    """The title of an ad."""
    return _line(text, "the title", LONGEST_TITLE)


def read_text(text: str) -> str:
    """The text of an ad."""
    return _line(text, "the text", LONGEST_TEXT)


def _line(text: str, what: str, longest: int) -> str:
    """One line of plain text. Whatever it holds is escaped where it is shown; what cannot be seen is refused here."""
    line = " ".join(text.split())
    if not 1 <= len(line) <= longest:
        raise UsageError(f"{what} of an ad has 1 to {longest} characters")
    if not line.isprintable():
        raise UsageError(f"{what} of an ad has a character that cannot be seen: leave it out")
    if "<" in line or ">" in line:
        raise UsageError(f"{what} of an ad is plain text: leave out < and >")
    return line


def read_phrase(text: str) -> str:
    """A phrase, in words that queries are compared by."""
    folded = " ".join(words_of(text[: 2 * LONGEST_PHRASE]))
    if not folded or len(text) > LONGEST_PHRASE:
        raise UsageError(f"a phrase has at least one word, and {LONGEST_PHRASE} characters at most")
    return folded
