"""What the console needs of whatever runs the crawl: who may come in, what was done, and who carries out orders."""

from typing import NamedTuple, Protocol

from vedette.web.commands.commands import Done, Order

__all__ = ["ActionLine", "Operator"]


class ActionLine(NamedTuple):
    """Something that an operator did, as the log has it. ``by`` says where: the console, the command line, a key.

    ``can_be_undone`` is False for what cannot be taken back, and for what was. ``undone_s`` is when it was.
    """

    id: int
    at_s: float
    what: str
    by: str
    can_be_undone: bool = False
    undone_s: float | None = None


class Operator(Protocol):
    """The operator's rights and orders. Reading is quick; ``order`` waits for the keeper: call it in a thread."""

    def secret(self) -> bytes:
        """What tokens of this server are signed with: the same for all its processes, and after a restart."""

    def token_fits(self, token: str) -> bool:
        """Whether this is the operator's token."""

    def session_opened_s(self, digest: str) -> float | None:
        """When (wall time) the session with this digest was opened; None where there is none."""

    def order(self, order: Order, by: str) -> Done:
        """Have an order carried out. A ``VedetteError`` says in words why it cannot be; nothing has changed then."""

    def actions(self, most: int, before: int | None = None) -> list[ActionLine]:
        """The latest actions, the last one first; those with smaller numbers than ``before`` where it is given."""
