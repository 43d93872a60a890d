"""What the console's page on the fetch budget needs: plain values, and who tells them."""

from typing import NamedTuple

__all__ = ["KIND_WORDS", "BudgetTold", "HeldLine", "SpentLine"]

# What fetches are for, by the names of ``ring.spending``.
KIND_WORDS = {
    "first": "first fetches",
    "refresh": "refreshes",
    "look": "looks for new links",
    "gone": "gone, asked again",
    "asked": "asked for by the operator",
    "robots": "robots.txt",
}


class SpentLine(NamedTuple):
    """What one kind of fetches, or one site, took and brought; ``share`` is of all fetches.

    ``gain`` is what ``measured`` of them brought to search together; a fetch that found nothing changed brought
    nothing, and is not measured. ``part`` is the share of the budget that the operator gave to a site.
    """

    name: str
    fetches: float = 0.0
    share: float = 0.0
    failed: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    changed: float = 0.0
    found: float = 0.0
    measured: float = 0.0
    gain: float = 0.0
    part: float | None = None

    @property
    def gain_per_fetch(self) -> float | None:
        """The return on these fetches; None where nothing was measured."""
        return self.gain / self.fetches if self.measured and self.fetches else None


class HeldLine(NamedTuple):
    """An unseen URL that waits, since it is not worth the price."""

    url: str
    worth: float
    price: float


class BudgetTold(NamedTuple):
    """Where the budget went since ``since_s``. ``per_s`` is the budget in fetches a second; None where there is none.

    ``ever`` is of all time, by kind. ``held`` are some of those ``held_urls`` that were not worth the price of late.
    """

    per_s: float | None = None
    budget: str = ""
    price: float | None = None
    since_s: float = 0.0
    kinds: tuple[SpentLine, ...] = ()
    sites: tuple[SpentLine, ...] = ()
    ever: tuple[SpentLine, ...] = ()
    held_urls: int = 0
    held: tuple[HeldLine, ...] = ()

    @property
    def fetches(self) -> float:
        """How many there were."""
        return sum(line.fetches for line in self.kinds)
