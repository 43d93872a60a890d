"""Trust in push signals: how reliable each source of WebSub or IndexNow signals is, since some are wrong.

A *signal* says that a page is new or has changed. The next fetch shows whether it was right. For each source (a pushed
topic, a host that pings) correct signals are counted, with decaying counts, so that a source can both lose and regain
trust.
"""

from typing import NamedTuple

# Prior: as if two of four signals had been right.
_PRIOR = 2.0
# Decay of the counts with each checked signal, so that about the last hundred count.
_FADE = 0.99
# Below the first nothing is moved; from the second on a page is due at once.
_NO_TRUST, _FULL_TRUST = 0.1, 0.4


class SignalTrust(NamedTuple):
    """Trust in a source of push signals: how many of its signals were right and how many were wrong.

    >>> NEW_SOURCE.mean
    0.5
    >>> NEW_SOURCE.update(came_true=False).mean
    0.4
    """

    came_true: float = 0.0
    did_not: float = 0.0

    @property
    def mean(self) -> float:
        """The probability that the source's next push signal is right."""
        return (self.came_true + _PRIOR) / (self.came_true + self.did_not + 2 * _PRIOR)

    @property
    def wait_cut(self) -> float:
        """The share of its wait that a push signal saves a page: 0 for an unreliable source, 1 for a good one.

        >>> NEW_SOURCE.wait_cut, SignalTrust(0, 60).wait_cut
        (1.0, 0.0)
        """
        return min(max((self.mean - _NO_TRUST) / (_FULL_TRUST - _NO_TRUST), 0.0), 1.0)

    def update(self, *, came_true: bool) -> "SignalTrust":
        """Return the trust in a source after one of its push signals was checked by a fetch."""
        return SignalTrust(self.came_true * _FADE + came_true, self.did_not * _FADE + (not came_true))


NEW_SOURCE = SignalTrust()


def move_due_s(credit: SignalTrust, now_s: float, due_s: float, longest_s: float) -> float | None:
    """Compute the earlier due time of a page named in a push signal; None if the signal changes nothing.

    ``longest_s`` is the wait of a page without a due time.

    >>> move_due_s(NEW_SOURCE, 100.0, 500.0, 60.0)
    100.0
    >>> move_due_s(SignalTrust(0, 60), 100.0, 500.0, 60.0) is None
    True
    """
    if not credit.wait_cut:
        return None
    wait_s = min(max(due_s - now_s, 0.0), longest_s)
    return now_s + wait_s * (1.0 - credit.wait_cut)
