"""What does a crawled page cost in CPU time: Scrapy, Vedette, and the least that Python can do?

The three take turns on one loopback web: 20 000 pages of 22 kB with 40 links on 200 hosts, served from memory by a
process that is not counted. Scrapy has the settings that its documentation advises for broad crawls, obeys robots.txt
and keeps nothing. Vedette does all that it does by default: robots.txt, normal forms, every step of parsing, copies,
state and archive. The bare loop around libcurl finds links and remembers them, and nothing else.

CPU time is user and system time of a crawler's whole process tree, from its start to its end, so that start-up counts
for each. All crawl to the end, and the server's own count, the crawler's and the archive's must agree, else the bench
fails. Scrapy crawls a tenth of the hosts, unless ``--full``: links stay within ten hosts, so this is a whole crawl of
a smaller web with as many pages, links and robots.txt files to a host. The last line is one JSON object.

    python bench/crawl.py [--pages N] [--scrapy-pages N] [--full] [--rounds R] [--only NAME] [--keep FOLDER]
"""

import argparse
import http.client
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from vedette.adapters.archive.warc_reader import Damage, scan_warc
from vedette.compiled import get_form

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".venv-peers"
DISTRICT_HOSTS, DISTRICT_PAGES = 10, 1000
SETTINGS = '[crawl]\ndelay = "0s"\naddress_delay = "0s"\n'
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LOOK_EVERY_S = 0.05
LONGEST_S_PER_PAGE = 1.0  # many times what the slowest needs on a busy machine; beyond it something hangs
CRAWLERS = ("scrapy", "vedette", "pycurl")
# The names of processes, without numbers, and what the table calls them.
KINDS = {"keeper": "coordinator", "w": "fetchers", "indexer": "indexer"}


class Disagreement(Exception):
    """Two counts that should be the same are not, so that the figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl: its pages and its cost, by kind of process if there are several."""

    pages: int
    cpu_s: float
    wall_s: float
    split_s: dict[str, float] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def cpu_s_per_1000(self) -> float:
        """The figure that is compared."""
        return 1000 * self.cpu_s / self.pages


@dataclass(frozen=True, slots=True)
class Web:
    """The loopback web that is being served."""

    port: int
    median_bytes: float

    def starts(self, pages: int) -> list[str]:
        """The start pages of as many hosts as have that many pages."""
        hosts = pages // DISTRICT_PAGES * DISTRICT_HOSTS
        return [f"http://127.1.0.{host + 1}:{self.port}/" for host in range(hosts)]

    def counts(self) -> dict[str, int]:
        """The pages served since the last call."""
        connection = http.client.HTTPConnection("127.1.0.1", self.port, timeout=30)
        connection.request("GET", "/counts")
        told: dict[str, int] = json.loads(connection.getresponse().read())
        connection.close()
        return told


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block."""
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def served(pages: int) -> Iterator[Web]:
    """The web, generated and listening."""
    command = [sys.executable, "-m", "bench.peers.web", str(pages // DISTRICT_PAGES)]
    with ended(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)) as process:
        assert process.stdout is not None
        yield Web(**json.loads(process.stdout.readline()))


def children_cpu_s() -> float:
    """CPU seconds of all processes that have ended and been waited for, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def split_s(pid: int) -> dict[str, float]:
    """CPU seconds of the children of a process so far, by kind."""
    spent: dict[str, float] = {}
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            name, _, rest = Path(f"/proc/{child}/stat").read_text(encoding="utf-8").partition("(")[2].rpartition(")")
            kind = KINDS.get(name.removeprefix("vedette ").rstrip("0123456789"), "others")
            spent[kind] = spent.get(kind, 0.0) + sum(map(int, rest.split()[11:15])) / TICKS_PER_S
    return spent


def measured(command: Sequence[str], web: Web, pages: int) -> Run:
    """Stop if a count is wrong."""
    web.counts()
    before_s, started_s = children_cpu_s(), time.monotonic()
    spent: dict[str, float] = {}
    with ended(subprocess.Popen(command, stdout=subprocess.PIPE)) as process:
        while process.poll() is None:
            spent.update({kind: max(used, spent.get(kind, 0.0)) for kind, used in split_s(process.pid).items()})
            time.sleep(LOOK_EVERY_S)
            agree("a crawl in reasonable time", time.monotonic() - started_s < LONGEST_S_PER_PAGE * pages, True)
        wall_s, cpu_s = time.monotonic() - started_s, children_cpu_s() - before_s
        lines = process.stdout.read().splitlines() if process.stdout else []
    if process.returncode or not lines:
        raise Disagreement(f"{command[0]} ended with {process.returncode}, and said what stands above")
    agree("CPU time of the parts, at most that of the whole", sum(spent.values()) <= cpu_s * 1.01, True)
    told = json.loads(lines[-1])
    served = web.counts()
    agree_on_pages(told["pages"], served, pages)
    told["sitemaps"] = served["sitemaps"]
    return Run(pages, cpu_s, wall_s, spent, told)


def agree(what: str, found: object, wanted: object) -> None:
    """The crawler, the server and the plan agree on the pages, each requested once."""
    if found != wanted:
        raise Disagreement(f"{what}: {found}, not {wanted}")


def agree_on_pages(told: int, served: dict[str, int], pages: int) -> None:
    """A crawl into a separate folder, whose archive is then read."""
    agree("pages by the server's count", served["pages"], pages)
    agree("requests for pages", served["page_requests"], pages)
    agree("requests for what is not there", served["missing"], 0)
    agree("pages by the crawler's count", told, pages)


def crawl_vedette(web: Web, pages: int, folder: Path) -> Run:
    """Reaching a limit would end the crawl before requests in flight are finished."""
    (folder / "vedette.toml").write_text(SETTINGS)
    options = ["--allow-private", "--json", "--config", str(folder / "vedette.toml"), "--data", str(folder / "data")]
    starts = web.starts(pages)
    # A limit that is reached would end the crawl before what is under way is in.
    command = [sys.executable, "-m", "vedette", "crawl", *starts, *options, "--pages", str(pages + 1)]
    run = measured(command, web, pages)
    run.told["warc_records"] = archived(folder / "data" / "warc")
    agree("pages in the archive", run.told["warc_records"], pages)
    agree("URLs known, sitemaps too", run.told["urls_known"], pages + run.told["sitemaps"])
    return run


def archived(folder: Path) -> int:
    """How many pages the archive holds."""
    found = 0
    for path in sorted(folder.glob("*.warc.gz")):
        for record in scan_warc(path):
            if isinstance(record, Damage):
                raise Disagreement(f"{record.file} is damaged at {record.offset}: {record.why}")
            found += record.status == 200 and not record.url.endswith("/robots.txt")
    return found


def crawl_scrapy(web: Web, pages: int, _folder: Path) -> Run:
    """A crawl with the spider beside this file."""
    return measured(
        [str(PEERS / "bin" / "python"), str(ROOT / "bench/peers/spider.py"), *web.starts(pages)], web, pages
    )


def crawl_pycurl(web: Web, pages: int, _folder: Path) -> Run:
    """A crawl with the bare loop beside this file."""
    return measured([sys.executable, str(ROOT / "bench/peers/curl_loop.py"), *web.starts(pages)], web, pages)


def ready_scrapy() -> None:
    """The newest Scrapy, in a separate environment; installed if it is missing."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    if subprocess.run([str(python), "-c", "import scrapy"], check=False, capture_output=True).returncode:
        print("Installing Scrapy into .venv-peers (once)", file=sys.stderr)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "scrapy"], check=True)


def turn(name: str, web: Web, pages: int, keep: Path | None) -> Run:
    """One crawl by one crawler."""
    crawl = {"scrapy": crawl_scrapy, "vedette": crawl_vedette, "pycurl": crawl_pycurl}[name]
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        return crawl(web, pages, keep)
    with tempfile.TemporaryDirectory() as folder:
        return crawl(web, pages, Path(folder))


def row(name: str, run: Run) -> str:
    """A line of the table."""
    parts = ", ".join(f"{kind} {1000 * used / run.pages:.3f}" for kind, used in sorted(run.split_s.items()))
    return f"{name:10}{run.pages:>8}{run.cpu_s:>9.1f}{run.wall_s:>9.1f}{run.cpu_s_per_1000:>12.3f}   {parts}".rstrip()


def figures(rounds: list[dict[str, Run]]) -> dict[str, Any]:
    """Medians over the rounds; ratios are taken within a round, since a busy minute slows its neighbors alike."""
    found: dict[str, Any] = {}
    for name in rounds[0]:
        found[f"{name}_cpu_s_per_1000"] = round(median(each[name].cpu_s_per_1000 for each in rounds), 3)
    if "vedette" in rounds[0]:
        found |= vedette_figures([each["vedette"] for each in rounds])
        for name, key in (("scrapy", "ratio"), ("pycurl", "pycurl_ratio")):
            if name in rounds[0]:
                ratios = [each[name].cpu_s_per_1000 / each["vedette"].cpu_s_per_1000 for each in rounds]
                found[key] = round(median(ratios), 3)
    if "scrapy" in rounds[0]:
        found["scrapy_version"] = rounds[0]["scrapy"].told["version"]
        found["scrapy_pages"] = rounds[0]["scrapy"].pages
    return found


def vedette_figures(runs: list[Run]) -> dict[str, Any]:
    """What only Vedette's own runs tell."""
    split = {
        f"vedette_{kind}_cpu_s_per_1000": round(median(1000 * run.split_s[kind] / run.pages for run in runs), 3)
        for kind in sorted(runs[0].split_s)
    }
    told = {key: runs[0].told[key] for key in ("warc_records", "urls_known")}
    return {**split, "pages": runs[0].pages, **told}


def options() -> argparse.Namespace:
    """The requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000, help="pages for Vedette and pycurl, in thousands")
    parser.add_argument("--scrapy-pages", type=int, default=2_000, help="pages for Scrapy, in thousands")
    parser.add_argument("--full", action="store_true", help="Scrapy crawls as many pages as the others")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=CRAWLERS, help="run one of them")
    parser.add_argument("--keep", type=Path, help="leave what Vedette wrote there, a folder for each round")
    chosen = parser.parse_args()
    for pages in (chosen.pages, chosen.scrapy_pages):
        if pages % DISTRICT_PAGES or not DISTRICT_PAGES <= pages <= 20 * DISTRICT_PAGES:
            parser.error(f"{pages} pages: write a whole number of thousands up to 20 000")
    return chosen


def main() -> None:
    """Take turns, print the table and the JSON line."""
    chosen = options()
    names = (chosen.only,) if chosen.only else CRAWLERS
    wanted = dict.fromkeys(CRAWLERS, chosen.pages)
    wanted["scrapy"] = chosen.pages if chosen.full else min(chosen.scrapy_pages, chosen.pages)
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    if "scrapy" in names:
        ready_scrapy()
    rounds: list[dict[str, Run]] = []
    with served(max(wanted[name] for name in names)) as web:
        print(f"Median answer {web.median_bytes / 1000:.1f} kB; CPU s of whole process trees, start-up included")
        print(f"{'':10}{'pages':>8}{'CPU s':>9}{'wall s':>9}{'per 1 000':>12}   parts per 1 000")
        for number in range(chosen.rounds):
            rounds.append({})
            for name in names:
                keep = chosen.keep and chosen.keep / f"{name}-{number}"
                rounds[-1][name] = turn(name, web, wanted[name], keep)
                print(row(name, rounds[-1][name]), flush=True)
    print(json.dumps(figures(rounds) | {"form": get_form()}))


if __name__ == "__main__":
    try:
        main()
    except Disagreement as error:
        sys.exit(f"bench: {error}")
