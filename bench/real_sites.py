"""Are real sites crawled completely, and how many fetches are wasted?

Built sites from git trees (``VEDETTE_HISTORIES`` names the folder of repositories) are served on loopback under their
own names, over HTTP and TLS, with their redirects, gzip, ETags and error pages, and crawled by ``vedette crawl`` with
default settings, one site at a time; only the delays between requests are zero, since no real server is involved. The
truth is an independent walk over the links of the same tree (``peers/link_walk.py``). It runs no scripts, and without
``--render`` neither does the crawler, as after a default install.

    reachable   HTML files that links lead to from the start, robots.txt obeyed
    fetched     those of them that were sent to the crawler and that it counts as fetched
    missing     the others, by the reason that the crawler gives for their URLs
    wasted      requests for a file that was sent before (by any of its URLs), and requests for what is not there and
                what neither a page nor the site's own sitemap names; not robots.txt, nor links of the site that are
                broken or redirect

The synthetic web *half*, which is full of endless traps, is crawled at the end by the same program. The bench fails if
a site has less than 99.5% of its pages or wastes more than 10% of its requests; of *half*, all pages and 5%.

    VEDETTE_HISTORIES=FOLDER python bench/real_sites.py [--only NAME …] [--together] [--render] [--keep FOLDER]
    VEDETTE_HISTORIES=FOLDER python bench/real_sites.py --in-memory [--only NAME …] [--list N]

``--only half`` needs no repositories. ``--in-memory`` crawls with the live coordinator and fetchers, but without
sockets, an index or a browser: a thousand pages cost some ten seconds of CPU time, which is the time it prints.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.peers.half_web import crawl_half
from bench.peers.link_walk import Walk, walk_site
from bench.peers.memory_crawl import crawl_in_memory
from bench.peers.site_server import Request, Served, serve_trees
from bench.peers.site_trees import SITES, RealSite, SiteTree, load_tree

LEAST_FETCHED, MOST_WASTED = 0.995, 0.10
HALF, HALF_SEED, HALF_MOST_WASTED = "half", 3, 0.05
SETTINGS = '[crawl]\ndelay = "0s"\naddress_delay = "0s"\nca_file = "{ca_file}"\nbrowser = "{browser}"\n'
MOST_S = 7200.0  # of one crawl; beyond it something hangs, even on a busy machine


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one site."""

    host: str
    reachable: int
    fetched: int
    missing: dict[str, int]
    requests: int
    kinds: dict[str, int]
    seconds: float
    ending: str

    @property
    def share(self) -> float:
        """The share of reachable pages that were fetched."""
        return self.fetched / self.reachable

    @property
    def wasted(self) -> int:
        """The requests that were wasted."""
        return sum(times for kind, times in self.kinds.items() if kind.startswith("wasted"))

    @property
    def is_good(self) -> bool:
        """Whether the site came out whole, and cheaply."""
        least, most = (1.0, HALF_MOST_WASTED) if self.host == HALF else (LEAST_FETCHED, MOST_WASTED)
        return self.share >= least and self.wasted <= most * self.requests

    def __str__(self) -> str:
        waste = self.wasted / max(1, self.requests)
        missing = ", ".join(f"{times} {reason}" for reason, times in self.missing.items()) or "-"
        return (
            f"{self.host:24}{self.reachable:6}{self.fetched:6}{self.share:8.1%}{self.requests:9}{waste:8.1%}"
            f"{self.seconds:7.0f} s  {missing}"
        )


def crawl(folder: Path, starts: Sequence[str], served: Served, *, renders: bool) -> dict[str, Any]:
    """Crawl sites as a user would, and return the summary."""
    browser = "sandboxed" if renders else "none"
    (folder / "vedette.toml").write_text(SETTINGS.format(ca_file=served.ca_file, browser=browser))
    ways = [word for way in served.connect_to for word in ("--connect-to", way)]
    command = [*vedette("crawl", folder), *starts, "--allow-private", "--json", "--contact", "bench@example.org", *ways]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, timeout=MOST_S)
    if not done.stdout:
        raise SystemExit(f"the crawl of {starts[0]} failed with code {done.returncode}")
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return summary


def vedette(verb: str, folder: Path) -> list[str]:
    """The command for a data folder."""
    words = [*verb.split(), "--config", str(folder / "vedette.toml"), "--data", str(folder / "data")]
    return [sys.executable, "-m", "vedette", *words]


def read_states(folder: Path) -> dict[str, dict[str, Any]]:
    """The crawler's data on each URL, by its plain spelling."""
    done = subprocess.run([*vedette("export urls", folder), "--json"], stdout=subprocess.PIPE, check=True)
    return by_spelling(map(json.loads, done.stdout.splitlines()))


def by_spelling(known: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The data on each URL by its plain spelling; of two, the fetched one."""
    return {plain(each["url"]): each for each in sorted(known, key=lambda each: each["state"] == "fetched")}


def plain(url: str) -> str:
    """A URL without what two spellings of it can differ in: escapes and scheme."""
    return unquote(url).partition("://")[2]


def sort_requests(log: Sequence[Request], walk: Walk, tree: SiteTree) -> Counter[str]:
    """The sort of each request: a page, another file, a redirect or an error of the site's own, or wasted."""
    listed = re.findall(rb"<loc>\s*([^<]+?)\s*</loc>", tree.files.get("sitemap.xml", b""))
    named = [*walk.found_on, *(urljoin(tree.site.start, url.decode()) for url in listed)]
    asked, seen, kinds = {plain(url) for url in named}, set(), Counter[str]()
    for request in log:
        if request.file == "robots.txt":
            kind = "robots.txt"
        elif request.file and request.file in seen:
            kind = "wasted: the same again"
        elif request.file:
            kind = "page" if request.is_page else "other file"
            seen.add(request.file)
        elif plain(request.url) in asked:
            kind = "redirect" if request.status < 400 else "broken link"
        else:
            kind = "wasted: nothing links to it"
        kinds[kind] += 1
    return kinds


def reasons_of(urls: Sequence[str], states: Mapping[str, dict[str, Any]]) -> str:
    """Why a page is missing, by the data on its URLs; the shortest reason of several."""
    known = [states[plain(url)] for url in urls if plain(url) in states]
    if not known:
        return "never found"
    said = [each.get("note") or each["state"] for each in known if each["state"] != "fetched"]
    return min(said, key=len).partition(":")[0] if said else "fetched, but not sent"


def judge(
    tree: SiteTree, log: Sequence[Request], states: Mapping[str, dict[str, Any]], listed: int, took: Mapping[str, Any]
) -> Row:
    """Compare the fetched pages of a site with the reachable ones."""
    walk, mine = walk_site(tree), [request for request in log if request.host == tree.site.host]
    sent = {request.file for request in mine if request.is_page and request.status == 200}
    counted = {plain(url) for url, known in states.items() if known["state"] == "fetched"}
    missing: dict[str, list[str]] = {}
    for file, urls in walk.pages.items():
        if file not in sent:
            missing.setdefault(reasons_of(urls, states), []).append(urls[0])
        elif not any(plain(url) in counted for url in urls) and not _has_other_url(file, states, tree):
            missing.setdefault(f"sent, then: {reasons_of(urls, states)}", []).append(urls[0])
    for reason, urls in missing.items():
        for url in urls[:listed]:
            print(f"  {reason}: {url} (from {walk.found_on[url]})")
    kinds = sort_requests(mine, walk, tree)
    if listed:
        print("  requests:", dict(kinds.most_common()))
    counts = {reason: len(urls) for reason, urls in sorted(missing.items(), key=lambda item: -len(item[1]))}
    fetched = len(walk.pages) - sum(counts.values())
    return Row(
        tree.site.host, len(walk.pages), fetched, counts, len(mine), dict(kinds), took["seconds"], took["ending"]
    )


def _has_other_url(file: str, states: Mapping[str, dict[str, Any]], tree: SiteTree) -> bool:
    """Whether the page was fetched by a URL that no link has, such as one of a sitemap."""
    url = f"{tree.site.host}{tree.site.mount}{file}"
    spellings = (url, url.removesuffix("index.html"), url.removesuffix(".html"))
    return any(states.get(each, {}).get("state") == "fetched" for each in spellings)


def choose_sites(histories: Path, only: Sequence[str]) -> list[RealSite]:
    """The requested sites whose repositories are there; the others are named."""
    chosen = [site for site in SITES if not only or any(name in site.start for name in only)]
    there = [site for site in chosen if (histories / site.repo).exists()]
    for site in chosen:
        if site not in there:
            print(f"{site.host:24}left out: {histories / site.repo} is not there")
    return there


def run(histories: Path, folder: Path, arguments: argparse.Namespace) -> Iterator[Row]:
    """Serve and crawl the sites, one after the other or all in one crawl."""
    there = choose_sites(histories, arguments.only)
    for group in [there] if arguments.together else [[site] for site in there]:
        trees = [load_tree(histories, site) for site in group]
        place = folder / group[0].host / group[0].mount.strip("/")  # some sites share a host
        place.mkdir(parents=True)
        with serve_trees(trees, place) as served:
            began_s = time.monotonic()
            summary = crawl(place, [site.start for site in group], served, renders=arguments.render)
            took = {"seconds": time.monotonic() - began_s, "ending": summary["ending"]}
            states = read_states(place)
            for tree in trees:
                yield judge(tree, served.log, states, arguments.list, took)


def run_in_memory(histories: Path, only: Sequence[str], listed: int) -> Iterator[Row]:
    """Crawl the sites in memory, one after the other."""
    for site in choose_sites(histories, only):
        tree, began_s = load_tree(histories, site), time.process_time()
        log, states = crawl_in_memory(tree)
        took = {"seconds": time.process_time() - began_s, "ending": "done"}
        yield judge(tree, log, by_spelling(states), listed, took)


def run_half(folder: Path, listed: int) -> Row:
    """Crawl the synthetic web."""
    folder.mkdir(parents=True)
    began_s = time.monotonic()
    done = crawl_half(folder, HALF_SEED)
    took_s = time.monotonic() - began_s
    for url in done.missing[:listed]:
        print(f"  missing: {url}")
    kinds = {kind.replace("waste:", "wasted:"): times for kind, times in done.sorts.items()}
    missing = {"not fetched": len(done.missing)} if done.missing else {}
    fetched = done.pages - len(done.missing)
    return Row(HALF, done.pages, fetched, missing, done.sorts.total(), kinds, took_s, done.ending)


def run_all(folder: Path, arguments: argparse.Namespace) -> Iterator[Row]:
    """Crawl the requested sites."""
    histories, only = os.environ.get("VEDETTE_HISTORIES"), arguments.only
    if histories and arguments.in_memory:
        yield from run_in_memory(Path(histories), only, arguments.list)
    elif histories:
        yield from run(Path(histories), folder, arguments)
    elif only != [HALF]:
        raise SystemExit("VEDETTE_HISTORIES must name a folder of repositories of built sites; see bench/README.md")
    if not arguments.in_memory and (not only or HALF in only):
        yield run_half(folder / HALF, arguments.list)


def main() -> None:
    """Crawl the sites, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only hosts with this in their names")
    parser.add_argument("--together", action="store_true", help="all sites in one crawl")
    parser.add_argument("--render", action="store_true", help="render pages that need it")
    parser.add_argument("--in-memory", action="store_true", help="without sockets, an index or a browser")
    parser.add_argument("--keep", type=Path, help="leave data folders here")
    parser.add_argument("--list", type=int, default=0, metavar="N", help="print so many missing pages of each reason")
    arguments = parser.parse_args()
    print(f"{'site':24}{'reach':>6}{'got':>6}{'share':>8}{'requests':>9}{'wasted':>8}{'time':>9}  missing")
    with tempfile.TemporaryDirectory() as scratch:
        rows = []
        for row in run_all(arguments.keep or Path(scratch), arguments):
            rows.append(row)
            print(row, flush=True)
    figures = {
        row.host: {
            "reachable": row.reachable,
            "fetched": row.fetched,
            "missing": row.missing,
            "requests": row.requests,
            "wasted": row.wasted,
            "kinds": row.kinds,
            "seconds": round(row.seconds, 1),
            "ending": row.ending,
        }
        for row in rows
    }
    good = bool(rows) and all(row.is_good for row in rows)
    print(json.dumps({"good": good, "sites": figures}))
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
