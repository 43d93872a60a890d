"""Suggestions for typos ("did you mean ...?"): the nearest known word, for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_LENGTH = 100  # of the input: comparison is quadratic in it


def did_you_mean(word: str, known: Iterable[str], otherwise: str, *, show: str = "{}", cutoff: float = 0.6) -> str:
    """Suggest the nearest known word for an unknown one in an error message, or what to do instead.

    >>> did_you_mean("radnom", ["random", "round-robin"], "see --help")
    'did you mean random?'
    >>> did_you_mean("kafka", ["random"], "known are random"), did_you_mean("crwal", ["crawl"], "", show="[{}]")
    ('known are random', 'did you mean [crawl]?')
    """
    near = get_close_matches(word[:MAX_LENGTH], list(known), 1, cutoff)
    return f"did you mean {show.format(near[0])}?" if near else otherwise
