"""What a decision was made of: facts, random stream and outcome as plain values, for whoever wants to make it again.

Nobody is told unless somebody asks: the cost of that is one comparison a batch.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Column = Sequence[float] | Sequence[bool] | Sequence[int] | Sequence[Sequence[float]]


class Decision(NamedTuple):
    """One batch. ``policies`` are the names of those who decided, each with its settings.

    ``stream`` names the random stream that came from ``seed``; ``facts`` and ``outcome`` are columns of equal length,
    or rows of numbers where a policy remembers more than one of each page.
    """

    stage: str
    now_s: float
    seed: int
    stream: str
    policies: Mapping[str, Mapping[str, object]]
    facts: Mapping[str, Column]
    outcome: Mapping[str, Column]


DecisionRecorder = Callable[[Decision], None]


def format_decision(decision: Decision) -> str:
    """A decision as one line of JSON; numbers come back to the bit.

    >>> one = Decision("order", 0.1, 7, "order/breadth/1", {"breadth": {}}, {"depth": [2]}, {"worth": [-2.0]})
    >>> parse_decision(format_decision(one)) == one
    True
    """
    return json.dumps(decision._asdict(), separators=(",", ":"))


def parse_decision(line: str) -> Decision | None:
    """The decision of a line; None where the line is not whole."""
    try:
        return Decision(**json.loads(line))
    except (ValueError, TypeError):
        return None
