"""Numbers, times and tables as people read them: thin spaces between thousands, units, rough times."""

from collections.abc import Mapping, Sequence

THIN_SPACE = "\u2009"


def format_number(number: int) -> str:
    """Format a number with thin spaces.

    >>> format_number(1234567).split(THIN_SPACE)
    ['1', '234', '567']
    """
    return f"{number:,}".replace(",", THIN_SPACE)


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun, in the plural where it is one.

    >>> format_count(1, "host"), format_count(0, "page")
    ('1 host', '0 pages')
    """
    return f"{format_number(number)} {noun}{'' if number == 1 else 's'}"


def format_bytes(size: int) -> str:
    """Format a size in the unit that keeps it short.

    >>> format_bytes(1_500_000), format_bytes(900)
    ('1.5 MB', '900 B')
    """
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"


def format_duration(seconds: float) -> str:
    """Format a time in words.

    >>> format_duration(42.4), format_duration(75), format_duration(7260)
    ('42 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def sanitize(text: str, most: int = 200) -> str:
    r"""Make a text from the web safe for a terminal: nothing that moves the cursor, hides or turns what is written.

    >>> sanitize("a\x1b[31m b\u202ec")
    'a\ufffd[31m b\ufffdc'
    """
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(each if each.isprintable() else "\ufffd" for each in cut)


def format_rough_duration(seconds: float) -> str:
    """Format a time in its largest unit.

    >>> format_rough_duration(42.4), format_rough_duration(250), format_rough_duration(3 * 86_400)
    ('42 s', '4 min', '3 d')
    """
    for unit, size_s in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size_s:
            return f"{int(seconds // size_s)} {unit}"
    return f"{max(round(seconds), 0)} s"


def format_relative_time(at_s: float, now_s: float) -> str:
    """Format a moment as people say it.

    >>> format_relative_time(0.0, 250.0), format_relative_time(7200.0, 0.0), format_relative_time(10.0, 10.2)
    ('4 min ago', 'in 2 h', 'just now')
    """
    if abs(now_s - at_s) < 1:
        return "just now"
    return f"{format_rough_duration(now_s - at_s)} ago" if now_s > at_s else f"in {format_rough_duration(at_s - now_s)}"


def format_counts(counts: Mapping[str, int], most: int = 4) -> str:
    """Format counts by kind, the most frequent first.

    >>> format_counts({"too slow": 2, "status 500": 5})
    'status 500: 5, too slow: 2'
    """
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    named = [f"{kind}: {format_number(count)}" for kind, count in ranked[:most]]
    rest = sum(count for _, count in ranked[most:])
    return ", ".join([*named, f"other: {format_number(rest)}"] if rest else named)


def format_table(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Format rows as lines with columns of equal width: the first to the left, numbers to the right.

    >>> format_table([("policy", "pages"), ("uniform", "12")])
    ['policy   pages', 'uniform     12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
