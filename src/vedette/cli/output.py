"""Numbers as people read them: thin spaces between thousands, units, rough times."""

from collections.abc import Mapping

THIN_SPACE = "\u2009"

__all__ = ["ago", "amount", "bytes_in_words", "counted", "kinds", "plain", "roughly", "span"]


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


def plain(text: str, most: int = 200) -> str:
    r"""A text from the web, safe for a terminal: nothing that moves the cursor, hides or turns what is written.

    >>> plain("a\x1b[31m b\u202ec")
    'a\ufffd[31m b\ufffdc'
    """
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(each if each.isprintable() else "\ufffd" for each in cut)


def roughly(seconds: float) -> str:
    """A time in its largest unit.

    >>> roughly(42.4), roughly(250), roughly(7260), roughly(3 * 86_400)
    ('42 s', '4 min', '2 h', '3 d')
    """
    for unit, size_s in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size_s:
            return f"{int(seconds // size_s)} {unit}"
    return f"{max(round(seconds), 0)} s"


def ago(at_s: float, now_s: float) -> str:
    """A moment as people say it.

    >>> ago(0.0, 250.0), ago(7200.0, 0.0), ago(10.0, 10.2)
    ('4 min ago', 'in 2 h', 'just now')
    """
    if abs(now_s - at_s) < 1:
        return "just now"
    return f"{roughly(now_s - at_s)} ago" if now_s > at_s else f"in {roughly(at_s - now_s)}"


def kinds(counts: Mapping[str, int], most: int = 4) -> str:
    """Counts by kind, the most frequent first.

    >>> kinds({"too slow": 2, "status 500": 5})
    'status 500: 5, too slow: 2'
    """
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    named = [f"{kind}: {amount(count)}" for kind, count in ranked[:most]]
    rest = sum(count for _, count in ranked[most:])
    return ", ".join([*named, f"other: {amount(rest)}"] if rest else named)
