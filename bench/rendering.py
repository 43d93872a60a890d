"""What does rendering yield, what does it cost, and what escapes the browser?

Three sites on loopback, crawled with default settings except for delays of 50 ms: an application with history routing,
whose text comes by ``fetch`` and whose lists fill on scrolling; a static site; and one whose scripts are hostile. The
truth is known: the number of articles, and every request that any server saw.

    python bench/rendering.py [ARTICLES]
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from tests.browser.script_sites import HOSTILE, ScriptSites, article_word, serve_sites

import vedette
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.net.renderer import explain_missing_browser
from vedette.engine.scheduling.rendering_model import RENDERING_KEY

SETTINGS = '[crawl]\ndelay = "50ms"\naddress_delay = "10ms"\n'
# What may be requested of the hostile site: its pages, what every crawl tries, and the scripts of its workers.
ROUTES = {
    "/",
    "/robots.txt",
    "/sitemap.xml",
    "/sitemap_index.xml",
    "/frame",
    "/moved-by-script",
    "/worker.js",
    "/shared.js",
    *HOSTILE,
}


def crawl(host: str, sites: ScriptSites, folder: Path) -> dict[str, Any]:
    """Crawl one site and return its cost: pages, requests, seconds, renderings."""
    (folder / "vedette.toml").write_text(SETTINGS)
    options = ["--connect-to", f"*:80=127.0.0.1:{sites.port}", "--allow-private", "--json"]
    command = [sys.executable, "-m", "vedette", "crawl", f"http://{host}/", "--data", str(folder / "data"), *options]
    began_s, before = time.monotonic(), len(sites.requests)
    done = subprocess.run([*command, "--config", str(folder / "vedette.toml")], capture_output=True, check=True)
    told = json.loads(done.stdout)
    with open_state_reader(folder / "data") as reader:
        learned = json.loads(reader.store.get_value(RENDERING_KEY) or "{}").get(host, [0, 0, 0.0, 0.0, 0])
    return {
        "site": host,
        "pages": told["pages"],
        "requests": len(sites.requests) - before,
        "seconds": round(time.monotonic() - began_s, 1),
        "rendered": learned[0],
        "brought_text": learned[1],
        "seconds_each": round(learned[2], 2),
        "requests_each": round(learned[3], 2),
    }


def count_found(folder: Path, articles: int) -> int:
    """Count the articles that are found by the word that only they have."""
    opened = vedette.open_folder(folder / "data")
    results = (opened.search(article_word(number)).results for number in range(articles))
    return sum([one.url for one in found] == [f"http://app.test/article/{n}"] for n, found in enumerate(results))


def main() -> None:
    """Crawl the three sites; print a table, and one JSON object as the last line."""
    if missing := explain_missing_browser():
        sys.exit(missing)
    articles = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    rows: list[dict[str, Any]] = []
    with serve_sites(articles) as sites, tempfile.TemporaryDirectory() as name:
        for host in ("app.test", "static.test", "hostile.test"):
            folder = Path(name) / host
            folder.mkdir()
            rows.append(crawl(host, sites, folder))
            print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
        found = count_found(Path(name) / "app.test", articles)
        hosts = {"app.test", "static.test", "hostile.test"}
        escaped = [one for one in sites.requests if one[0] not in hosts]
        escaped += [one for one in sites.requests if one[0] == "hostile.test" and one[1] not in ROUTES]
    print(f"articles found {found} of {articles}; requests that got out of the browser {len(escaped)}: {escaped}")
    print(json.dumps({"rows": rows, "found": found, "articles": articles, "escaped": len(escaped)}))


if __name__ == "__main__":
    main()
