"""The form with a site's settings: fill its fields, and parse them into a site or the problem of each field.

Parsing is done by ``config.site_settings``, so that a form accepts what the command line and a TOML file accept.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from vedette.config.site_settings import format_sites, site_of_text
from vedette.errors import VedetteError
from vedette.model import Site
from vedette.web.console.ui.forms import FormValues
from vedette.web.formatting import sentence

# Anyone who may add a site may also choose the host that gets its credentials. At a terminal that is someone who can
# read them anyway; in a browser it is someone with a token. So the console accepts only the locations that the operator
# named in the settings (``serve.console_secrets``), and those that a site already has.


_WILDCARD = "*"


def is_allowed(place: str, allowed: Sequence[str]) -> bool:
    """Check whether a site form may name this credentials location (environment variable or file).

    A path that is not normalized never matches, since it could leave an allowed folder.

    >>> allowed = ("env:WIKI_*", "file:/etc/vedette/*")
    >>> [is_allowed(place, allowed) for place in ("env:WIKI_LOGIN", "env:HOME", "file:/etc/vedette/../shadow")]
    [True, False, False]
    """
    return _is_normalized(place) and any(_matches(place, each) for each in allowed)


def describe_allowed(allowed: Sequence[str]) -> str:
    """Describe the credentials locations that a site form may name, as a hint beside its field.

    >>> describe_allowed(("env:A", "env:B_*", "file:/c/*"))
    'env:A, env:B_… or file:/c/…'
    """
    names = [each.replace(_WILDCARD, "\N{HORIZONTAL ELLIPSIS}") for each in allowed]
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def check_secret(place: str, allowed: Sequence[str], current: str = "") -> str:
    """Return why a site form may not name this credentials location; empty if it may.

    ``current`` is the site's current location, which it may keep.
    """
    if place in {"", current} or is_allowed(place, allowed):
        return ""
    ways = f"use {describe_allowed(allowed)}; " if allowed else ""
    return (
        f"The console may not set these credentials: {ways}allow more with serve.console_secrets, or set them on "
        "the command line."
    )


def _matches(place: str, allowed: str) -> bool:
    beginning = allowed.removesuffix(_WILDCARD)
    return place == allowed if beginning == allowed else place.startswith(beginning) and place != beginning


def _is_normalized(place: str) -> bool:
    """Check that a credentials location's file path is absolute and normalized, without ``..`` or ``.``."""
    kind, _, path = place.partition(":")
    return kind != "file" or (path.startswith("/") and not {"", ".", ".."} & {*path[1:].split("/")})


_LINE_FIELDS = ("include", "exclude", "drop_parameters", "promise", "sitemap")
_NAME_FIELDS = ("readers", "overrule", "render_from")
_CHECKBOX_FIELDS = ("allow_private", "sort_parameters")
_TEXT_FIELDS = (
    *("scope", "delay", "hours", "busy_hours", "bytes_per_s", "share", "secrets", "change", "render", "ignore_robots"),
)
_DEFAULT_SITE = Site("")
_EXAMPLE_SITE = "https://example.org/"


def build_empty_form(text: str = "") -> FormValues:
    """Return the field values of the form for a new site: the default settings."""
    return fill_form(_DEFAULT_SITE) | {"site": text}


def fill_form(site: Site) -> FormValues:
    r"""Return the field values of the form for an existing site's settings.

    The confirmation that a site is the operator's own is never filled in.

    >>> typed = fill_form(Site("https://example.org/", delay_s=2.0, exclude=("/a/*", "/b/*")))
    >>> typed["delay"], typed["exclude"], typed["sort_parameters"]
    ('2s', '/a/*\n/b/*', 'yes')
    """
    settings: dict[str, Any] = tomllib.loads(format_sites([(site, False)]))["site"][0]
    lists = {name: "\n".join(settings.get(name, getattr(site, name))) for name in _LINE_FIELDS}
    names = {name: ", ".join(getattr(site, name)) for name in _NAME_FIELDS}
    ticks = {name: "yes" if getattr(site, name) else "" for name in _CHECKBOX_FIELDS}
    words = {name: str(settings.get(name, "")) for name in _TEXT_FIELDS}
    chosen = {"scope": site.scope, "change": site.change, "render": site.render, "ignore_robots": ""}
    return {"site": site.start, **lists, **names, **ticks, **words, **chosen}


def parse_form(
    form: Mapping[str, str], places: Sequence[str] = (), current: Site = _DEFAULT_SITE
) -> tuple[Site | None, dict[str, str]]:
    """Parse the site form into a site, or into None and the problem of each field.

    ``places`` are the allowed credentials locations, besides that of the existing site ``current``.

    >>> site, problems = parse_form({"site": "example.org", "delay": "soon"})
    >>> site is None, list(problems)
    (True, ['delay'])
    """
    settings = parse_form_settings(form)
    alone = {"site": (form.get("site", ""), dict[str, object]())}
    alone |= {name: (_EXAMPLE_SITE, {name: value}) for name, value in settings.items()}
    problems = {name: problem for name, tried in alone.items() if (problem := _find_problem(name, *tried))}
    if refusal := check_secret(form.get("secrets", ""), places, current.secrets):
        problems.setdefault("secrets", refusal)
    return (None, problems) if problems else (site_of_text(form["site"], settings), {})


def parse_form_settings(form: Mapping[str, str]) -> dict[str, object]:
    """Return the site form's settings that differ from the defaults, by TOML key."""
    settings: dict[str, object] = {name: form[name] for name in (*_TEXT_FIELDS, *_NAME_FIELDS) if form.get(name)}
    for name in _LINE_FIELDS:
        if name in form and (lines := [line.strip() for line in form[name].split("\n") if line.strip()]):
            settings[name] = lines
    if form.get("allow_private"):
        settings["allow_private"] = True
    if "scope" in form:
        # An unticked box is not sent; nor is one of a form without it, but every form is complete.
        settings |= {} if form.get("sort_parameters") else {"sort_parameters": False}
        settings |= {} if "drop_parameters" in settings else {"drop_parameters": []}
    return settings


def diff_sites(old: Site, new: Site) -> dict[str, object]:
    """Return the settings in which an edited site differs from the old one, with their new values."""
    return {
        field.name: getattr(new, field.name)
        for field in fields(Site)
        if getattr(old, field.name) != getattr(new, field.name)
    }


def _find_problem(name: str, text: str, settings: Mapping[str, object]) -> str:
    try:
        site_of_text(text, settings)
    except VedetteError as error:
        return sentence(str(error).removeprefix(f"{name}: "))
    return ""
