"""The console's forms for ads: create or edit an advertiser, a campaign or an ad."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vedette.adapters.ads.campaign_store import AdRow, CampaignRow
from vedette.errors import VedetteError
from vedette.serve.ads.matching import MatchType
from vedette.web.ads.ports import AdService
from vedette.web.commands.ads_commands import AdCommand, SaveAd, SaveAdvertiser, SaveCampaign
from vedette.web.commands.ads_text import (
    format_target,
    parse_ad,
    parse_advertiser,
    parse_amount,
    parse_campaign,
    parse_day,
    parse_landing_url,
    parse_name,
    parse_phrase,
    parse_target,
    parse_text,
    parse_title,
)
from vedette.web.console.ui.forms import FormValues, Problems, find_problems, parse_number
from vedette.web.console.ui.layout import ConsoleShell, add_done_parameter, identify_command, read_form
from vedette.web.formatting import sentence

PAGE_URL: Final = "/console/sponsored"
_MAX_FIELD_LENGTH: Final = 20_000  # of what is typed into one field
MAX_AD_DIGITS: Final = 9
_MATCH_TYPES: Final = tuple(way.value for way in MatchType)
_AD_FIELDS: Final = ("ad", "campaign", "title", "text", "url", "bid", *_MATCH_TYPES, "negatives")
_CAMPAIGN_FIELDS: Final = ("known", "name", "advertiser", "budget", "starts", "ends")
FormName = Literal["advertiser", "campaign", "ad"]
FieldParsers = dict[str, Callable[[str], object]]


@dataclass(frozen=True, slots=True)
class AdForms:
    """The console's forms for advertisers, campaigns and ads, and the POST handlers that save them."""

    shell: ConsoleShell
    ads: AdService

    def show_advertiser(self, request: Request) -> Response:
        """Show the advertiser form, empty or filled with an existing advertiser."""
        name = request.query_params.get("name", "")
        row = next((row for row in self.ads.list_advertisers() if row.name == name), None)
        typed = {"name": row.name, "key": row.key, "budget": row.budget} if row else {"name": name[:64]}
        return self._render(request, "advertiser", typed)

    def save_advertiser(self, request: Request) -> Response:
        """Save the advertiser form: create an advertiser, or replace its key and budget."""
        typed = self._read_fields(request, ("name", "key", "budget"))
        problems = find_problems(typed, {"name": parse_name, "budget": lambda text: parse_advertiser("any", "", text)})
        if problems:
            return self._render(request, "advertiser", typed, problems)
        command = SaveAdvertiser(parse_advertiser(typed["name"], typed["key"], typed["budget"]))
        return self._save(request, command, "advertiser", typed, f"{PAGE_URL}/campaign?advertiser={typed['name']}")

    def show_campaign(self, request: Request) -> Response:
        """Show the ad campaign form, empty or filled with an existing campaign."""
        name = request.query_params.get("name", "")
        row = self._find_campaign(name)
        advertisers = self._list_owners("campaign")
        if not advertisers:
            return RedirectResponse(f"{PAGE_URL}/advertiser", 303)
        if row is None:
            advertiser = request.query_params.get("advertiser", "")
            owner = advertiser if advertiser in advertisers else advertisers[0]
            return self._render(request, "campaign", {"name": name[:64], "advertiser": owner})
        typed = {**{field: str(getattr(row, field)) for field in _CAMPAIGN_FIELDS[1:]}, "known": row.name}
        return self._render(request, "campaign", typed)

    def save_campaign(self, request: Request) -> Response:
        """Save the ad campaign form: create a campaign, or change its budget or its days."""
        typed = self._read_fields(request, _CAMPAIGN_FIELDS)
        reads: FieldParsers = {
            "name": parse_name,
            "budget": lambda text: parse_amount(text, "a budget"),
            "starts": parse_day,
            "ends": parse_day,
        }
        values = [typed[field] for field in _CAMPAIGN_FIELDS[1:]]
        problems = find_problems(typed, reads) or find_problems(typed, {"ends": lambda _: parse_campaign(*values)})
        if problems:
            return self._render(request, "campaign", typed, problems)
        row = parse_campaign(*values)
        before = self._find_campaign(row.name)
        if before and not typed["known"]:
            return self._render(request, "campaign", typed, {"name": "A campaign with this name already exists."})
        command = SaveCampaign(row._replace(paused=bool(before and before.paused)))
        return self._save(request, command, "campaign", typed)

    def show_ad(self, request: Request) -> Response:
        """Show the ad form, empty or filled with an existing ad."""
        number = request.query_params.get("ad", "")
        row = next((line.ad for line in self.ads.list_ads() if str(line.ad.id) == number), None)
        if number and row is None:
            return self.shell.not_found_page(request)
        names = self._list_owners("ad")
        if not names:
            return RedirectResponse(f"{PAGE_URL}/campaign", 303)
        if row is not None:
            return self._render(request, "ad", _fill_ad_form(row))
        campaign = request.query_params.get("campaign", "")
        return self._render(request, "ad", {"campaign": campaign if campaign in names else names[0]})

    def save_ad(self, request: Request) -> Response:
        """Save the ad form: submit a new ad or edit one; it then waits to be approved."""
        typed = self._read_fields(request, _AD_FIELDS)
        reads: FieldParsers = {
            "title": parse_title,
            "text": parse_text,
            "url": parse_landing_url,
            "bid": lambda text: parse_amount(text, "a bid"),
            **dict.fromkeys(
                (*_MATCH_TYPES, "negatives"), lambda text: [parse_phrase(each) for each in text.splitlines()]
            ),
        }
        problems = find_problems(typed, reads) or find_problems(typed, {"broad": lambda _: _parse_ad(typed)})
        if not problems:
            why = self.ads.check_landing_url(_parse_ad(typed).url)
            problems = {"url": sentence(why)} if why else {}
        if problems:
            return self._render(request, "ad", typed, problems)
        return self._save(request, SaveAd(_parse_ad(typed)), "ad", typed)

    def _save(
        self, request: Request, command: AdCommand, form: FormName, typed: FormValues, after: str = PAGE_URL
    ) -> Response:
        try:
            done = self.ads.run_command(command, self.shell.describe_actor(request), identify_command(request, command))
        except VedetteError as error:
            return self._render(request, form, typed, {"form": sentence(str(error))})
        return RedirectResponse(add_done_parameter(after, done.action), 303)

    def _render(
        self, request: Request, form: FormName, typed: FormValues, problems: Problems | None = None
    ) -> Response:
        is_new = not typed.get("ad" if form == "ad" else "known")
        title = f"New {form}" if is_new and form != "advertiser" else form.capitalize()
        return self.shell.render_page(
            f"sponsored_{form}.html",
            request,
            here="sponsored",
            title=f"Ad {typed['ad'][:MAX_AD_DIGITS]}" if form == "ad" and not is_new else title,
            typed=typed,
            owners=[(name, name) for name in self._list_owners(form)],
            is_new=is_new,
            problems=problems or {},
        )

    def _list_owners(self, form: FormName) -> list[str]:
        """List the choices in an ad form: campaigns for an ad, advertisers for a campaign."""
        if form == "ad":
            return [line.campaign.name for line in self.ads.list_campaigns()]
        return [row.name for row in self.ads.list_advertisers()] if form == "campaign" else []

    def _read_fields(self, request: Request, fields: tuple[str, ...]) -> dict[str, str]:
        form = read_form(request)
        return {name: form.get(name, "")[:_MAX_FIELD_LENGTH] for name in fields}

    def _find_campaign(self, name: str) -> CampaignRow | None:
        rows = (line.campaign for line in self.ads.list_campaigns())
        return next((row for row in rows if row.name == name.strip().lower()), None)


def _parse_ad(typed: FormValues) -> AdRow:
    targets = [parse_target(way, line) for way in _MATCH_TYPES for line in typed[way].splitlines() if line.strip()]
    away = [phrase for phrase in typed["negatives"].splitlines() if phrase.strip()]
    parts = (typed["campaign"], typed["title"], typed["text"], typed["url"], typed["bid"])
    return parse_ad(*parts, targets, away, parse_number(typed["ad"], MAX_AD_DIGITS) or 0)


def _fill_ad_form(row: AdRow) -> dict[str, str]:
    """Fill the ad form's fields with an existing ad, one phrase per line."""
    phrases = {way: "\n".join(format_target(each) for each in row.targets if each.way == way) for way in _MATCH_TYPES}
    plain = {name: str(getattr(row, name)) for name in ("campaign", "title", "text", "url", "bid")}
    return {"ad": str(row.id), **plain, **phrases, "negatives": "\n".join(row.negatives)}
