"""Numbers as people read them: thin spaces between thousands, units, rough times."""

from collections.abc import Mapping

THIN_SPACE = "\u2009"

__all__ = ["amount", "bytes_in_words", "counted", "kinds", "span"]


def amount(number: int) -> str:
    """A number with thin spaces.

    >>> amount(1234567).split(THIN_SPACE)
    ['1', '234', '567']
    """
    return f"{number:,}".replace(",", THIN_SPACE)


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is one.

    >>> counted(1, "host"), counted(0, "page")
    ('1 host', '0 pages')
    """
    return f"{amount(number)} {noun}{'' if number == 1 else 's'}"


def bytes_in_words(size: int) -> str:
    """A size in the unit that keeps it short.

    >>> bytes_in_words(1_500_000), bytes_in_words(900)
    ('1.5 MB', '900 B')
    """
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"


def span(seconds: float) -> str:
    """A time in words.

    >>> span(42.4), span(75), span(7260)
    ('42 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def kinds(counts: Mapping[str, int], most: int = 4) -> str:
    """Counts by kind, the most frequent first.

    >>> kinds({"too slow": 2, "status 500": 5})
    'status 500: 5, too slow: 2'
    """
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    named = [f"{kind}: {amount(count)}" for kind, count in ranked[:most]]
    rest = sum(count for _, count in ranked[most:])
    return ", ".join([*named, f"other: {amount(rest)}"] if rest else named)
