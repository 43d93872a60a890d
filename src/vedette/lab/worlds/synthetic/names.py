"""Names and addresses of the made hosts: plausible, all below ``.test``, each with a loopback address of its own.

Subdomains of one blog hoster share an address, as many small sites of the real web do.
"""

from collections.abc import Iterator

from vedette.lab.worlds.synthetic.hashing import mix
from vedette.lab.worlds.synthetic.site_kinds import Kind
from vedette.lab.worlds.synthetic.topics import TOWNS, Topic

__all__ = ["FARM", "HOSTER", "address", "host_names", "site_title"]

HOSTER = "inkpot-pages.test"
FARM = "bargain-orchard.test"

_WORDS = {
    "news": ("gazette", "courier", "herald", "observer", "mercury", "dispatch", "chronicle", "echo"),
    "documentation": (
        "lantern",
        "kestrel",
        "anvil",
        "tidepool",
        "quillwork",
        "harrow",
        "lodestar",
        "cobble",
        "thistle",
    ),
    "blog": ("notebook", "diary", "letters", "corner", "journal", "afternoons"),
    "university": ("college", "university", "polytechnic", "institute"),
    "shop": ("supplies", "stores", "outfitters", "and-sons", "depot", "warehouse"),
    "forum": ("board", "forum", "talk", "exchange"),
}
_PATTERNS = {
    "news": "{place}-{word}.test",
    "documentation": "docs.{word}-{subject}.test",
    "university": "www.{place}-{word}.test",
    "shop": "{subject}-{word}.test",
    "forum": "{word}.{subject}-people.test",
}


def _place(number: int) -> str:
    return TOWNS[number % len(TOWNS)].lower().replace(" ", "-")


def _name(kind: Kind, topic: Topic, number: int) -> str:
    place, subject = _place(number), topic.slug
    words = _WORDS[kind.name]
    word = words[number // 7 % len(words)]
    if kind.name == "blog":
        return f"{subject}-{word}.{HOSTER}" if number % 5 < 2 else f"{place}-{subject}-{word}.test"
    return _PATTERNS[kind.name].format(place=place, subject=subject, word=word)


def _spellings(kind: Kind, topic: Topic, key: int) -> Iterator[str]:
    """Names in order of preference; the numbered ones at the end never run out."""
    yield from (_name(kind, topic, mix(key + step) >> 8) for step in range(12))
    first = _name(kind, topic, key >> 8)
    left, _, right = first.partition(".")
    yield from (f"{left}-{number}.{right}" for number in range(2, 10_000))


def host_names(kinds: list[Kind], topics: list[Topic], keys: list[int]) -> list[str]:
    """One name for each host, no two alike."""
    taken: dict[str, None] = {}
    for kind, topic, key in zip(kinds, topics, keys, strict=True):
        name = next(name for name in _spellings(kind, topic, key) if name not in taken)
        taken[name] = None
    return list(taken)


def site_title(name: str) -> str:
    """What the site calls itself.

    >>> site_title("www.ashford-college.test"), site_title("docs.lantern-maps.test")
    ('Ashford College', 'Lantern Maps Documentation')
    """
    labels = name.removesuffix(".test").split(".")
    first = labels[1] if labels[0] in ("www", "docs", *_WORDS["forum"]) else labels[0]
    words = first.replace("-", " ").title()
    return words + (" Documentation" if labels[0] == "docs" else "")


def address(seed: int, index: int) -> str:
    """The loopback address of a place in the world: never in 127.0, never ending in 0 or 255.

    >>> address(1, 0) != address(1, 1)
    True
    """
    return f"127.{1 + mix(seed) % 250}.{index // 250 % 250}.{1 + index % 250}"
