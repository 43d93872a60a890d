"""Which credentials of this machine may be given to a site in the console?

Whoever may add a site may also choose the host that gets its credentials. At a terminal that is somebody who can read
them anyway; behind a browser it is somebody with a token. So the console takes only the places that the operator named
in the settings (``serve.console_secrets``), and those that a site has already.
"""

from collections.abc import Sequence

__all__ = ["may_be_named", "places_in_words", "refusal_of"]

_ALL_BEGINNING = "*"


def may_be_named(place: str, allowed: Sequence[str]) -> bool:
    """Whether a place is among those allowed; a path that goes up or round about is none of a folder's.

    >>> allowed = ("env:WIKI_*", "file:/etc/vedette/*")
    >>> [may_be_named(place, allowed) for place in ("env:WIKI_LOGIN", "env:HOME", "file:/etc/vedette/../shadow")]
    [True, False, False]
    """
    return _is_straight(place) and any(_fits(place, each) for each in allowed)


def places_in_words(allowed: Sequence[str]) -> str:
    """What may be named, as a hint beside the field.

    >>> places_in_words(("env:A", "env:B_*", "file:/c/*"))
    'env:A, env:B_… or file:/c/…'
    """
    names = [each.replace(_ALL_BEGINNING, "\N{HORIZONTAL ELLIPSIS}") for each in allowed]
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def refusal_of(place: str, allowed: Sequence[str], kept: str = "") -> str:
    """Why a place may not be named; empty where it may. ``kept`` is what the site has, which it may keep."""
    if place in {"", kept} or may_be_named(place, allowed):
        return ""
    ways = f"name {places_in_words(allowed)}; " if allowed else ""
    return (
        f"The console may not give this to a site: {ways}allow more with serve.console_secrets, or set it on the "
        "command line."
    )


def _fits(place: str, allowed: str) -> bool:
    beginning = allowed.removesuffix(_ALL_BEGINNING)
    return place == allowed if beginning == allowed else place.startswith(beginning) and place != beginning


def _is_straight(place: str) -> bool:
    """A file is named by the shortest way to it, so that its beginning says in which folder it lies."""
    kind, _, path = place.partition(":")
    return kind != "file" or (path.startswith("/") and not {"", ".", ".."} & {*path[1:].split("/")})
