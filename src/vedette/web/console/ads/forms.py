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
from vedette.serve.ads.matching import Way
from vedette.web.ads.ports import MarketDesk
from vedette.web.commands.ads_commands import KeepAd, KeepAdvertiser, KeepCampaign, MarketOrder
from vedette.web.commands.ads_text import (
    ad_of,
    advertiser_of,
    campaign_of,
    read_amount,
    read_day,
    read_landing,
    read_name,
    read_phrase,
    read_text,
    read_title,
)
from vedette.web.console.crawl.site_forms import Typed
from vedette.web.console.ui.layout import Problems, Shell, with_done
from vedette.web.formatting import sentence

__all__ = ["sponsor_form_routes"]

HERE: Final = "/console/sponsored"
_LONGEST: Final = 20_000  # of what is typed into one field
_MOST_DIGITS: Final = 9
_WAYS: Final = tuple(way.value for way in Way)
_AD_FIELDS: Final = ("ad", "campaign", "title", "text", "url", "bid", *_WAYS, "negatives")
_CAMPAIGN_FIELDS: Final = ("known", "name", "advertiser", "budget", "starts", "ends")
Reads = dict[str, Callable[[str], object]]


def sponsor_form_routes(shell: Shell, desk: MarketDesk) -> list[Route]:
    """The forms, and the posts that keep what they say."""
    forms = _Forms(shell, desk)
    return [
        Route("/sponsored/advertiser", forms.advertiser),
        Route("/sponsored/advertiser", forms.keep_advertiser, methods=["POST"]),
        Route("/sponsored/campaign", forms.campaign),
        Route("/sponsored/campaign", forms.keep_campaign, methods=["POST"]),
        Route("/sponsored/ad", forms.ad),
        Route("/sponsored/ad", forms.keep_ad, methods=["POST"]),
    ]


@dataclass(frozen=True, slots=True)
class _Forms:
    """The handlers, with what they all need."""

    shell: Shell
    desk: MarketDesk

    async def advertiser(self, request: Request) -> Response:
        """Empty, or of one there is."""
        name = request.query_params.get("name", "")
        known = {row.name: row for row in await run_in_threadpool(self.desk.advertisers)}
        row = known.get(name)
        return self._form(request, "advertiser", {"name": row.name, "key": row.key} if row else {"name": name[:64]})

    async def keep_advertiser(self, request: Request) -> Response:
        """New, or with another key."""
        typed = await self._typed(request, ("name", "key"))
        problems = _problems(typed, {"name": read_name})
        if problems:
            return self._form(request, "advertiser", typed, problems)
        order = KeepAdvertiser(advertiser_of(typed["name"], typed["key"]))
        return await self._kept(request, order, "advertiser", typed, f"{HERE}/campaign?advertiser={typed['name']}")

    async def campaign(self, request: Request) -> Response:
        """Empty, or one there is."""
        name = request.query_params.get("name", "")
        row = await run_in_threadpool(self._campaign, name)
        advertisers = await run_in_threadpool(self.desk.advertisers)
        if not advertisers:
            return RedirectResponse(f"{HERE}/advertiser", 303)
        if row is None:
            asked = request.query_params.get("advertiser", "")
            whose = next((each.name for each in advertisers if each.name == asked), advertisers[0].name)
            return await self._campaign_form(request, {"name": name[:64], "advertiser": whose})
        typed = {**{field: str(getattr(row, field)) for field in _CAMPAIGN_FIELDS[1:]}, "known": row.name}
        return await self._campaign_form(request, typed)

    async def keep_campaign(self, request: Request) -> Response:
        """New, or with another budget or other days."""
        typed = await self._typed(request, _CAMPAIGN_FIELDS)
        reads: Reads = {
            "name": read_name,
            "budget": lambda text: read_amount(text, "a budget"),
            "starts": read_day,
            "ends": read_day,
        }
        problems = _problems(typed, reads)
        values = [typed[field] for field in _CAMPAIGN_FIELDS[1:]]
        if not problems:
            problems = _problems(typed, {"ends": lambda _: campaign_of(*values)})
        if problems:
            return await self._campaign_form(request, typed, problems)
        row = campaign_of(*values)
        before = await run_in_threadpool(self._campaign, row.name)
        if before and not typed["known"]:
            return await self._campaign_form(request, typed, {"name": "There is a campaign of this name."})
        order = KeepCampaign(row._replace(paused=bool(before and before.paused)))
        return await self._kept(request, order, "campaign", typed)

    async def ad(self, request: Request) -> Response:
        """Empty, or one there is."""
        number = request.query_params.get("ad", "")
        row = await run_in_threadpool(self._ad, number)
        if number and row is None:
            return self.shell.nothing_here(request)
        campaigns = await run_in_threadpool(self.desk.campaigns)
        if not campaigns:
            return RedirectResponse(f"{HERE}/campaign", 303)
        if row is not None:
            return await self._ad_form(request, _typed_of(row))
        asked = request.query_params.get("campaign", "")
        names = [line.campaign.name for line in campaigns]
        return await self._ad_form(request, {"campaign": asked if asked in names else names[0]})

    async def keep_ad(self, request: Request) -> Response:
        """Submitted or edited; it waits to be approved."""
        typed = await self._typed(request, _AD_FIELDS)
        reads: Reads = {
            "title": read_title,
            "text": read_text,
            "url": read_landing,
            "bid": lambda text: read_amount(text, "a bid"),
            **dict.fromkeys((*_WAYS, "negatives"), lambda text: [read_phrase(each) for each in text.splitlines()]),
        }
        problems = _problems(typed, reads)
        if not problems:
            problems = _problems(typed, {"broad": lambda _: _ad_of(typed)})
        if not problems:
            why = await run_in_threadpool(self.desk.refusal, _ad_of(typed).url)
            problems = {"url": sentence(why)} if why else {}
        if problems:
            return await self._ad_form(request, typed, problems)
        return await self._kept(request, KeepAd(_ad_of(typed)), "ad", typed)

    async def _kept(self, request: Request, order: MarketOrder, what: str, typed: Typed, after: str = HERE) -> Response:
        try:
            done = await run_in_threadpool(self.desk.order, order, self.shell.by(request))
        except VedetteError as error:
            problems = {"form": sentence(str(error))}
            if what == "ad":
                return await self._ad_form(request, typed, problems)
            if what == "campaign":
                return await self._campaign_form(request, typed, problems)
            return self._form(request, what, typed, problems)
        return RedirectResponse(with_done(after, done.action), 303)

    async def _ad_form(self, request: Request, typed: Typed, problems: Problems | None = None) -> Response:
        names = [line.campaign.name for line in await run_in_threadpool(self.desk.campaigns)]
        return self._form(request, "ad", typed, problems, campaigns=[(name, name) for name in names])

    async def _campaign_form(self, request: Request, typed: Typed, problems: Problems | None = None) -> Response:
        names = [row.name for row in await run_in_threadpool(self.desk.advertisers)]
        return self._form(request, "campaign", typed, problems, advertisers=[(name, name) for name in names])

    def _form(
        self, request: Request, what: str, typed: Typed, problems: Problems | None = None, **told: object
    ) -> Response:
        is_new = not typed.get("ad" if what == "ad" else "known")
        words = {"advertiser": "Advertiser", "campaign": "Campaign", "ad": "Ad"}[what]
        title = f"New {words.lower()}" if is_new and what != "advertiser" else words
        if what == "ad" and not is_new:
            title = f"Ad {typed['ad'][:_MOST_DIGITS]}"
        told |= {"typed": typed, "problems": problems or {}, "is_new": is_new}
        status = 422 if problems else 200
        return self.shell.page(f"sponsored_{what}.html", request, here="sponsored", title=title, status=status, **told)

    async def _typed(self, request: Request, fields: tuple[str, ...]) -> dict[str, str]:
        form = await self.shell.form(request)
        return {name: form.get(name, "")[:_LONGEST] for name in fields}

    def _campaign(self, name: str) -> CampaignRow | None:
        rows = (line.campaign for line in self.desk.campaigns())
        return next((row for row in rows if row.name == name.strip().lower()), None)

    def _ad(self, number: str) -> AdRow | None:
        return next((line.ad for line in self.desk.ads() if str(line.ad.id) == number), None)


def _ad_of(typed: Typed) -> AdRow:
    number = typed["ad"]
    targets = [(way, phrase) for way in _WAYS for phrase in typed[way].splitlines() if phrase.strip()]
    away = [phrase for phrase in typed["negatives"].splitlines() if phrase.strip()]
    parts = (typed["campaign"], typed["title"], typed["text"], typed["url"], typed["bid"])
    is_known = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
    return ad_of(*parts, targets, away, int(number) if is_known else 0)


def _typed_of(row: AdRow) -> dict[str, str]:
    """An ad as the form has it: one phrase a line."""
    phrases = {way: "\n".join(text for each, text in row.targets if each == way) for way in _WAYS}
    plain = {name: str(getattr(row, name)) for name in ("campaign", "title", "text", "url", "bid")}
    return {"ad": str(row.id), **plain, **phrases, "negatives": "\n".join(row.negatives)}


def _problems(typed: Typed, reads: Reads) -> Problems:
    found: Problems = {}
    for name, read in reads.items():
        try:
            read(typed[name])
        except VedetteError as error:
            found[name] = sentence(str(error))
    return found
