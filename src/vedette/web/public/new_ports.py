"""What the pages, feeds and API of new pages need of whatever keeps them."""

from typing import Final, NamedTuple, Protocol

from vedette.adapters.alerts.alert_store import Item

__all__ = ["NO_NEW_PAGES", "Batch", "NewPages"]


class Batch(NamedTuple):
    """Some items, where to go on (``cursor``), and whether there are more at once.

    ``missed`` says that some after the cursor that was asked for are not kept any more.
    """

    items: tuple[Item, ...] = ()
    cursor: int = 0
    more: bool = False
    missed: bool = False


class NewPages(Protocol):
    """The pages that were new. Quick to ask.

    ``watch`` is the name of a watch; without one all new pages are meant. ``allowed`` are the private sites that the
    reader may see, as in ``Search``.
    """

    def is_watch(self, name: str) -> bool:
        """Whether there is a watch of this name."""

    def after(self, cursor: int, most: int, watch: str, allowed: tuple[str, ...]) -> Batch:
        """The items after a cursor, the oldest first."""

    def latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> Batch:
        """The latest items, the newest first; where ``before`` is given, those before it, and so does ``cursor``."""


class _None:
    """Where nothing is kept."""

    def is_watch(self, name: str) -> bool:  # noqa: ARG002 - the port's
        return False

    def after(self, cursor: int, most: int, watch: str, allowed: tuple[str, ...]) -> Batch:  # noqa: ARG002 - the port's
        return Batch(cursor=cursor)

    def latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> Batch:  # noqa: ARG002 - the port's
        return Batch()


NO_NEW_PAGES: Final = _None()
