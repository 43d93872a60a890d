"""Crawl a site into a data folder and search it: a small site on loopback, or one that you pass.

python examples/crawl_and_search.py
python examples/crawl_and_search.py https://example.org/docs/ "consumer lag" me@example.org
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import vedette

PAGES = {
    "index.html": "<title>Harbour notes</title><a href=tides.html>Tides</a> <a href=cranes.html>Cranes</a>",
    "tides.html": """<title>Tides</title><p>High water comes twice a day, and the ferry waits for it at the old pier,
        since the channel is too shallow at other hours and the sand bank moves a little every winter.</p>""",
    "cranes.html": """<title>Cranes</title><p>Three cranes unload containers from barges that come down the river; the
        oldest one still has its steam boiler, which school classes may visit on the first Sunday of May.</p>""",
}


@contextmanager
def serve_pages() -> Iterator[str]:
    """Serve the pages on a free port of loopback, in another process."""
    with tempfile.TemporaryDirectory() as folder:
        for name, page in PAGES.items():
            (Path(folder) / name).write_text(f"<!doctype html>{page}", encoding="utf-8")
        command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout is not None
            port = server.stdout.readline().split(" port ")[1].split()[0]
            try:
                yield f"http://127.0.0.1:{port}/"
            finally:
                server.terminate()


def crawl_and_search(site: str, query: str, contact: str | None = None) -> None:
    """Crawl at most 100 pages of a site, and print the results of a query."""
    with tempfile.TemporaryDirectory() as data:
        folder = vedette.open_folder(Path(data) / "vedette-data")
        folder.add_site(site, scope="prefix", allow_private=contact is None)
        summary = folder.crawl(max_pages=100, contact=contact, delay="200ms" if contact is None else None)
        print(f"{summary.ending}: {summary.pages} pages in {summary.seconds:.1f} s")
        for result in folder.search(query).results:
            print(f"{result.title}  {result.url}\n    {result.snippet.text}")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        crawl_and_search(*sys.argv[1:])
    else:
        with serve_pages() as url:
            crawl_and_search(url, "ferry")
