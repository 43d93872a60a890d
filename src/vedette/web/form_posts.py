"""What is common to everything that people post with a form: whether it comes from our own page, and what it holds.

A form on somebody else's page can be sent with a visitor's cookies. So a post counts only if the browser says that it
comes from a page of this server.
"""

from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request

from vedette.web.auth.access import AccessControl
from vedette.web.gate import MAX_BODY_BYTES, get_media_type

FORM_TYPE = "application/x-www-form-urlencoded"


def is_same_origin(request: Request, access: AccessControl) -> bool:
    """Whether the browser says that a page of this server posted this. Who says nothing is not believed."""
    told = request.headers.get("sec-fetch-site")
    if told is not None:
        return told == "same-origin"
    origin = _parse_authority(request.headers.get("origin", ""))
    return bool(origin) and origin in {request.headers.get("host"), _parse_authority(access.serve.address)}


async def read_form(request: Request, longest: int = MAX_BODY_BYTES) -> dict[str, list[str]] | None:
    """The fields of a form; None for what is no form, or a longer one than it should be."""
    if get_media_type(request) != FORM_TYPE:
        return None
    body = await request.body()  # the gate has bounded it
    return parse_form(body) if len(body) <= longest else None


def parse_form(body: bytes) -> dict[str, list[str]]:
    r"""The values of each field, with lines that end as ours do.

    >>> parse_form(b"name=Ann+Lee&lines=a%0D%0Ab&name=Bo")
    {'name': ['Ann Lee', 'Bo'], 'lines': ['a\nb']}
    """
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: [_normalize_newlines(value) for value in values] for name, values in fields.items()}


def _parse_authority(origin: str) -> str:
    """Host and port of an origin; empty where it is none.

    >>> _parse_authority("https://example.org:8443"), _parse_authority("null"), _parse_authority("http://[::1")
    ('example.org:8443', '', '')
    """
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _normalize_newlines(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
