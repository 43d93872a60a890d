"""Parsing of advertisers, campaigns and ads as people type them; errors say what is right."""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal, InvalidOperation

from vedette.adapters.ads.campaign_store import AdRow, AdTarget, AdvertiserRow, CampaignRow
from vedette.errors import UsageError
from vedette.fetch.address_guard import is_public
from vedette.model import origin_of
from vedette.serve.ads.auction import CENT
from vedette.serve.ads.matching import MatchType
from vedette.text import split_words
from vedette.web.commands.rule_text import parse_web_url

MAX_TITLE, MAX_TEXT, MAX_URL, MAX_PHRASE = 80, 200, 2000, 100
MAX_PHRASES = 100
MAX_AMOUNT = Decimal(1_000_000)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_AMOUNT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,2})?")
# Names that are valid only inside one network, or on one machine.
_PRIVATE_SUFFIXES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa", "onion")


def parse_advertiser(name: str, key: str = "", budget: str = "") -> AdvertiserRow:
    """Parse an advertiser's name, key and budget over all campaigns, as typed for a command on ads.

    >>> parse_advertiser(" Ann ").name, parse_advertiser("ann", budget="9").budget
    ('ann', '9.00')
    """
    limit = parse_amount(budget, "a budget") if budget.strip() else ""
    return AdvertiserRow(parse_name(name), key.strip()[:100], budget=limit)


def parse_campaign(name: str, advertiser: str, budget: str, starts: str = "", ends: str = "") -> CampaignRow:
    """Parse a campaign's name, advertiser, budget and days, as typed for a command on ads.

    >>> parse_campaign("spring", "ann", "5", "2026-03-01").budget
    '5.00'
    """
    first, last = parse_day(starts), parse_day(ends)
    if first and last and last < first:
        raise UsageError(f"the campaign would end on {last}, before it starts on {first}: change one of the dates")
    return CampaignRow(parse_name(name), parse_name(advertiser), parse_amount(budget, "a budget"), first, last)


def parse_ad(
    campaign: str,
    title: str,
    text: str,
    url: str,
    bid: str,
    targets: Sequence[AdTarget],
    negatives: Sequence[str] = (),
    number: int = 0,
) -> AdRow:
    """Parse an ad's title, text, URL, bid and targets, as typed for a command; it waits for approval."""
    if not targets:
        raise UsageError("add at least one phrase for which the ad should be shown")
    if max(len(targets), len(negatives)) > MAX_PHRASES:
        raise UsageError(f"an ad can have at most {MAX_PHRASES} phrases and {MAX_PHRASES} negative phrases")
    return AdRow(
        number,
        parse_name(campaign),
        parse_title(title),
        parse_text(text),
        parse_landing_url(url),
        _parse_targets(targets),
        tuple(dict.fromkeys(map(parse_phrase, negatives))),
        parse_amount(bid, "a bid"),
    )


def parse_target(way: str, typed: str) -> AdTarget:
    """Parse a target as it is typed on one line: a phrase, and after a = the bid for it if it has its own.

    >>> parse_target("broad", "Red shoes = 0.6")
    AdTarget(way='broad', phrase='Red shoes', bid='0.6')
    """
    phrase, _, bid = typed.partition("=")
    return AdTarget(way, phrase.strip(), bid.strip())


def format_target(target: AdTarget) -> str:
    """Format a target as it can be typed again.

    >>> format_target(AdTarget("broad", "red shoes", "0.60"))
    'red shoes = 0.60'
    """
    return f"{target.phrase} = {target.bid}" if target.bid else target.phrase


def _parse_targets(targets: Sequence[AdTarget]) -> tuple[AdTarget, ...]:
    """Parse the targets of an ad; a phrase has one bid, however it is matched."""
    bids: dict[str, str] = {}
    found: dict[tuple[str, str], AdTarget] = {}
    for way, typed, typed_bid in targets:
        phrase, bid = parse_phrase(typed), parse_amount(typed_bid, "a bid") if typed_bid else ""
        if bids.setdefault(phrase, bid) != bid:
            raise UsageError(f'the phrase "{phrase}" has two bids: keep only one')
        found.setdefault((way, phrase), AdTarget(MatchType(way).value, phrase, bid))
    return tuple(found.values())


def parse_amount(text: str, what: str) -> str:
    """Parse an amount of money that was typed for a bid or budget; return it with its cents.

    >>> parse_amount("0.4", "a bid")
    '0.40'
    """
    text = text.strip()
    try:
        amount = Decimal(text) if _AMOUNT.fullmatch(text) else None
    except InvalidOperation:
        amount = None
    if amount is None or not CENT <= amount <= MAX_AMOUNT:
        raise UsageError(f"{what} must be between {CENT} and {MAX_AMOUNT}, for example 2.50")
    return str(amount.quantize(CENT))


def check_landing_url(url: str) -> str:
    """Check from the URL alone why no ad may link to it; return the reason, or an empty text if it may.

    >>> check_landing_url("https://shop.example.org/")
    ''
    >>> check_landing_url("http://169.254.169.254/latest/")
    '169.254.169.254 is a private address: an ad must link to a public one'
    """
    if not url.startswith(("http://", "https://")):
        return "an ad must link to an http(s) URL"
    host = origin_of(url).host.strip("[]").rstrip(".").lower()
    if ":" in host or host.rpartition(".")[2].isdigit():
        return "" if is_public(host) else f"{host} is a private address: an ad must link to a public one"
    if "." not in host or any(host == name or host.endswith(f".{name}") for name in _PRIVATE_SUFFIXES):
        return f"{host[:100]} is a private network name: an ad must link to a public host"
    return ""


def parse_landing_url(text: str) -> str:
    """Parse the typed landing URL of an ad, and refuse private addresses as far as the URL shows them."""
    text = text.strip()
    if not text or len(text) > MAX_URL:
        raise UsageError(f"an ad URL must be 1 to {MAX_URL} characters long")
    if "://" in text and not text.lower().startswith(("http://", "https://")):
        raise UsageError("an ad must link to an http(s) URL, such as https://example.org/offers")
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise UsageError("an ad URL must not contain a user name or password")
    url = parse_web_url(text)
    if why := check_landing_url(url):
        raise UsageError(why)
    return url


def parse_name(text: str) -> str:
    """Parse the typed name of an advertiser or a campaign."""
    name = text.strip().lower()
    if not _NAME.fullmatch(name):
        raise UsageError(
            "advertiser and campaign names can have up to 64 letters, digits, dashes, dots and underscores, for "
            "example spring-sale"
        )
    return name


def parse_day(text: str) -> str:
    """Parse the typed first or last day of a campaign; empty for none."""
    text = text.strip()
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise UsageError(f"{text[:40]!r} is not a date: use YYYY-MM-DD, for example 2026-01-31") from None


def parse_title(text: str) -> str:
    """Parse the typed title of an ad."""
    return _parse_line(text, "an ad's title", MAX_TITLE)


def parse_text(text: str) -> str:
    """Parse the typed text of an ad."""
    return _parse_line(text, "an ad's text", MAX_TEXT)


def _parse_line(text: str, what: str, longest: int) -> str:
    """Parse one typed line of an ad's plain text; invisible characters are refused.

    It is escaped on output.
    """
    line = " ".join(text.split())
    if not 1 <= len(line) <= longest:
        raise UsageError(f"{what} must be 1 to {longest} characters long")
    if not line.isprintable():
        raise UsageError(f"{what} contains an invisible character: remove it")
    if "<" in line or ">" in line:
        raise UsageError(f"{what} must be plain text: remove < and >")
    return line


def parse_phrase(text: str) -> str:
    """Parse a typed target phrase of an ad into the folded words that queries are compared by."""
    folded = " ".join(split_words(text[: 2 * MAX_PHRASE]))
    if not folded or len(text) > MAX_PHRASE:
        raise UsageError(f"a phrase must have at least one word and at most {MAX_PHRASE} characters")
    return folded
