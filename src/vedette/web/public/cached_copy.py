"""The cached copy of a page, in a frame in which it can do nothing.

The frame has an origin of its own and no right at all (``sandbox``), and the policy of the copy forbids whatever is not
text, our own style or a picture that the page holds within itself. So links in it open nothing: to let them, windows
would have to be allowed, and a stranger's page would be one mistake nearer to the reader.
"""

from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from vedette.parse.text.charsets import codec_of, decode
from vedette.parse.text.media_types import is_html
from vedette.web.ports import CachedCopy, Search
from vedette.web.public.sanitise import MOST_CHARACTERS, sanitised
from vedette.web.rendering import SECURITY, rendered

__all__ = ["copy_of", "copy_page", "id_of", "source_of"]

POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS: Final = SECURITY | {"content-security-policy": POLICY, "x-robots-tag": "noindex, noarchive, nofollow"}
MOST_DIGITS: Final = 18  # of a page's id; more is nobody's


def id_of(asked: Request) -> int | None:
    """The id of a page in an address; None where it is none."""
    written = asked.path_params["id"]
    return int(written) if written.isascii() and written.isdecimal() and len(written) <= MOST_DIGITS else None


def copy_of(asked: Request, search: Search, allowed: tuple[str, ...]) -> CachedCopy | None:
    """The copy that an address asks for, where there is one to be shown."""
    id_ = id_of(asked)
    return None if id_ is None else search.copy(id_, allowed)


async def copy_page(copy: CachedCopy) -> Response:
    """The copy as a page of its own. It is made beside the event loop, since a large one takes a while."""
    text = await run_in_threadpool(_written, copy)
    return Response(text.encode(errors="replace"), headers=HEADERS, media_type="text/html")


def _written(copy: CachedCopy) -> str:
    if is_html(copy.content_type, copy.body):
        return rendered("cached_body.html", title=copy.title, html=sanitised(source_of(copy), copy.url), text="")
    return rendered("cached_body.html", title=copy.title, html="", text=copy.text[:MOST_CHARACTERS])


def source_of(copy: CachedCopy) -> str:
    """The HTML of a page, by the charset that it was read in; where that is unknown, as a browser would read it."""
    body = copy.body[:MOST_CHARACTERS]
    codec = codec_of(copy.charset)
    return decode(body, copy.content_type).text if codec is None else body.decode(codec, "replace")
