"""Pages designed to harm users of search results, crawled for real and opened in a real browser.

They must not run scripts, send requests, open dialogs or windows, or navigate away.
"""

from collections.abc import Iterator
from html import escape
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Dialog, Page, Route
from tests.search_runs import Leaf, Up, prose, small_web, up
from tests.tree_runs import patiently

BAD = "http://bad.test"
EVIL = "http://evil.test"
FLAG = "window.__hacked=1"
HARM = f"{FLAG};try{{top.__hacked=1}}catch(e){{}};alert(1);new Image().src='{EVIL}/beacon';location='{EVIL}/away'"
SCRIPT = f"<script>{HARM}</script>"
IMAGE = f'<img src="{EVIL}/picture" onerror="{HARM}" onload="{HARM}">'
OUT_OF_ATTRIBUTE = f'"\'><svg onload="{HARM}">'
PATHS = (
    "/%22%3E%3Cscript%3Ewindow.__hacked=1%3C/script%3E",
    "/?%27onmouseover=window.__hacked=1",
    "/javascript:alert(1)",
)
WIDTH = 390
# What could run, load, send or lead away.
ACTIVE = (
    "script, style:not(head style), iframe, frame, object, embed, form, input, button, base, link, svg, math, video, "
    "audio, template, textarea, [style], [srcset], [background], [autofocus], meta[http-equiv], img:not([src^='data:'])"
)


def hostile(name: str, body: str, *, title: str = "", head: str = "", before: str = "") -> Leaf:
    """Return a page that ``harmword`` finds, with something malicious in it."""
    shown = f"<h1>Harm {name}</h1><p>harmword {name}word {prose(name)}.</p>"
    return Leaf(
        f"{before}<!doctype html><html lang=en><head><title>{title or name}</title>{head}</head><body>{shown}{body}"
    )


def _structured(text: str) -> str:
    words = f'{{"@type": "Article", "headline": "{text}", "datePublished": "{text}"}}'
    return f'<script type="application/ld+json">{words}</script>'


PAGES = {
    "/title-escaped": hostile("titled", "", title=f"harm {escape(SCRIPT)}{escape(IMAGE)}"),
    "/title-raw": hostile("raw", "", title=f"harm </title>{SCRIPT}<title>"),
    "/title-quotes": hostile("quotes", "", title=f"harm {escape(OUT_OF_ATTRIBUTE)}"),
    "/title-script-end": hostile("ends", "", title="harm &lt;/script&gt;&lt;/style&gt;&lt;/textarea&gt;-->]]>"),
    "/headings": hostile(
        "headings", f"<h2>{escape(SCRIPT)}</h2><h2>{SCRIPT}{IMAGE}</h2><h3>{escape(OUT_OF_ATTRIBUTE)}</h3>"
    ),
    "/description": hostile(
        "described", "", head=f'<meta name=description content="{escape(OUT_OF_ATTRIBUTE + SCRIPT)}">'
    ),
    "/structured": hostile("structured", "", head=_structured("</script>" + SCRIPT.replace('"', "'"))),
    "/links": hostile(
        "links",
        f'<a id=js href="javascript:{HARM}">one</a> <a href="data:text/html,{quote(SCRIPT)}">two</a> '
        f'<a href="{EVIL}/" target=_top ping="{EVIL}/ping">three</a> <a href=" java\tscript:{HARM}">four</a> '
        f'<a href="vbscript:x">five</a> <a href="/title-raw">{escape(SCRIPT)}</a> <a href="/links">{IMAGE}</a>',
    ),
    "/drawings": hostile(
        "drawings",
        f'<svg onload="{HARM}"><script>{HARM}</script><a xlink:href="javascript:{HARM}"><text>x</text></a>'
        f'<image href="{EVIL}/svg"/><foreignObject>{IMAGE}</foreignObject></svg>'
        f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={HARM}&gt;">',
    ),
    "/loads": hostile(
        "loads",
        f'<link rel=stylesheet href="{EVIL}/css"><link rel=preload as=image href="{EVIL}/preload">'
        f'<link rel=prefetch href="{EVIL}/prefetch"><style>@import url({EVIL}/import);'
        f'body {{ background: url({EVIL}/background) }}</style><p style="background: url({EVIL}/inline)">x</p>'
        f'<video autoplay poster="{EVIL}/poster" src="{EVIL}/video"></video><audio autoplay src="{EVIL}/audio"></audio>'
        f'<object data="{EVIL}/object"></object><embed src="{EVIL}/embed"><img srcset="{EVIL}/set 1x">'
        f'<picture><source srcset="{EVIL}/source">{IMAGE}</picture><input type=image src="{EVIL}/input">'
        f'<table background="{EVIL}/table"><tr><td>x</table><body background="{EVIL}/body">',
    ),
    "/frames": hostile(
        "frames",
        f'<iframe src="{EVIL}/frame"></iframe><iframe srcdoc="{escape(SCRIPT)}"></iframe>'
        f'<frameset><frame src="{EVIL}/">',
    ),
    "/refresh": hostile(
        "refresh", "", head=f'<meta http-equiv=refresh content="0;url={EVIL}/again"><base href="{EVIL}/" target=_top>'
    ),
    "/forms": hostile(
        "forms",
        f'<form action="{EVIL}/form" id=f><input autofocus onfocus="{HARM}" name=q>'
        f'<button formaction="javascript:{HARM}">x</button></form><details open ontoggle="{HARM}">x</details>'
        f'<marquee onstart="{HARM}">x</marquee>{SCRIPT}<select autofocus onfocus="{HARM}">',
    ),
    "/parsers": hostile(
        "parsers",
        f'<noscript><p title="</noscript>{escape(IMAGE, quote=False)}"></noscript><xmp><p title="</xmp>{IMAGE}"></xmp>'
        f'<textarea><p title="</textarea>{IMAGE}"></textarea><template>{IMAGE}</template>'
        f'<!--><img src=x onerror="{HARM}">--><![CDATA[><img src=x onerror="{HARM}">]]><p id=<b>x</p>'
        f"<img/src=x/onerror={FLAG}><\x00script>{HARM}</script><scr<script>ipt>{HARM}</scr</script>ipt>"
        f"<a href='x' title='<img src=x onerror=alert(1)>'>y</a><plaintext>{SCRIPT}",
    ),
    "/charset": hostile("charset", f"+ADw-script+AD4-{HARM}+ADw-/script+AD4-", head="<meta charset=utf-7>"),
    "/wide": hostile("wide", f"<pre>{'W' * 20_000}</pre><h2>{'H' * 3000}</h2>", title="harm " + "W" * 3000),
    "/bidi": hostile("bidi", "<p>\u202eharmword desrever\u202c</p>", title="harm \u202e\u2066gpj.exe\u2067\u202d"),
    "/templates": hostile("templates", "<p>{{7*7}} ${7*7} {% raw %} <%= 7*7 %></p>", title="harm {{7*7}}"),
    "/copy-1": hostile("copies", SCRIPT, title=f"harm copy {escape(SCRIPT)}"),
    "/copy-2": hostile("copies", SCRIPT + "<p>twice</p>", title=f"harm copy {escape(SCRIPT)}"),
    **{path: hostile(f"path {number}", "") for number, path in enumerate(PATHS)},
}


def _home() -> Leaf:
    links = "".join(f'<li><a href="{escape(path)}">{escape(SCRIPT)}{path}</a></li>' for path in PAGES)
    return hostile("home", f"<ul>{links}</ul>", title="harm home")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Run a server over hostile pages only, after all of them were fetched."""
    pages = {f"{BAD}{path}": leaf for path, leaf in PAGES.items()} | {f"{BAD}/": _home()}
    with small_web(pages) as web, up(web, tmp_path_factory.mktemp("bad"), f"{BAD}/") as started:
        started.vedette("sites", "set", f"{BAD}/", "overrule=trap,spam,missing,thin,empty,script")
        patiently(lambda: len({visit.url for visit in web.visits if visit.status == 200}) == len(pages))
        patiently(lambda: started.search("harmword", n=50)["total"] >= len(pages) - 1)
        patiently(lambda: started.get("/api/v1/suggest?q=har").json["suggestions"])
        yield started


class Witness:
    """A tab, and everything that happened in it that should not have."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self._address = address
        self.trouble: list[str] = []
        page.route("**/*", self._asked)
        page.on("dialog", self._spoken)
        page.on("popup", lambda opened: self.trouble.append(f"window: {opened.url}"))
        page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        page.on("download", lambda taken: self.trouble.append(f"download: {taken.url}"))

    def _asked(self, route: Route) -> None:
        url = route.request.url
        if url.startswith((f"{self._address}/", "data:image/")):
            route.continue_()
        else:
            self.trouble.append(f"request: {url[:200]}")
            route.abort()

    def _spoken(self, dialogue: Dialog) -> None:
        self.trouble.append(f"dialogue: {dialogue.message}")
        dialogue.dismiss()

    def look(self, path: str, *, wait: bool = True) -> None:
        """Open one of our pages and all that opens in it, wait for late events, and check that nothing happened."""
        wanted = self._address + path
        self.page.goto(wanted)
        self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        if wait:
            self.page.wait_for_load_state("networkidle")
        assert self.page.evaluate("window.__hacked") is None, path
        assert self.page.url == wanted, path
        assert self.trouble == [], path


@pytest.fixture
def witness(chromium: Browser, run: Up) -> Iterator[Witness]:
    """A tab with a small screen."""
    context = chromium.new_context(viewport={"width": WIDTH, "height": 800})
    yield Witness(context.new_page(), run.address)
    context.close()


def test_results_of_hostile_pages_are_only_shown(witness: Witness) -> None:
    """On the home page and for every result with its reasons, nothing runs and nothing overflows."""
    for path in (
        "/",
        "/search?q=harmword",
        "/search?q=harmword&page=2",
        "/search?q=harmword&similar=0&page=3",
        "/search?q=harm",
    ):
        witness.look(path)
        assert witness.page.evaluate("document.documentElement.scrollWidth") <= WIDTH, path
        links = witness.page.eval_on_selector_all("a", "all => all.map(one => one.protocol)")
        assert set(links) == {"http:"}, path


def test_titles_are_shown_as_they_are_written(witness: Witness) -> None:
    """Text in a title that looks like a tag or a template stays text."""
    witness.look("/search?q=harmword+titledword")
    assert "<script>" in (witness.page.locator("a.title").first.text_content() or "")
    witness.look("/search?q=templatesword")
    assert witness.page.locator("a.title").first.text_content() == "harm {{7*7}}"


def test_similar_pages_are_only_shown(witness: Witness, run: Up) -> None:
    """The list of copies of a hostile page is as harmless as the results."""
    (folded,) = [one for one in run.search("copiesword")["results"] if one["similar"]]
    witness.look(f"/similar/{folded['id']}?q={quote(SCRIPT)}")
    assert witness.page.locator(".result").count() == folded["similar"]


def test_copies_of_hostile_pages_do_nothing(witness: Witness, run: Up) -> None:
    """Every copy is shown in its frame without anything that could run, load, send or navigate."""
    results = [one for number in (1, 2) for one in run.search("harmword", n=20, page=number)["results"]]
    assert len(results) >= len(PAGES) - 1
    for result in results:
        witness.look(result["cached_url"], wait=result is results[-1])
        frame = witness.page.frames[1]
        assert frame.url == f"{run.address}{result['cached_url']}/body"
        assert frame.locator(ACTIVE).count() == 0, result["url"]
        names = frame.eval_on_selector_all("*", "all => all.flatMap(one => one.getAttributeNames())")
        assert [name for name in names if name == "ping" or name.startswith("on")] == [], result["url"]


def test_a_copy_in_its_own_window_does_nothing(witness: Witness, run: Up) -> None:
    """Opening the frame's URL in a separate window is just as safe."""
    for name in ("parsers", "drawings", "forms", "refresh", "links"):
        (result,) = [one for one in run.search(f"{name}word harmword")["results"] if one["url"] == f"{BAD}/{name}"]
        witness.look(f"{result['cached_url']}/body")


def test_links_in_a_copy_lead_nowhere(witness: Witness, run: Up) -> None:
    """Clicking each of them changes nothing."""
    (result,) = [one for one in run.search("linksword")["results"] if one["url"] == f"{BAD}/links"]
    witness.look(result["cached_url"])
    frame = witness.page.frames[1]
    assert frame.locator("a").count() >= 4
    before = frame.locator("body").inner_text()
    for link in frame.locator("a").all():
        if link.is_visible():
            link.click(force=True)
    witness.page.wait_for_load_state("networkidle")
    assert frame.locator("body").inner_text() == before
    assert witness.trouble == []


@pytest.mark.parametrize(
    "query",
    [
        SCRIPT + IMAGE,
        OUT_OF_ATTRIBUTE,
        f"</title></script>{SCRIPT}",
        f"javascript:{HARM}",
        f"title:{SCRIPT} -{IMAGE} site:{OUT_OF_ATTRIBUTE}",
        f"harmwrod {SCRIPT}",
    ],
)
def test_a_query_is_shown_as_text(witness: Witness, query: str) -> None:
    """A query appears as text in the field, the title and messages, and so do all parameters."""
    written = quote(query, safe="")
    witness.look(f"/search?q=harm&site={written}&lang={written}&type={written}&time={written}", wait=False)
    witness.look(f"/search?q={written}")
    assert witness.page.input_value("#q") == " ".join(query.split())[:1000]


def test_hostile_suggestions_are_only_shown(witness: Witness) -> None:
    """Suggested titles are text, and choosing one searches for it."""
    witness.look("/")
    witness.page.locator("#q").press_sequentially("har")
    witness.page.wait_for_selector("[role=option]")
    witness.page.keyboard.press("ArrowDown")
    witness.page.keyboard.press("Enter")
    witness.page.wait_for_url("**/search?q=*")
    witness.page.wait_for_load_state("networkidle")
    assert witness.page.evaluate("window.__hacked") is None
    assert witness.trouble == []
