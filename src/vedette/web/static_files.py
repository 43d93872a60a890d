"""Static files: style sheets, scripts and icon, each at a URL that changes with its contents.

So a browser may cache them forever, and gets the new ones at once when they change. They are read once, at startup.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

STATIC_FOLDER: Final = Path(__file__).parent / "static"
CACHE_FOREVER: Final = "public, max-age=31536000, immutable"
CACHE_ONE_HOUR: Final = "public, max-age=3600"
MEDIA_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file that pages load; ``digest`` changes with its contents."""

    name: str
    body: bytes
    digest: str

    @property
    def address(self) -> str:
        """Return the URL of the static file, with its digest."""
        return f"/static/{self.digest}/{self.name}"

    def to_response(self, request: Request, keep: str) -> Response:
        """Return the static file as a response, or 304 if the browser has it already."""
        headers = {"cache-control": keep, "etag": f'"{self.digest}"', "x-content-type-options": "nosniff"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=MEDIA_TYPES[Path(self.name).suffix])


@cache
def load_asset(name: str) -> Asset:
    """Load a file of the static folder."""
    body = (STATIC_FOLDER / name).read_bytes()
    return _create_asset(name, body)


@cache
def load_embed_script() -> Asset:
    """Load the embed script for other people's pages: search box and suggestions, without global names."""
    inside = b"\n".join([load_asset("suggestions.js").body, load_asset("embed.js").body])
    return _create_asset("embed.js", b"(() => {\n" + inside + b"})();\n")


def _create_asset(name: str, body: bytes) -> Asset:
    return Asset(name, body, hashlib.sha256(body).hexdigest()[:16])


async def _serve_static(request: Request) -> Response:
    """Serve a static file; under the digest of another version it is sent, but must not be cached."""
    name = request.path_params["name"]
    if name not in _list_names():
        return Response(status_code=404)
    found = load_asset(name)
    return found.to_response(request, CACHE_FOREVER if request.path_params["digest"] == found.digest else "no-cache")


@cache
def _list_names() -> frozenset[str]:
    return frozenset(path.name for path in STATIC_FOLDER.iterdir() if path.suffix in MEDIA_TYPES)


async def _serve_embed_script(request: Request) -> Response:
    """Serve the embed script at its short URL, which is in other people's pages and so must not change."""
    answer = load_embed_script().to_response(request, CACHE_ONE_HOUR)
    answer.headers["cross-origin-resource-policy"] = "cross-origin"
    return answer


def static_routes() -> list[Route]:
    """Return the routes of the static files."""
    return [Route("/static/{digest}/{name}", _serve_static), Route("/embed.js", _serve_embed_script)]
