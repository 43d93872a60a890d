"""Decision record: facts, random stream and outcome of a policy decision as plain values, for replay.

Recording is off by default; the check costs one comparison per batch.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Column = Sequence[float] | Sequence[bool] | Sequence[int] | Sequence[Sequence[float]]


class Decision(NamedTuple):
    """Record of one batch of policy decisions. ``policies`` maps the name of each policy involved to its settings.

    ``stream`` names the random stream derived from ``seed``. ``facts`` and ``outcome`` are columns of equal length, or
    rows of numbers where a policy stores several values per page.
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
    """Format a decision record as one line of JSON; numbers round-trip bit for bit.

    >>> one = Decision("order", 0.1, 7, "order/breadth/1", {"breadth": {}}, {"depth": [2]}, {"worth": [-2.0]})
    >>> parse_decision(format_decision(one)) == one
    True
    """
    return json.dumps(decision._asdict(), separators=(",", ":"))


def parse_decision(line: str) -> Decision | None:
    """Parse a decision record from a line of the decision log; None if the line is incomplete."""
    try:
        return Decision(**json.loads(line))
    except (ValueError, TypeError):
        return None
