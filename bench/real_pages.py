"""Can we read what people really published, over twenty years, and what does it cost?

Pages come from the git histories of real web sites (``VEDETTE_HISTORIES`` names the folder of bare repositories): every
version of every page that was ever committed, each once, as many from each site as from any other, spread over the
charsets that they name, the bytes that they have, years and folders. Each is read as if a server had sent it without a
charset, on the way that a fetched page takes. Four things count as failures:

    broken      an exception
    misnamed    the head names a charset (Lexbor finds it) and we take another one, even if the text is the same
    misread     the bytes are valid in the charset that the head names, and the text is not what they say
    untitled    Lexbor finds a title, and we find none or one that differs in more than white space

Cost is CPU time of the parsing alone. ``--sample N --into FOLDER`` also writes this many of the pages, spread in the
same way, and a table of the parsed content, for a person or a browser to check. The last line is one JSON object; the
bench fails if any page failed.

    VEDETTE_HISTORIES=FOLDER python bench/real_pages.py [--pages N] [--sample N --into FOLDER]
"""

import argparse
import codecs
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import process_time
from typing import TypeVar

import xxhash
from selectolax.lexbor import LexborHTMLParser

from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import Content, FetchSuccess, FetchTask
from vedette.model import FetchResponse, Site
from vedette.parse.html.page import parse_page
from vedette.parse.text.charsets import DecodedText, decode_page

# Repository, the folder of its built pages, and the host that serves them.
SITES = (
    ("apache+kafka-site", "", "kafka.apache.org"),
    ("apache+incubator", "content/", "incubator.apache.org"),
    ("apache+flink-web", "content/", "flink.apache.org"),
    ("boostorg+website", "", "www.boost.org"),
)
Thing = TypeVar("Thing")
NOW_S = 1.8e9  # later than every page
HEAD_BYTES = 8192  # where a page names its charset, if it does
LOOKED_AT = 15_000  # versions of a site whose bytes are seen before some are chosen
_IN_CONTENT = re.compile(r"""charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Where a browser takes a label for another charset than Python does.
_AS_ON_THE_WEB = {"iso8859-1": "cp1252", "ascii": "cp1252"}


@dataclass(frozen=True, slots=True)
class Version:
    """A page as it was after a commit."""

    site: str
    host: str
    commit: str
    day: str
    path: str
    blob: str

    @property
    def year(self) -> str:
        """When it was committed."""
        return self.day[:4]

    @property
    def section(self) -> str:
        """The first two folders of its path."""
        return "/".join(self.path.split("/")[:-1][:2])

    @property
    def url(self) -> str:
        """Its URL when served."""
        return f"https://{self.host}/{self.path}"


@dataclass(frozen=True, slots=True)
class Reading:
    """The result for a page; ``failures`` is empty if nothing is wrong."""

    version: Version
    body: bytes
    failures: tuple[str, ...]
    cpu_ms: float = 0.0
    title: str = ""
    charset: str = ""
    source: str = ""
    language: str = ""
    has_date: bool = False
    objections: tuple[str, ...] = ()
    main_share: float = 0.0
    main: str = ""

    @property
    def kind(self) -> tuple[str, str, str]:
        """What makes it easy or hard to parse: its coding, the source of the charset, and a rare language."""
        return coding_of(self.body), self.source, self.language.replace("en", "")


# --- Which pages ---


def git(folder: Path, site: str, *words: str, told: bytes = b"") -> bytes:
    """What git says of a site's repository."""
    command = ["git", "--git-dir", str(folder / site / "repo"), *words]
    return subprocess.run(command, input=told, stdout=subprocess.PIPE, check=True).stdout


def versions_of(folder: Path, site: str, root: str, host: str) -> list[Version]:
    """Every version of every page of a site, each once, at its first commit."""
    wanted = ["--all", "--first-parent", "--reverse", "--diff-filter=AM", "--no-renames", "--raw", "--no-abbrev"]
    log = git(folder, site, "-c", "core.quotePath=false", "log", *wanted, "--format=%H %cs", "--", f"{root}*.htm*")
    found: dict[str, Version] = {}
    commit = day = ""
    for line in log.decode("utf-8", "replace").splitlines():
        if line.startswith(":"):
            about, _, path = line.partition("\t")
            blob = about.split()[3]
            if path.startswith(root) and path.endswith((".html", ".htm")):
                found.setdefault(blob, Version(site, host, commit, day, path.removeprefix(root), blob))
        elif line:
            commit, day = line[:9], line[-10:]
    return list(found.values())


def evenly(things: Sequence[Thing], *kinds: Callable[[Thing], Hashable]) -> list[Thing]:
    """The items in an order whose every prefix has equally many of each kind; kinds finest first."""
    order = list(things)
    for kind in kinds:
        seen: Counter[Hashable] = Counter()
        ranks = []
        for thing in order:
            ranks.append(seen[kind(thing)])
            seen[kind(thing)] += 1
        order = [order[at] for at in sorted(range(len(order)), key=ranks.__getitem__)]
    return order


def shuffled(versions: Iterable[Version]) -> list[Version]:
    """In a fixed order that is independent of their content."""
    return sorted(versions, key=lambda version: xxhash.xxh64_intdigest(version.blob.encode()))


def chosen(folder: Path, site: str, root: str, host: str, most: int) -> list[tuple[Version, bytes]]:
    """This many versions of a site's pages, spread over codings, years and folders, with their bytes."""
    order = evenly(
        shuffled(versions_of(folder, site, root, host)),
        lambda version: (version.year, version.section),
        lambda version: version.year,
    )[:LOOKED_AT]
    codings: dict[str, str] = {}
    for at in range(0, len(order), 500):
        some = order[at : at + 500]
        for version, body in zip(some, bodies_of(folder, site, some), strict=True):
            if body is not None:  # some of the largest may be missing from a copy
                codings[version.blob] = coding_of(body)
    there = [version for version in order if version.blob in codings]
    picked = evenly(there, lambda version: codings[version.blob])[:most]
    return [(version, body or b"") for version, body in zip(picked, bodies_of(folder, site, picked), strict=True)]


def coding_of(body: bytes) -> str:
    """The declared charset of a page, and what its bytes are, such as ``us-ascii over utf-8``."""
    return f"{named_charset(body) or 'nothing'} over {_bytes_of(body)}"


def _bytes_of(body: bytes) -> str:
    if body.isascii():
        return "ascii"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "neither"
    return "utf-8"


def named_charset(body: bytes) -> str:
    """The label of the first meta element in the head that has one, in small letters."""
    for meta in LexborHTMLParser(body[:HEAD_BYTES].decode("latin-1")).css("head meta"):
        given = meta.attributes
        content = given.get("content") if (given.get("http-equiv") or "").lower() == "content-type" else ""
        found = _IN_CONTENT.search(content or "")
        label = given.get("charset") or (found[1] if found else "")
        if label:
            return label.lower()
    return ""


def bodies_of(folder: Path, site: str, versions: Sequence[Version]) -> Iterator[bytes | None]:
    """The bytes of each page; None if the copy does not have them."""
    told = "".join(f"{version.blob}\n" for version in versions).encode()
    content = git(folder, site, "cat-file", "--batch", told=told)
    at = 0
    for _ in versions:
        start = content.index(b"\n", at) + 1
        about = content[at : start - 1].split()
        if about[1] == b"missing":
            at = start
            yield None
        else:
            at = start + int(about[2]) + 1
            yield content[start : at - 1]


# --- How it reads ---


def read(version: Version, body: bytes, links: LinkResolver) -> Reading:
    """Parse a page like a fetched one, and return what is wrong with the result."""
    headers = (("content-type", "text/html"),)
    answer = FetchResponse(version.url, "page", 200, headers, body, NOW_S, NOW_S, "127.0.0.1")
    errand = FetchTask(1, version.host, version.url, "page")
    before_s = process_time()
    try:
        result = parse_outcome(errand, answer, links)
    except Exception as error:  # noqa: BLE001 -- any exception is what we look for
        return Reading(version, body, (f"broken: {error!r}",))
    cpu_ms = (process_time() - before_s) * 1000
    if not isinstance(result, FetchSuccess) or result.content is None:
        return Reading(version, body, ("broken: not read as a page",))
    return _reading(version, body, cpu_ms, result.title, result.content)


def _reading(version: Version, body: bytes, cpu_ms: float, title: str, content: Content) -> Reading:
    decoded = decode_page(body, "text/html")
    page = parse_page(decoded.text)
    return Reading(
        version,
        body,
        tuple(filter(None, (misread(body, decoded), untitled(decoded.text, title)))),
        cpu_ms,
        title,
        content.charset,
        decoded.source,
        content.language,
        content.published_s is not None or content.modified_s is not None,
        tuple(name for name, _ in content.objections),
        len(page.main) / max(1, len(page.text)),
        page.main,
    )


def misread(body: bytes, decoded: DecodedText) -> str:
    """How charset and text differ from the declared one; empty if they do not."""
    if body.startswith(_MARKS):
        return ""
    try:
        codec = codecs.lookup(named_charset(body)).name
    except LookupError:
        return ""
    named = _AS_ON_THE_WEB.get(codec, codec)
    try:
        said = body.decode(named)
    except UnicodeDecodeError:
        said = decoded.text
    if said != decoded.text:
        return f"misread: {named} as {decoded.charset}"
    return "" if named == codecs.lookup(decoded.charset).name else f"misnamed: {named} as {decoded.charset}"


def untitled(text: str, title: str) -> str:
    """How the title differs from the one that Lexbor finds; a page without one may be called by its heading."""
    node = LexborHTMLParser(text).css_first("head > title, body title")
    theirs = " ".join(node.text().split()) if node else ""
    return "" if not theirs or theirs == title else f"untitled: {theirs[:100]!r} read as {title[:100]!r}"


# --- Report ---


def print_site(name: str, readings: Sequence[Reading]) -> dict[str, float | int]:
    """One site, for people; its figures for machines."""
    whole = [reading for reading in readings if reading.charset]
    years = sorted(reading.version.year for reading in readings)
    costs_ms = [reading.cpu_ms for reading in whole]
    figures: dict[str, float | int] = {
        "pages": len(readings),
        "failures": sum(bool(reading.failures) for reading in readings),
        "size_kb_median": round(median(len(reading.body) for reading in readings) / 1000, 1),
        "cpu_ms_median": round(median(costs_ms), 3),
        "cpu_ms_mean": round(sum(costs_ms) / len(costs_ms), 3),
        "cpu_ms_p99": round(quantiles(costs_ms, n=100)[98], 3),
        "dated_share": round(sum(reading.has_date for reading in whole) / len(whole), 3),
        "main_share_median": round(median(reading.main_share for reading in whole), 3),
    }
    print(f"\n{name}, {years[0]} to {years[-1]}")
    for label, figure in figures.items():
        print(f"  {label:18}{figure:10}")
    print(f"  codings     {_counted(coding_of(reading.body) for reading in readings)}")
    print(f"  charsets    {_counted(f'{reading.charset} ({reading.source})' for reading in whole)}")
    print(f"  languages   {_counted(reading.language or 'unknown' for reading in whole)}")
    print(f"  objections  {_counted(name for reading in whole for name in reading.objections) or 'none'}")
    return figures


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common(12))


def failures_of(readings: Sequence[Reading]) -> dict[str, list[str]]:
    """The pages that each failure befell."""
    found: dict[str, list[str]] = {}
    for reading in readings:
        for failure in reading.failures:
            page = reading.version
            found.setdefault(failure, []).append(f"{page.site} {page.commit} {page.path}")
    return found


def write_sample(readings: Sequence[Reading], most: int, into: Path) -> None:
    """Pages as they were sent, numbered, and a table of their parsed content."""
    kinds = {reading.version.blob: reading.kind for reading in readings}
    order = evenly(
        [reading for reading in readings if reading.charset],
        lambda reading: reading.version.path,
        lambda reading: (kinds[reading.version.blob], reading.version.site, reading.version.year),
        lambda reading: (kinds[reading.version.blob], reading.version.site),
        lambda reading: kinds[reading.version.blob],
    )
    into.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, reading in enumerate(order[:most], 1):
        (into / f"{number:02}.html").write_bytes(reading.body)
        (into / f"{number:02}.main.txt").write_text(reading.main, "utf-8")
        page = reading.version
        about = (page.site, page.day, page.commit, page.path)
        rows.append((f"{number:02}", *about, reading.charset, reading.source, reading.language, reading.title))
    (into / "sample.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")


def main() -> None:
    """Choose, read, compare; print the tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--sample", type=int, default=50)
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    if "VEDETTE_HISTORIES" not in os.environ:
        sys.exit("VEDETTE_HISTORIES must name a folder of bare repositories, such as apache+kafka-site/repo")
    folder = Path(os.environ["VEDETTE_HISTORIES"])
    links = LinkResolver(SiteIndex([Site(f"https://{host}/") for _, _, host in SITES]))
    readings: list[Reading] = []
    for site, root, host in SITES:
        pages = chosen(folder, site, root, host, arguments.pages // len(SITES))
        readings += [read(version, body, links) for version, body in pages]
        print_site(site, readings[-len(pages) :])
    figures = print_site("all", readings)
    failed = failures_of(readings)
    for kind, some in failed.items():
        print(f"{len(some)} {kind}, such as {', '.join(some[:3])}")
    if arguments.into:
        write_sample(readings, arguments.sample, arguments.into)
    print(json.dumps(figures))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
