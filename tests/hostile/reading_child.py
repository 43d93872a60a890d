"""Parse huge pages within limits that the kernel enforces: ``python -m tests.hostile.reading_child BYTES [NAME]…``.

Each page goes through all steps: charset, page, language, dates, shingles, sketch. It has its own process, so a page
that takes too much time or memory does not end the test. One line of JSON per page reports the outcome.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice, product

from vedette.parse.html.page import parse_page
from vedette.parse.similarity.minhash import build_sketch
from vedette.parse.similarity.shingles import normal_form, shingle_form
from vedette.parse.text.charsets import decode_page
from vedette.parse.text.dates import find_dates
from vedette.parse.text.language import detect_language

__all__ = ["MONSTERS", "cpu_limit_s", "memory_limit_bytes"]

MIB = 2**20
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Monster:
    """A page of about this many bytes, and its Content-Type."""

    body: Callable[[int], bytes]
    content_type: str = "text/html; charset=utf-8"


def cpu_limit_s(size_bytes: int) -> int:
    """Return the CPU limit, in proportion to the size: five seconds per megabyte, for a slow and busy machine."""
    return 5 + 5 * size_bytes // MIB


def memory_limit_bytes(size_bytes: int) -> int:
    """Return the limit on address space: that of the libraries, plus a multiple of the page."""
    return 768 * MIB + 100 * size_bytes


def _repeated(piece: bytes, before: bytes = b"", after: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: before + piece * (size // len(piece)) + after


def _numbered(pattern: str) -> Callable[[int], bytes]:
    """Repeat the pattern with a different number each time."""

    def body(size: int) -> bytes:
        return "".join(pattern.replace("*", str(number)) for number in range(size // (len(pattern) + 5))).encode()

    return body


def _words(size: int) -> bytes:
    """Generate new words all the time, so that no small table can hold them."""
    return " ".join(map("".join, islice(product(LETTERS, repeat=5), size // 6))).encode()


def _typed(charset: str, piece: bytes) -> Monster:
    return Monster(_repeated(piece), f"text/html; charset={charset}")


MONSTERS: Mapping[str, Monster] = {
    "deep divs": Monster(_repeated(b"<div>")),
    "deep divs that end": Monster(lambda size: b"<div>" * (size // 11) + b"x" + b"</div>" * (size // 11)),
    "ends without beginnings": Monster(_repeated(b"</div></p></a></h1></table>")),
    "formatting never closed": Monster(_repeated(b"<p><b><i><font><a href=x><u>y")),
    "hidden within hidden": Monster(_repeated(b"<div hidden><nav><footer>x ")),
    "tables within tables": Monster(_repeated(b"<table><tr><td>x")),
    "lists within lists": Monster(_repeated(b"<ul><li>x")),
    "drawings": Monster(_repeated(b"<svg><title>x")),
    "templates": Monster(_repeated(b"<template><a href=y>x")),
    "closed templates": Monster(_repeated(b"<template><a href=y>x y z</template>")),
    "places to fill in": Monster(
        _repeated(b"word <% {{ ${ <a href=\"{{ <a href='${", b"<script type=text/x-template>")
    ),
    "noscript in noscript": Monster(lambda size: b"<noscript>" * (size // 22) + b"x</noscript>" * (size // 22)),
    "headings": Monster(_repeated(b"<h1>x<h2>y</h1>")),
    "links": Monster(_numbered('<a href="/page/*">number *</a>')),
    "links never closed": Monster(_numbered("<a href=/page/*>text ")),
    "the same link": Monster(_repeated(b"<a href=/>x</a>")),
    "pictures in a link": Monster(_repeated(b"<img alt=x>", before=b"<a href=/>")),
    "metas": Monster(_numbered('<meta name="n*" content="c*">')),
    "feeds and alternates": Monster(_numbered('<link rel="alternate" hreflang="en" href="/*">')),
    "titles": Monster(_repeated(b"<title>x</title>")),
    "one attribute": Monster(_repeated(b"x", before=b'<a href="', after=b'">y</a>')),
    "attributes in one tag": Monster(lambda size: b"<a " + _numbered("a*=b ")(size) + b" href=/>y</a>"),
    "attributes in many tags": Monster(_repeated(b'<div class="a b c" id=x data-y=\'z\' style="color: red">')),
    "classes": Monster(lambda size: b'<div class="' + _words(size) + b'">y</div>'),
    "named references": Monster(_repeated(b"&amp;&eacute;&CounterClockwiseContourIntegral;")),
    "numbered references": Monster(_repeated(b"&#x1F600;&#0;&#xD800;&#99999999;")),
    "endless number": Monster(_repeated(b"9", before=b"&#")),
    "endless name": Monster(_repeated(b"a", before=b"&")),
    "ampersands": Monster(_repeated(b"&")),
    "openings": Monster(_repeated(b"<")),
    "openings of tags": Monster(_repeated(b"<a ")),
    "openings of ends": Monster(_repeated(b"</")),
    "openings of declarations": Monster(_repeated(b"<!")),
    "unclosed comments": Monster(_repeated(b"<!--")),
    "nearly closed comment": Monster(_repeated(b"--!", before=b"<!--")),
    "unclosed scripts": Monster(_repeated(b"<script>")),
    "nearly closed script": Monster(_repeated(b"</scrip", before=b"<script>")),
    "escaped scripts": Monster(_repeated(b"<script><!--<script>")),
    "unclosed quotes": Monster(_repeated(b'<a href="x')),
    "alternating quotes": Monster(_repeated(b"<a b=\"'\" c='\"'")),
    "unclosed titles": Monster(_repeated(b"<title>x")),
    "text": Monster(_words),
    "one word": Monster(_repeated(b"x")),
    "white space": Monster(_repeated(b" \t\n")),
    "line breaks": Monster(_repeated(b"<br>")),
    "short paragraphs": Monster(_repeated(b"<p>x y")),
    "NUL": Monster(_repeated(b"\0")),
    "Chinese": Monster(_repeated("搜索引擎".encode())),
    "marks upon marks": Monster(_repeated("\u0301".encode(), before=b"<p>a")),
    "linked data, deep": Monster(_repeated(b"[", before=b'<script type="application/ld+json">')),
    "linked data, closed": Monster(
        lambda size: b'<script type="application/ld+json">' + b"[" * (size // 2) + b"]" * (size // 2) + b"</script>"
    ),
    "linked data, long": Monster(
        _repeated(b'{"datePublished":"2024-01-01"},', b'<script type="application/ld+json">[', b"{}]</script>")
    ),
    "linked data, a number": Monster(
        _repeated(b"9", before=b'<script type="application/ld+json">', after=b"</script>")
    ),
    "times": Monster(_repeated(b'<time datetime="2024-01-01T00:00:00Z">x</time>')),
    "broken UTF-8": _typed("utf-8", b"\xff\xc3\x28\xe2\x82"),
    "UTF-16 without pairs": _typed("utf-16le", b"\x00\xd8"),
    "escapes of ISO-2022-JP": _typed("iso-2022-jp", b"\x1b$B\x1b(B"),
    "half characters of EUC-JP": _typed("euc-jp", b"\x8f\xa1"),
    "half characters of GB18030": _typed("gb18030", b"\x81\x30\x81"),
    "Big5 that is none": _typed("big5", b"\xfe\xff\x81"),
    "no charset, high bytes": Monster(_repeated(bytes(range(128, 256))), "text/html"),
    "no charset, late bytes": Monster(lambda size: b"a" * size + b"\xe9", ""),
    "charset in many metas": Monster(_repeated(b"<meta charset=x>"), "text/html"),
}


def _read(monster: Monster, size_bytes: int) -> dict[str, float]:
    body = monster.body(size_bytes)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit_s(size_bytes), resource.RLIM_INFINITY))
    limit_bytes = memory_limit_bytes(size_bytes)
    resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
    started_s = time.process_time()
    page = parse_page(decode_page(body, monster.content_type).text)
    detect_language(page.main, page.language)
    find_dates(page.stamps, page.linked_data, "http://one.test/", "", 1.7e9)
    for text in (page.text, page.main):
        build_sketch(shingle_form(normal_form(text)))
    strings = [page.title, page.description, page.language, page.base or "", page.canonical or ""]
    strings += [each.href + each.text for each in page.links] + [text for _, text in page.headings]
    return {
        "body": len(body),
        "links": len(page.links),
        "text": len(page.text),
        "main": len(page.main),
        "longest": max(map(len, strings)),
        "others": sum(map(len, (page.headings, page.alternates, page.feeds, page.robots_meta, page.stamps))),
        "cpu_s": round(time.process_time() - started_s, 3),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _apart(name: str, size_bytes: int) -> None:
    """Run in a separate process that may crash."""
    reader = os.fork()
    if reader == 0:
        sys.stdout.write(json.dumps({"name": name, **_read(MONSTERS[name], size_bytes)}) + "\n")
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(reader, 0)
    if status:
        sys.stdout.write(json.dumps({"name": name, "ended": os.waitstatus_to_exitcode(status)}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    for each in sys.argv[2:] or MONSTERS:
        _apart(each, int(sys.argv[1]))
