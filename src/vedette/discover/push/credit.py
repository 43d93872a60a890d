"""Trust in push signals: how far each source of WebSub or IndexNow signals is believed, since some of them lie.

A *signal* says that a page is new or has changed. Whether it was right is known after the next fetch. For each source
(a topic that is pushed, a host that pings) it is counted how many came true, with counts that fade, so that a source
can mend its ways as well as lose its name.
"""

from typing import NamedTuple

# As if of four signals two had come true: what is believed of a source before anything is known of it.
_PRIOR = 2.0
# Counts fade by this with each signal that is judged, so that about the last hundred speak.
_FADE = 0.99
# Below the first nothing is moved, from the second on a page is due at once.
_NO_TRUST, _FULL_TRUST = 0.1, 0.4


class SignalTrust(NamedTuple):
    """Trust in a source of push signals: how many of its signals came true and how many did not.

    >>> NEW_SOURCE.mean
    0.5
    >>> NEW_SOURCE.update(came_true=False).mean
    0.4
    """

    came_true: float = 0.0
    did_not: float = 0.0

    @property
    def mean(self) -> float:
        """The chance that the source's next push signal comes true."""
        return (self.came_true + _PRIOR) / (self.came_true + self.did_not + 2 * _PRIOR)

    @property
    def wait_cut(self) -> float:
        """The part of its wait that a push signal spares a page: 0 if the source lies, 1 if it is good.

        >>> NEW_SOURCE.wait_cut, SignalTrust(0, 60).wait_cut
        (1.0, 0.0)
        """
        return min(max((self.mean - _NO_TRUST) / (_FULL_TRUST - _NO_TRUST), 0.0), 1.0)

    def update(self, *, came_true: bool) -> "SignalTrust":
        """Return the trust in a source after one of its push signals was checked by a fetch."""
        return SignalTrust(self.came_true * _FADE + came_true, self.did_not * _FADE + (not came_true))


NEW_SOURCE = SignalTrust()


def move_due_s(credit: SignalTrust, now_s: float, due_s: float, longest_s: float) -> float | None:
    """Compute the earlier due time of a page that a push signal named; None where the signal moves nothing.

    ``longest_s`` is used for the wait of a page that has no time of its own.

    >>> move_due_s(NEW_SOURCE, 100.0, 500.0, 60.0)
    100.0
    >>> move_due_s(SignalTrust(0, 60), 100.0, 500.0, 60.0) is None
    True
    """
    if not credit.wait_cut:
        return None
    wait_s = min(max(due_s - now_s, 0.0), longest_s)
    return now_s + wait_s * (1.0 - credit.wait_cut)
