"""Rendering of HTML pages from templates, escaped by default, with branding and strict security headers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from vedette.fetch.request import PRODUCT
from vedette.web import formatting as words
from vedette.web.static_files import load_asset

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-src 'self'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "private, no-cache",
    "vary": "cookie",
}
THEMES: Final = ("dark", "light")
_ERROR_TEXTS: Final = {
    400: ("Invalid request", "Part of the URL is invalid. Try a new search."),
    403: ("Access denied", "You do not have access to this page. If you should, ask the operator."),
    404: ("Page not found", "The URL may be misspelled, or the page has been removed. Try a search."),
    405: ("Method not allowed", "This URL is read-only."),
    429: ("Too many requests", "Your IP address has sent too many requests. Wait a minute, then try again."),
    500: ("Server error", "Something went wrong on the server; the error has been logged. Try again in a moment."),
    503: ("Not ready yet", "The search engine is starting or busy. Try again in a moment."),
}


@dataclass(frozen=True, slots=True)
class Branding:
    """The branding of the HTML pages: what they say about their operator.

    ``name`` is the displayed name. ``address`` is the public URL of the pages ("https://search.example.org"); if it is
    empty, that of each request is used. ``embed_origins`` are the origins whose pages may embed our search box with
    suggestions ("https://docs.example.org"). ``contact`` returns a mail address or a URL for the page about the
    crawler, ``product`` the crawler's name in robots.txt files. ``demo`` lists new pages on the start page.
    """

    name: str = "Vedette"
    address: str = ""
    embed_origins: tuple[str, ...] = ()
    contact: Callable[[], str] = str
    product: str = PRODUCT
    demo: bool = False


_DEFAULT_BRANDING: Final = Branding()


def render_page(template: str, request: Request, look: Branding, status: int = 200, **values: object) -> Response:
    """Render a template as the HTML response to a request, with branding and security headers."""
    return _html_response(render_template(template, look=look, theme=get_theme(request), **values), status)


def error_page(
    status: int, message: str = "", *, title: str = "", look: Branding = _DEFAULT_BRANDING, theme: str = ""
) -> Response:
    """Render an HTML error page: what went wrong and what to do; ``message`` and ``title`` replace the default text.

    A status without its own text gets that of 400 or 500.
    """
    own_title, own = _ERROR_TEXTS.get(status) or _ERROR_TEXTS[400 if status < 500 else 500]
    text = render_template("problem.html", look=look, theme=theme, title=title or own_title, message=message or own)
    return _html_response(text, status)


def get_theme(request: Request) -> str:
    """Return the light or dark theme that the user chose in a cookie; empty if the system decides."""
    chosen = request.cookies.get("theme", "")
    return chosen if chosen in THEMES else ""


def render_template(template: str, **values: object) -> str:
    """Render a template to text."""
    return _jinja_environment().get_template(template).render(**values)


def _html_response(text: str, status: int) -> Response:
    # Half of a surrogate pair, which a foreign page may contain, is shown as a question mark.
    return Response(text.encode(errors="replace"), status, headers=SECURITY_HEADERS, media_type="text/html")


@cache
def _jinja_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals.update({name: getattr(words, name) for name in words.__all__})
    environment.globals["static"] = lambda name: load_asset(name).address
    return environment
