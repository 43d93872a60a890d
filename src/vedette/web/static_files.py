"""The files that pages load: style, script and icon, each under an address that changes with its contents.

So a browser may keep them for ever, and has the new ones at once when they change. They are read once, at the start.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["Asset", "asset", "embedded", "static_routes"]

FOLDER: Final = Path(__file__).parent / "static"
FOR_EVER: Final = "public, max-age=31536000, immutable"
FOR_AN_HOUR: Final = "public, max-age=3600"
TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load; ``digest`` changes with its contents."""

    name: str
    body: bytes
    digest: str

    @property
    def address(self) -> str:
        """Where pages find it."""
        return f"/static/{self.digest}/{self.name}"

    def answer(self, asked: Request, keep: str) -> Response:
        """The file; or a word that the reader has it already."""
        headers = {"cache-control": keep, "etag": f'"{self.digest}"', "x-content-type-options": "nosniff"}
        if asked.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=TYPES[Path(self.name).suffix])


@cache
def asset(name: str) -> Asset:
    """A file of the static folder."""
    body = (FOLDER / name).read_bytes()
    return _made(name, body)


@cache
def embedded() -> Asset:
    """The script for other people's pages: the box and its suggestions, with no name left behind on the page."""
    inside = b"\n".join([asset("suggestions.js").body, asset("embed.js").body])
    return _made("embed.js", b"(() => {\n" + inside + b"})();\n")


def _made(name: str, body: bytes) -> Asset:
    return Asset(name, body, hashlib.sha256(body).hexdigest()[:16])


async def _static(asked: Request) -> Response:
    """A static file. Under the digest of another version it is sent all the same, but not to be kept."""
    name = asked.path_params["name"]
    if name not in _names():
        return Response(status_code=404)
    found = asset(name)
    return found.answer(asked, FOR_EVER if asked.path_params["digest"] == found.digest else "no-cache")


@cache
def _names() -> frozenset[str]:
    return frozenset(path.name for path in FOLDER.iterdir() if path.suffix in TYPES)


async def _embed(asked: Request) -> Response:
    """The script under its short address, which stands in other people's pages and so must stay as it is."""
    answer = embedded().answer(asked, FOR_AN_HOUR)
    answer.headers["cross-origin-resource-policy"] = "cross-origin"
    return answer


def static_routes() -> list[Route]:
    """Where the files are found."""
    return [Route("/static/{digest}/{name}", _static), Route("/embed.js", _embed)]
