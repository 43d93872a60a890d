"""What is common to everything that people post with a form: whether it comes from our own page, and what it holds.

A form on somebody else's page can be sent with a visitor's cookies. So a post counts only if the browser says that it
comes from a page of this server.
"""

from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request

from vedette.web.auth.access import Access
from vedette.web.gate import LONGEST_BODY

__all__ = ["fields_of", "is_ours", "posted_fields"]

FORM = "application/x-www-form-urlencoded"


def is_ours(request: Request, access: Access) -> bool:
    """Whether the browser says that a page of this server posted this. Who says nothing is not believed."""
    told = request.headers.get("sec-fetch-site")
    if told is not None:
        return told == "same-origin"
    origin = _place_of(request.headers.get("origin", ""))
    return bool(origin) and origin in {request.headers.get("host"), _place_of(access.serve.address)}


async def posted_fields(request: Request, longest: int = LONGEST_BODY) -> dict[str, list[str]] | None:
    """The fields of a form; None for what is no form, or a longer one than it should be."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return None
    body = await request.body()  # the gate has bounded it
    return fields_of(body) if len(body) <= longest else None


def fields_of(body: bytes) -> dict[str, list[str]]:
    r"""The values of each field, with lines that end as ours do.

    >>> fields_of(b"name=Ann+Lee&lines=a%0D%0Ab&name=Bo")
    {'name': ['Ann Lee', 'Bo'], 'lines': ['a\nb']}
    """
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: [_in_lines(value) for value in values] for name, values in fields.items()}


def _place_of(origin: str) -> str:
    """Host and port of an origin; empty where it is none.

    >>> _place_of("https://example.org:8443"), _place_of("null"), _place_of("http://[::1")
    ('example.org:8443', '', '')
    """
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _in_lines(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
