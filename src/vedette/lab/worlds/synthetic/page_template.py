"""HTML page templates of synthetic sites: head, style, navigation, and a footer that names the build."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from vedette.lab.worlds.synthetic.sites import LINK_FARM, Section, Site

NOINDEX = b'<meta name="robots" content="noindex">\n'

_STYLE = b"""<style>
body{margin:0;font:17px/1.6 Georgia,serif;color:#222;background:#faf8f4}
header,main,footer{max-width:44rem;margin:auto;padding:1rem 1.25rem}
header{border-bottom:3px double #b9ad98}header b{font-size:1.5rem}
nav a{margin-right:.9rem;white-space:nowrap;font-size:.9rem}
a{color:#1f5673}a:hover{color:#a23b2a}h1{line-height:1.2}h2{margin-top:2rem;font-size:1.15rem}
ul{padding-left:1.1rem}.byline,.crumbs,.tags,footer{color:#6b6355;font-size:.85rem}
aside{border-left:4px solid #d8c9a8;padding:.2rem 1rem;background:#f3eee3}
pre{overflow:auto;background:#eee8da;padding:.7rem}footer{border-top:1px solid #d8d0c0}
</style>
"""

_HEAD_START = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>"""

_FOOTER_LINKS = {
    "calendar": ("/calendar/2026/1", "Calendar"),
    "sessions": ("/members/lobby", "Members"),
    "paths": ("/browse/", "Browse"),
    "farm": (f"http://offers.{LINK_FARM}/", "Offers"),
    "odd": ("/odd/", "Odd things"),
}


@dataclass(frozen=True, slots=True)
class PageTemplate:
    """HTML page template of a synthetic site: the prepared bytes around a page's parts, and common links."""

    after_title: bytes
    after_description: bytes
    after_canonical: bytes
    before_build: bytes
    breadcrumbs: tuple[bytes, ...]
    tags: tuple[bytes, ...]


def _link(target: str, label: str) -> str:
    return f'<a href="{escape(target)}">{escape(label)}</a>'


def _navigation(site: Site) -> str:
    sections = [_link(f"/section/{part.slug}", part.label) for part in site.sections]
    return " ".join([_link("/", "Home"), *sections, _link("/archive", "Archive"), _link("/about", "About")])


def _footer(site: Site) -> str:
    corners = [_link(*_FOOTER_LINKS[feature]) for feature in site.features if feature in _FOOTER_LINKS]
    feed = [_link("/feed.xml", "Feed")] if site.feed else []
    return " ".join([_link("/tags", "Tags"), *feed, _link("/private/", "Staff"), *corners])


def _feed_link(site: Site) -> str:
    if not site.feed:
        return ""
    return f'<link rel="alternate" type="application/{site.feed}+xml" title="{escape(site.title)}" href="/feed.xml">\n'


def build_template(site: Site) -> PageTemplate:
    """Build the HTML page template of a synthetic site, once."""
    name = escape(site.title)
    masthead = f"</head>\n<body>\n<header><b>{name}</b>\n<nav>{_navigation(site)}</nav></header>\n<main>\n"
    return PageTemplate(
        after_title=f' - {name}</title>\n<meta name="description" content="'.encode(),
        after_description=f'">\n<link rel="canonical" href="http://{site.name}'.encode(),
        after_canonical=b'">\n' + _feed_link(site).encode() + _STYLE + masthead.encode(),
        before_build=f"</main>\n<footer>\n<nav>{_footer(site)}</nav>\n<p>{name}. Made with care, build ".encode(),
        breadcrumbs=tuple(_breadcrumbs(part) for part in site.sections),
        tags=tuple(_link(f"/tag/{tag}", tag.replace("-", " ")).encode() for tag in site.tags),
    )


def _breadcrumbs(part: Section) -> bytes:
    return f'<p class="crumbs">{_link("/", "Home")} / {_link(f"/section/{part.slug}", part.label)}</p>\n'.encode()


def render_page(
    frame: PageTemplate, title: bytes, description: bytes, canonical: bytes, main: Iterable[bytes], build: bytes
) -> bytes:
    """Render a whole HTML page with its site's template; all parts are escaped, and ``canonical`` is a path."""
    return b"".join(
        (
            _HEAD_START,
            title,
            frame.after_title,
            description,
            frame.after_description,
            canonical,
            frame.after_canonical,
            *main,
            frame.before_build,
            build,
            b".</p>\n</footer>\n</body>\n</html>\n",
        )
    )


def strip_canonical(body: bytes) -> bytes:
    """Strip the canonical link from a rendered HTML page."""
    before, _, rest = body.partition(b'<link rel="canonical" href="')
    return before + rest.partition(b'">\n')[2] if rest else body
