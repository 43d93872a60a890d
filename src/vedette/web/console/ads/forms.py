"""Forms of sponsored results: an advertiser, a campaign, an ad; each new or to be changed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.adapters.ads.campaign_store import AdRow, CampaignRow
from vedette.errors import VedetteError
from vedette.serve.ads.matching import MatchType
from vedette.web.ads.ports import AdService
from vedette.web.commands.ads_commands import AdCommand, SaveAd, SaveAdvertiser, SaveCampaign
from vedette.web.commands.ads_text import (
    parse_ad,
    parse_advertiser,
    parse_amount,
    parse_campaign,
    parse_day,
    parse_landing_url,
    parse_name,
    parse_phrase,
    parse_text,
    parse_title,
)
from vedette.web.console.crawl.site_forms import FormValues
from vedette.web.console.ui.layout import ConsoleShell, Problems, add_done_parameter
from vedette.web.formatting import sentence

PAGE_URL: Final = "/console/sponsored"
_MAX_FIELD_LENGTH: Final = 20_000  # of what is typed into one field
_MAX_DIGITS: Final = 9
_MATCH_TYPES: Final = tuple(way.value for way in MatchType)
_AD_FIELDS: Final = ("ad", "campaign", "title", "text", "url", "bid", *_MATCH_TYPES, "negatives")
_CAMPAIGN_FIELDS: Final = ("known", "name", "advertiser", "budget", "starts", "ends")
FieldParsers = dict[str, Callable[[str], object]]


def ad_form_routes(shell: ConsoleShell, desk: AdService) -> list[Route]:
    """The forms, and the posts that keep what they say."""
    forms = _AdForms(shell, desk)
    return [
        Route("/sponsored/advertiser", forms.show_advertiser),
        Route("/sponsored/advertiser", forms.save_advertiser, methods=["POST"]),
        Route("/sponsored/campaign", forms.show_campaign),
        Route("/sponsored/campaign", forms.save_campaign, methods=["POST"]),
        Route("/sponsored/ad", forms.show_ad),
        Route("/sponsored/ad", forms.save_ad, methods=["POST"]),
    ]


@dataclass(frozen=True, slots=True)
class _AdForms:
    """The handlers, with what they all need."""

    shell: ConsoleShell
    ads: AdService

    async def show_advertiser(self, request: Request) -> Response:
        """Empty, or of one there is."""
        name = request.query_params.get("name", "")
        known = {row.name: row for row in await run_in_threadpool(self.ads.list_advertisers)}
        row = known.get(name)
        return self._render_form(
            request, "advertiser", {"name": row.name, "key": row.key} if row else {"name": name[:64]}
        )

    async def save_advertiser(self, request: Request) -> Response:
        """New, or with another key."""
        typed = await self._read_fields(request, ("name", "key"))
        problems = _find_problems(typed, {"name": parse_name})
        if problems:
            return self._render_form(request, "advertiser", typed, problems)
        order = SaveAdvertiser(parse_advertiser(typed["name"], typed["key"]))
        return await self._save(request, order, "advertiser", typed, f"{PAGE_URL}/campaign?advertiser={typed['name']}")

    async def show_campaign(self, request: Request) -> Response:
        """Empty, or one there is."""
        name = request.query_params.get("name", "")
        row = await run_in_threadpool(self._find_campaign, name)
        advertisers = await run_in_threadpool(self.ads.list_advertisers)
        if not advertisers:
            return RedirectResponse(f"{PAGE_URL}/advertiser", 303)
        if row is None:
            asked = request.query_params.get("advertiser", "")
            whose = next((each.name for each in advertisers if each.name == asked), advertisers[0].name)
            return await self._campaign_form(request, {"name": name[:64], "advertiser": whose})
        typed = {**{field: str(getattr(row, field)) for field in _CAMPAIGN_FIELDS[1:]}, "known": row.name}
        return await self._campaign_form(request, typed)

    async def save_campaign(self, request: Request) -> Response:
        """New, or with another budget or other days."""
        typed = await self._read_fields(request, _CAMPAIGN_FIELDS)
        reads: FieldParsers = {
            "name": parse_name,
            "budget": lambda text: parse_amount(text, "a budget"),
            "starts": parse_day,
            "ends": parse_day,
        }
        problems = _find_problems(typed, reads)
        values = [typed[field] for field in _CAMPAIGN_FIELDS[1:]]
        if not problems:
            problems = _find_problems(typed, {"ends": lambda _: parse_campaign(*values)})
        if problems:
            return await self._campaign_form(request, typed, problems)
        row = parse_campaign(*values)
        before = await run_in_threadpool(self._find_campaign, row.name)
        if before and not typed["known"]:
            return await self._campaign_form(request, typed, {"name": "There is a campaign of this name."})
        order = SaveCampaign(row._replace(paused=bool(before and before.paused)))
        return await self._save(request, order, "campaign", typed)

    async def show_ad(self, request: Request) -> Response:
        """Empty, or one there is."""
        number = request.query_params.get("ad", "")
        row = await run_in_threadpool(self._find_ad, number)
        if number and row is None:
            return self.shell.not_found_page(request)
        campaigns = await run_in_threadpool(self.ads.list_campaigns)
        if not campaigns:
            return RedirectResponse(f"{PAGE_URL}/campaign", 303)
        if row is not None:
            return await self._ad_form(request, _fill_ad_form(row))
        asked = request.query_params.get("campaign", "")
        names = [line.campaign.name for line in campaigns]
        return await self._ad_form(request, {"campaign": asked if asked in names else names[0]})

    async def save_ad(self, request: Request) -> Response:
        """Submitted or edited; it waits to be approved."""
        typed = await self._read_fields(request, _AD_FIELDS)
        reads: FieldParsers = {
            "title": parse_title,
            "text": parse_text,
            "url": parse_landing_url,
            "bid": lambda text: parse_amount(text, "a bid"),
            **dict.fromkeys(
                (*_MATCH_TYPES, "negatives"), lambda text: [parse_phrase(each) for each in text.splitlines()]
            ),
        }
        problems = _find_problems(typed, reads)
        if not problems:
            problems = _find_problems(typed, {"broad": lambda _: _parse_ad(typed)})
        if not problems:
            why = await run_in_threadpool(self.ads.check_landing_url, _parse_ad(typed).url)
            problems = {"url": sentence(why)} if why else {}
        if problems:
            return await self._ad_form(request, typed, problems)
        return await self._save(request, SaveAd(_parse_ad(typed)), "ad", typed)

    async def _save(
        self, request: Request, order: AdCommand, what: str, typed: FormValues, after: str = PAGE_URL
    ) -> Response:
        try:
            done = await run_in_threadpool(self.ads.run_command, order, self.shell.describe_actor(request))
        except VedetteError as error:
            problems = {"form": sentence(str(error))}
            if what == "ad":
                return await self._ad_form(request, typed, problems)
            if what == "campaign":
                return await self._campaign_form(request, typed, problems)
            return self._render_form(request, what, typed, problems)
        return RedirectResponse(add_done_parameter(after, done.action), 303)

    async def _ad_form(self, request: Request, typed: FormValues, problems: Problems | None = None) -> Response:
        names = [line.campaign.name for line in await run_in_threadpool(self.ads.list_campaigns)]
        return self._render_form(request, "ad", typed, problems, campaigns=[(name, name) for name in names])

    async def _campaign_form(self, request: Request, typed: FormValues, problems: Problems | None = None) -> Response:
        names = [row.name for row in await run_in_threadpool(self.ads.list_advertisers)]
        return self._render_form(request, "campaign", typed, problems, advertisers=[(name, name) for name in names])

    def _render_form(
        self, request: Request, what: str, typed: FormValues, problems: Problems | None = None, **told: object
    ) -> Response:
        is_new = not typed.get("ad" if what == "ad" else "known")
        words = {"advertiser": "Advertiser", "campaign": "Campaign", "ad": "Ad"}[what]
        title = f"New {words.lower()}" if is_new and what != "advertiser" else words
        if what == "ad" and not is_new:
            title = f"Ad {typed['ad'][:_MAX_DIGITS]}"
        told |= {"typed": typed, "problems": problems or {}, "is_new": is_new}
        status = 422 if problems else 200
        return self.shell.render_page(
            f"sponsored_{what}.html", request, here="sponsored", title=title, status=status, **told
        )

    async def _read_fields(self, request: Request, fields: tuple[str, ...]) -> dict[str, str]:
        form = await self.shell.read_form(request)
        return {name: form.get(name, "")[:_MAX_FIELD_LENGTH] for name in fields}

    def _find_campaign(self, name: str) -> CampaignRow | None:
        rows = (line.campaign for line in self.ads.list_campaigns())
        return next((row for row in rows if row.name == name.strip().lower()), None)

    def _find_ad(self, number: str) -> AdRow | None:
        return next((line.ad for line in self.ads.list_ads() if str(line.ad.id) == number), None)


def _parse_ad(typed: FormValues) -> AdRow:
    number = typed["ad"]
    targets = [(way, phrase) for way in _MATCH_TYPES for phrase in typed[way].splitlines() if phrase.strip()]
    away = [phrase for phrase in typed["negatives"].splitlines() if phrase.strip()]
    parts = (typed["campaign"], typed["title"], typed["text"], typed["url"], typed["bid"])
    is_known = number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS
    return parse_ad(*parts, targets, away, int(number) if is_known else 0)


def _fill_ad_form(row: AdRow) -> dict[str, str]:
    """An ad as the form has it: one phrase a line."""
    phrases = {way: "\n".join(text for each, text in row.targets if each == way) for way in _MATCH_TYPES}
    plain = {name: str(getattr(row, name)) for name in ("campaign", "title", "text", "url", "bid")}
    return {"ad": str(row.id), **plain, **phrases, "negatives": "\n".join(row.negatives)}


def _find_problems(typed: FormValues, reads: FieldParsers) -> Problems:
    found: Problems = {}
    for name, read in reads.items():
        try:
            read(typed[name])
        except VedetteError as error:
            found[name] = sentence(str(error))
    return found
