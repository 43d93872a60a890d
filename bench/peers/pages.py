"""The pages of the loopback web: they resemble a documentation site, generated from a seed and nothing else.

A *district* is ten hosts with a hundred pages each; links never leave it. So a crawl of some districts is a whole crawl
of a smaller web with the same pages, links and robots.txt files per host, and its cost per page can be compared with
that of a crawl of all districts. Every page is reached from its host's start page.

A page has about as many tags as real ones of its size: 700 (200 real pages of four sites: 622 on 19.6 kB).

Words follow the law of Zipf and Mandelbrot. One page in fifty is a near-copy: the main text of another page of its
host, with one run of words exchanged and its own links. No two pages are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

__all__ = ["DISTRICT_HOSTS", "HOST_PAGES", "LINKS", "address", "made_page", "path_of"]

DISTRICT_HOSTS = 10
HOST_PAGES = 100
LINKS = 40

_SEED = 20_261
_SMALLEST_BYTES, _USUAL_BYTES, _LARGEST_BYTES = 10_000, 21_300, 34_000
_VOCABULARY = 30_000
_ZIPF_EXPONENT, _ZIPF_OFFSET = 1.05, 1.7  # Mandelbrot's form: the first word is every sixteenth, as in English
_TICKETS = 1 << 20
_COPY_EVERY = 50
_EXCHANGED_WORDS = 40
_NAV_LINKS, _FOREIGN_LINKS = 8, 6
_CHILDREN = 10
_LEAST_BYTES_PER_WORD = 8  # of the page, markup included
_SHORT_WORDS = 500
_ONSETS = [*"bcdfghjklmnprstvw", "br", "ch", "dr", "fl", "gr", "pl", "qu", "sh", "st", "th", "tr"]
_VOWELS = [*"aeiou", "ea"]
_CODAS = ["", "n", "r", "s", "l", "t", "nd"]


@dataclass(frozen=True, slots=True)
class _Place:
    """A page by the numbers of its host and of itself."""

    host: int
    number: int


def address(host: int) -> str:
    """The loopback address that is a host's name.

    >>> address(0), address(199)
    ('127.1.0.1', '127.1.0.200')
    """
    return f"127.1.{host // 250}.{host % 250 + 1}"


@cache
def path_of(number: int) -> str:
    """The path of a page, the same on every host."""
    if number == 0:
        return "/"
    words = _vocabulary()
    if number <= _CHILDREN:
        return f"/{words[1000 + number]}/"
    return f"/{words[1000 + (number - 1) // _CHILDREN]}/{words[1500 + number]}-{words[2000 + number]}.html"


def made_page(host: int, number: int, port: int) -> bytes:
    """The HTML of a page; links to other hosts of the district name that port."""
    place = _Place(host, number)
    source = _Place(host, number - 1) if number % _COPY_EVERY == _COPY_EVERY - 1 else place
    content = np.random.default_rng([_SEED, source.host, source.number])
    size_bytes = content.triangular(_SMALLEST_BYTES, _USUAL_BYTES, _LARGEST_BYTES)
    words = _words(content, int(size_bytes) // _LEAST_BYTES_PER_WORD)
    links = [_anchor_target(place, target, port) for target in _targets(place)]
    if source != place:
        _exchange_run(words, np.random.default_rng([_SEED, host, number, 2]))
    title = " ".join(words[:5]).capitalize() + f" {number}.{host}"
    head, foot = _head(place, title, words, links, port), _foot(words, links)
    room_bytes = int(size_bytes) - len(head) - len(foot)
    return (head + _main(title, words, links[_NAV_LINKS:-_FOREIGN_LINKS], content, room_bytes) + foot).encode()


def _exchange_run(words: list[str], own: np.random.Generator) -> None:
    start = int(own.integers(50, 800))
    words[start : start + _EXCHANGED_WORDS] = _words(own, _EXCHANGED_WORDS)


@cache
def _vocabulary() -> list[str]:
    """Distinct words, the most frequent first; those are the shortest, as in any language."""
    rng = np.random.default_rng(_SEED)
    syllables = [onset + vowel + coda for onset in _ONSETS for vowel in _VOWELS for coda in _CODAS]
    rng.shuffle(syllables)
    short = sorted(syllables[:_SHORT_WORDS], key=len)
    pairs = rng.integers(len(syllables), size=(2 * _VOCABULARY, 2)).tolist()
    long = dict.fromkeys(syllables[first] + syllables[second] for first, second in pairs)
    return list(dict.fromkeys((*short, *long)))[:_VOCABULARY]


@cache
def _lots() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A million tickets, divided among the words by their shares."""
    weights = 1.0 / (np.arange(1, _VOCABULARY + 1) + _ZIPF_OFFSET) ** _ZIPF_EXPONENT
    tickets = (np.arange(_TICKETS) + 0.5) / _TICKETS
    return np.searchsorted(np.cumsum(weights / weights.sum())[:-1], tickets)


def _words(rng: np.random.Generator, count: int) -> list[str]:
    vocabulary = _vocabulary()
    return [vocabulary[number] for number in _lots()[rng.integers(_TICKETS, size=count)].tolist()]


def _targets(place: _Place) -> list[_Place]:
    """Exactly forty distinct pages: sections, children, neighbors, others of the host, and some of other hosts."""
    rng = np.random.default_rng([_SEED, place.host, place.number, 1])
    first_child = place.number * _CHILDREN + 1
    near = [*range(1, _NAV_LINKS + 1), *range(first_child, first_child + _CHILDREN)]
    near += [place.number - 1, place.number + 1, *rng.permutation(HOST_PAGES).tolist()]
    inside = [number for number in dict.fromkeys(near) if 0 <= number < HOST_PAGES]
    return [_Place(place.host, number) for number in inside[: LINKS - _FOREIGN_LINKS]] + _foreign(place, rng)


def _foreign(place: _Place, rng: np.random.Generator) -> list[_Place]:
    district = place.host // DISTRICT_HOSTS * DISTRICT_HOSTS
    steps = 1 + rng.permutation(DISTRICT_HOSTS - 1)[:_FOREIGN_LINKS]
    hosts = district + (place.host + steps) % DISTRICT_HOSTS
    numbers = rng.integers(HOST_PAGES, size=_FOREIGN_LINKS)
    return [_Place(host, number) for host, number in zip(hosts.tolist(), numbers.tolist(), strict=True)]


def _anchor_target(here: _Place, target: _Place, port: int) -> str:
    """Own pages are linked by path, those of other hosts by URL."""
    path = path_of(target.number)
    return path if here.host == target.host else f"http://{address(target.host)}:{port}{path}"


def _head(place: _Place, title: str, words: list[str], links: list[str], port: int) -> str:
    url = f"http://{address(place.host)}:{port}{path_of(place.number)}"
    nav = "".join(
        f'<li class="nav-item"><a class="nav-link reference" href="{link}">{words[10 + row].title()}</a></li>\n'
        for row, link in enumerate(links[:_NAV_LINKS])
    )
    return f"""<!DOCTYPE html>
<html lang="en" class="no-js" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} &mdash; {words[5].title()} manual</title>
<meta name="description" content="{" ".join(words[20:45]).capitalize()}.">
<meta name="generator" content="bench">
<meta property="og:title" content="{title}">
<meta property="og:type" content="article">
<link rel="canonical" href="{url}">
<link rel="stylesheet" type="text/css" href="/static/theme.css?v={place.host}">
<link rel="stylesheet" type="text/css" href="/static/code.css">
<link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<script defer src="/static/search.js"></script>
<script>document.documentElement.className = "js"; var page = {{"host": {place.host}, "page": {place.number}}};</script>
</head>
<body class="page-{place.number}">
<a id="top"></a>
<header class="site-header" role="banner"><div class="brand"><img src="/static/logo.svg" alt="" width="32" height="32">
<span class="brand-name">{words[5].title()} manual</span></div>
<nav class="site-nav" aria-label="Sections">
<ul class="nav-list">
{nav}</ul>
</nav></header>
<main class="content" role="main">
"""


def _foot(words: list[str], links: list[str]) -> str:
    items = "".join(
        f'<li><a class="reference external" href="{link}">{words[50 + row].title()} {words[60 + row]}</a></li>\n'
        for row, link in enumerate(links[-_FOREIGN_LINKS:])
    )
    return f"""</main>
<footer class="site-footer"><div class="footer-links"><h4>Elsewhere</h4>
<ul>
{items}</ul></div>
<p class="copyright">&copy; {words[70].title()} {words[71].title()} and others. Made for measuring.</p>
</footer>
<script src="/static/theme.js"></script>
</body>
</html>
"""


def _main(title: str, words: list[str], links: list[str], rng: np.random.Generator, room_bytes: int) -> str:
    """Blocks until the size is reached; half of the links are in the text, the others in a list at its end."""
    inline, listed = iter(links[: len(links) // 2]), links[len(links) // 2 :]
    blocks = [f"<h1>{title}</h1>\n"]
    size = len(blocks[0])
    see_also = _list(words[80 : 80 + len(listed)], listed)
    for block in _blocks(iter(words[100:]), inline, rng):
        blocks.append(block)
        size += len(block)
        if size > room_bytes - len(see_also):
            break
    rest = "".join(f'<a href="{link}">{words[99]}</a> ' for link in inline)
    return "".join((*blocks, rest, see_also))


def _list(names: list[str], links: list[str]) -> str:
    items = (
        f'<li class="toctree-l1"><a class="reference internal" href="{link}">{name.title()}</a></li>\n'
        for name, link in zip(names, links, strict=True)
    )
    return f'<h2 id="see-also">See also</h2>\n<ul class="simple">\n{"".join(items)}</ul>\n'


def _blocks(words: Iterator[str], links: Iterator[str], rng: np.random.Generator) -> Iterator[str]:
    """Sections: a heading, some paragraphs, then a list or a listing; ends with the words."""
    for section in range(1, 1000):
        yield f'<section id="part-{section}">\n<h2>{" ".join(_take(words, 4)).capitalize()}</h2>\n'
        for _ in range(int(rng.integers(2, 4))):
            yield _paragraph(_take(words, int(rng.integers(40, 90))), next(links, ""))
        yield _listing(_take(words, 24)) if rng.random() < 0.5 else _points(_take(words, 30))
        yield "</section>\n"


def _take(words: Iterator[str], count: int) -> list[str]:
    return [next(words) for _ in range(count)]


def _paragraph(words: list[str], link: str) -> str:
    """Sentences of a dozen words; some words are set apart, two are a link."""
    words[4] = f"<em>{words[4]}</em>"
    words[17] = f'<code class="docutils literal notranslate"><span class="pre">{words[17]}()</span></code>'
    words[30] = f"<strong>{words[30]}</strong>"
    if link:
        words[22] = f'<a class="reference internal" href="{link}"><span class="std">{words[22]} {words[23]}</span></a>'
        del words[23]
    starts = range(0, len(words), 12)
    return f"<p>{' '.join(_sentence(words[start : start + 12]) for start in starts)}</p>\n"


def _sentence(words: list[str]) -> str:
    text = " ".join(words)
    return f"{text[0].upper()}{text[1:]}."


def _points(words: list[str]) -> str:
    items = (f"<li><p>{' '.join(words[start : start + 10])}</p></li>\n" for start in range(0, len(words), 10))
    return f'<ul class="simple">\n{"".join(items)}</ul>\n'


def _listing(words: list[str]) -> str:
    lines = (
        f'<span class="n">{words[row]}</span> = {words[row + 1]}(<span class="s1">&#39;{words[row + 2]}&#39;</span>)\n'
        for row in range(0, len(words) - 2, 3)
    )
    return f'<div class="highlight"><pre>\n{"".join(lines)}</pre></div>\n'
