"""What the console needs to know of ranking that learns: a live search has it as ``ranking()``, others say nothing."""

from typing import NamedTuple

from vedette.learn.clicks.other_orders import OtherOrder
from vedette.learn.clicks.rollback_guard import Arm, Guarded

__all__ = ["Promoted", "RankingTold"]


class Promoted(NamedTuple):
    """A page that was tried: where it is, since when, how often it was shown for that, and what came of it.

    ``likes`` and ``looks`` are all that is known of it now, faded; ``expected`` is the quality that is believed.
    """

    url: str
    first_s: float
    shown: int
    clicks: int
    likes: float
    looks: float
    expected: float


class RankingTold(NamedTuple):
    """All of it. ``is_on`` is the operator's setting, ``is_learned`` whether there is enough to go by.

    ``tried`` of ``results`` shown stood there to be tried, in ``trying`` of ``searches``. ``taken_off`` is what the
    caps on visitors and addresses took, in looks. ``general`` is the quality that is expected of any page. ``orders``
    is what each order would have brought, had everybody got it.
    """

    at_s: float = 0.0
    is_on: bool = True
    is_learned: bool = False
    searches: int = 0
    clicks: int = 0
    results: int = 0
    tried: int = 0
    trying: int = 0
    general: float = 0.0
    examined: tuple[float, ...] = ()
    taken_off: tuple[tuple[str, float], ...] = ()
    learned: Arm = Arm(0, 0, 0.0, 0.0)
    plain: Arm = Arm(0, 0, 0.0, 0.0)
    difference: float = 0.0
    difference_give_or_take: float = 0.0
    is_enough: bool = False
    guard: Guarded = Guarded()
    promoted: tuple[Promoted, ...] = ()
    orders: tuple[OtherOrder, ...] = ()
