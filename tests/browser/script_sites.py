"""Sites for rendering tests on loopback: an application, a manual, a static site, and hostile scripts.

The application is one page for every URL, with history routing; its text is loaded by ``fetch``, and the second half of
each list only on scrolling. The manual has its text in a template, and its links have a part that the script fills in.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ARTICLES", "CHAPTERS", "HOSTILE", "ScriptSites", "article_word", "serve_sites"]

ARTICLES, PER_LIST = 6, 3
SHELL = '<!doctype html><html lang="en"><title>Kettles</title><div id="app"></div><script src="/app.js"></script>'
APP = """
const app = document.getElementById("app");
const load = path => fetch(path).then(answer => answer.json());
const link = one => `<li><a href="${one.href}">${one.title}</a></li>`;
async function list(number) {
  const data = await load(`/data/list-${number}.json`);
  app.innerHTML = `<h1>${data.title}</h1><p>${data.text}</p><ul>${data.first.map(link).join("")}</ul>
    <div style="height: 4000px"></div><ul id="more"></ul>`;
  new IntersectionObserver(async (seen, self) => {
    if (!seen.some(one => one.isIntersecting)) return;
    self.disconnect();
    const more = await load(`/data/more-${number}.json`);
    document.getElementById("more").innerHTML = more.map(link).join("");
  }).observe(document.getElementById("more"));
}
async function article(number) {
  const data = await load(`/data/article-${number}.json`);
  document.title = data.title;
  app.innerHTML = `<h1>${data.title}</h1><p>${data.text}</p><p><a href="/">All articles</a></p>`;
}
function route() {
  const found = location.pathname.match(/^\\/article\\/(\\d+)$/);
  const listed = location.pathname.match(/^\\/list\\/(\\d+)$/);
  return found ? article(found[1]) : list(listed ? listed[1] : 0);
}
addEventListener("click", event => {
  const target = event.target.closest("a");
  if (target) { event.preventDefault(); history.pushState(null, "", target.href); route(); }
});
addEventListener("popstate", route);
fetch("/private/secret.json").catch(() => 0);
route();
"""
CHAPTERS = 4
MANUAL = """<!doctype html><title>Manual</title><div id="content"></div>
<script>const context = { version: "7" };</script>
<script id="template" type="text/x-handlebars-template"><h1>%(title)s</h1><p>%(text)s</p>%(links)s</script>
<script>const find = id => document.getElementById(id);
find("content").innerHTML = find("template").innerHTML.replace(/\\{\\{(\\w+)\\}\\}/g, (_, name) => context[name]);
</script>"""
HOSTILE = {
    "/loop": "for (;;) {}",
    "/heap": "const kept = []; for (;;) kept.push({ one: [Math.random(), Math.random()] });",
    "/buffers": "const kept = []; for (;;) { const one = new Uint8Array(64 << 20); one.fill(7); kept.push(one); }",
    "/popups": """for (let n = 0; n < 5; n++) { window.open("http://elsewhere.test/pop"); alert(n); }
      const one = document.createElement("a"); one.target = "_blank"; one.href = "http://elsewhere.test/blank";
      document.body.append(one); one.click();""",
    "/private": """for (const url of ["http://127.0.0.1:{port}/inside", "http://169.254.169.254/latest/meta-data",
      "http://hostile.test:{port}/other-port", "http://elsewhere.test/x", "file:///etc/passwd"])
        fetch(url).catch(() => 0);
      new Image().src = "http://elsewhere.test/pixel"; navigator.sendBeacon("/beacon", "x");
      fetch("/posted", { method: "POST", body: "x" }).catch(() => 0);
      try { new WebSocket("ws://127.0.0.1:{port}/socket"); new EventSource("/stream"); } catch (error) {}
      const frame = document.createElement("iframe"); frame.src = "/frame"; document.body.append(frame);""",
    "/worker": """navigator.serviceWorker?.register("/worker.js");
      new Worker("/worker.js"); new SharedWorker("/shared.js");""",
    "/moves": 'location.href = "/moved-by-script";',
}
TAIL = """
document.body.insertAdjacentHTML("beforeend", "<p>" + "Words that only a script can write here. ".repeat(8));"""


def article_word(number: int) -> str:
    """Return a word that only one article has."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return "kettle" + letters[number % 26] * 3 + letters[number // 26] * 2


@dataclass(slots=True)
class ScriptSites:
    """The served sites: their port, and every request, as host and target."""

    port: int
    requests: list[tuple[str, str]] = field(default_factory=list)

    def list_targets(self, host: str) -> list[str]:
        """Return the targets requested from a host."""
        return [target for name, target in self.requests if name == host]


def _answer(host: str, target: str, port: int, articles: int) -> tuple[int, str, str]:
    if target == "/robots.txt":
        return 200, "text/plain", "User-agent: *\nDisallow: /private/\n"
    if host in {"app.test", "manual.test"}:
        return _answer_app(target, articles) if host == "app.test" else _answer_manual(target)
    if host == "static.test":
        links = "".join(f'<a href="/page/{n}">Page {n}</a> ' for n in range(10))
        text = f"A page of plain words about {target.replace('/', ' ')} that needs no script at all. " * 5
        return 200, "text/html", f"<title>{target}</title><p>{text}</p>{links}<script>console.log(1)</script>"
    if host == "hostile.test" and target in HOSTILE:
        script = HOSTILE[target].replace("{port}", str(port))
        return 200, "text/html", f'<title>{target}</title><body><div id="app"></div><script>{script}{TAIL}</script>'
    if host == "hostile.test" and target == "/":
        links = "".join(f'<p><a href="{path}">to {path}</a></p>' for path in HOSTILE)
        return 200, "text/html", f"<h1>Links</h1>{links}"
    return 404, "text/html", "<h1>Not found</h1>"


def _answer_app(target: str, articles: int) -> tuple[int, str, str]:
    if target == "/app.js":
        return 200, "text/javascript", APP
    name, _, number = target.removeprefix("/data/").removesuffix(".json").partition("-")
    if not target.startswith("/data/"):
        return 200, "text/html; charset=utf-8", SHELL
    word = article_word(int(number))
    pot = word.replace("kettle", "teapot")  # lists differ in words too, and have none of an article
    data: Any = {"title": f"From {pot} on", "text": f"A list of what was written since {pot} was new. " * 3}
    first = int(number) * PER_LIST
    links = [{"href": f"/article/{n}", "title": f"Article {n}"} for n in range(first, first + PER_LIST)]
    if name == "list":
        data["first"] = links[:1]
    elif name == "more":
        more = [{"href": f"/list/{int(number) + 1}", "title": "Next"}] if first + PER_LIST < articles else []
        data = links[1:] + more
    else:
        data = {"title": f"On {word}", "text": f"The {word} boils water faster than most others of its kind. " * 4}
    return 200, "application/json", json.dumps(data)


def _answer_manual(target: str) -> tuple[int, str, str]:
    if target != "/" and target not in [f"/7/chapter/{number}" for number in range(CHAPTERS)]:
        return 404, "text/html", "<h1>Not found</h1>"
    links = "".join(
        f'<p><a href="/{{{{version}}}}/chapter/{number}">Chapter {number}</a></p>' for number in range(CHAPTERS)
    )
    text = f"A page about {target.replace('/', ' ')} and what is to be known of it, in a good many plain words. " * 5
    return 200, "text/html", MANUAL % {"title": f"Manual of {target}", "text": text, "links": links}


@contextmanager
def serve_sites(articles: int = ARTICLES) -> Iterator[ScriptSites]:
    """Serve the sites on a loopback port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host = (self.headers.get("host") or "").partition(":")[0]
            sites.requests.append((host, self.path))
            status, kind, body = _answer(host, self.path, sites.port, articles)
            data = body.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            sites.requests.append(("POST", self.path))
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        sites = ScriptSites(server.server_port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield sites
        server.shutdown()
