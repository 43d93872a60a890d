"""Age chain: a Markov chain of page age (steps since the last change) that predicts the next change.

From age t a page is reset to 0 with probability p(t), or becomes t + 1. The last state, N, means "N or more".
Everything is stored in survival form: the usual question is whether a page is unchanged, and that is a product.

    unchanged over k steps from age i  =  prod of 1 - p(min(i + s, N)), s = 0 .. k - 1

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, section 2.2. Where it is misprinted, the
correct form is here, and a comment says so.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints
from vedette.refresh.outlook import Outlook


@dataclass(frozen=True, slots=True, eq=False)
class AgeChain:
    """A Markov chain of page age: the change probability in the next step by age; the last covers older ages.

    >>> chain = memoryless_chain(0.25, last_age=3)
    >>> chain.survival(np.array([0, 2]), np.array([2, 7])).round(4).tolist()
    [0.5625, 0.1335]
    """

    resets: Floats

    def __post_init__(self) -> None:
        assert len(self.resets) > 0, "a chain has an age at least"
        assert bool(((self.resets >= 0) & (self.resets <= 1)).all()), "a probability lies between 0 and 1"

    @property
    def last_age(self) -> int:
        """The last age N of the chain, which means "N or more"."""
        return len(self.resets) - 1

    def matrix(self) -> Floats:
        """Return the transition matrix of the age chain (eq. 6): row is the old age, column the new one."""
        ages = np.arange(len(self.resets))
        moves = np.zeros((len(ages), len(ages)))
        moves[:, 0] = self.resets
        # Added, not assigned: a chain with a single state is reset to itself.
        np.add.at(moves, (ages, np.minimum(ages + 1, self.last_age)), 1 - self.resets)
        return moves

    def survival(self, age: npt.ArrayLike, steps: npt.ArrayLike) -> Floats:
        """Return the probability that a page of an age is unchanged over ``steps`` steps.

        The paper reads this from element (i, i + k) of the k-th power of the matrix (eq. 11-13), which does not exist
        beyond the last state.
        """
        age_, steps_ = np.minimum(age, self.last_age), np.asarray(steps)
        within = np.minimum(steps_, self.last_age - age_)
        staying: Floats = (1 - self.resets[-1]) ** (steps_ - within)
        unchanged: Floats = self._survival_table()[age_, within] * staying
        return unchanged

    def change_chance(self, age: npt.ArrayLike, steps: npt.ArrayLike) -> Floats:
        """Return the probability that a fetch after ``steps`` steps finds a change (eq. 13)."""
        return 1 - self.survival(age, steps)

    def expected_staleness(self, age: npt.ArrayLike, steps: npt.ArrayLike) -> Floats:
        """Return Z(i, k) of eq. 15: the expected number of steps for which the page was out of date.

        It is the sum of 1 - unchanged(i, n) over n = 1 .. k, which needs no division (eq. 19 does).

        >>> float(periodic_chain(3).expected_staleness(0, 4))
        2.0
        """
        age_, steps_ = np.minimum(age, self.last_age), np.asarray(steps)
        within = np.minimum(steps_, self.last_age - age_)
        stayed = self._survival_table()
        in_table = np.cumsum(stayed, axis=1)[age_, within] - 1.0
        late: Floats = steps_ - in_table - stayed[age_, within] * self._tail_sum(steps_ - within)
        return late

    def with_floor(self, least: float) -> "AgeChain":
        """Return the chain with a minimum change probability at every age, so that no page is forgotten (2.3.2)."""
        return AgeChain(np.maximum(self.resets, least))

    def _survival_table(self) -> Floats:
        """Return the survival table of the age chain: row i, column k is unchanged over k steps from age i."""
        ages = np.arange(len(self.resets))
        going_on = 1 - self.resets[np.minimum(ages[:, None] + ages[None, :-1], self.last_age)]
        return np.hstack([np.ones((len(ages), 1)), np.cumprod(going_on, axis=1)])

    def _tail_sum(self, steps: npt.NDArray[np.int64]) -> Floats:
        """Return the sum of (1 - p)^n for n = 1 .. steps, at the last age."""
        stay = 1 - self.resets[-1]
        if stay == 1:
            return steps.astype(np.float64)
        tail: Floats = stay * (1 - stay**steps) / (1 - stay)
        return tail


def memoryless_chain(reset: float, last_age: int) -> AgeChain:
    """Build the age chain of a memoryless page, whose age has no effect (eq. 10)."""
    return AgeChain(np.full(last_age + 1, reset))


def periodic_chain(period: int) -> AgeChain:
    """Build the age chain of a page that changes every ``period`` steps (eq. 9).

    Its last age before a change is ``period - 1``.
    """
    return AgeChain(np.append(np.zeros(period - 1), 1.0))


def chain_from_lifetimes(ended: Ints, last_age: int, unended: Ints | None = None) -> AgeChain:
    """Estimate an age chain from lifetimes between changes, in steps; ``unended`` are censored lifetimes.

    Eq. 7 with f indexed by the age at reset, which is the lifetime minus one: period 3 needs f(2) = 1. For the last
    state the paper's p would be 1; here it is the share of ends among all steps that started at that age or later. Ages
    that no page reached are like the oldest one reached.

    >>> chain_from_lifetimes(np.array([3, 3, 3]), last_age=2).resets.tolist()
    [0.0, 0.0, 1.0]
    """
    open_ = np.zeros(0, np.int64) if unended is None else unended
    assert ended.min(initial=1) >= 1, "a life lasts a step at least"
    ages = np.arange(last_age + 1)
    lives = np.concatenate([ended, open_])
    begun = (lives[:, None] > ages).sum(axis=0).astype(np.float64)
    ends = (ended[:, None] - 1 == ages).sum(axis=0).astype(np.float64)
    begun[-1], ends[-1] = np.maximum(lives - last_age, 0).sum(), (ended > last_age).sum()
    return AgeChain(_carry_forward(ends, begun))


def chain_from_ages(seen: Floats) -> AgeChain:
    """Estimate an age chain from how often each page age was observed, the last being "that or more" (eq. 8).

    For counts that rise with age the paper's formula gives negative probabilities: no page can be seen older without
    having been younger, so the counts are fitted by the nearest non-increasing ones. The last two ages share one p,
    that of eq. 8 for a page without memory from there on: p = g(N - 1) / (g(N - 1) + g(N)).

    >>> chain_from_ages(np.array([50.0, 25.0, 25.0])).resets.tolist()
    [0.5, 0.5, 0.5]
    """
    assert len(seen) >= 2, "two ages are needed to compare"
    counts = fit_nonincreasing(seen[:-1])
    fell = np.append(counts[:-1] - counts[1:], counts[-1])
    of = np.append(counts[:-1], counts[-1] + seen[-1])
    resets = _carry_forward(fell, of)
    return AgeChain(np.append(resets, resets[-1]))


def fit_nonincreasing(values: Floats) -> Floats:
    """Fit the nearest non-increasing values (least squares): neighbors that rise are averaged.

    >>> fit_nonincreasing(np.array([4.0, 1.0, 3.0, 0.0])).tolist()
    [4.0, 2.0, 2.0, 0.0]
    """
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] < mean:
            mean = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            size += sizes.pop()
            means.pop()
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


def compute_outlook(chain: AgeChain, age: Ints, steps: Ints, days: int) -> Outlook:
    """Compute the outlook of pages of one age chain, seen at an age ``steps`` before the end of day 0.

    Equations 26, 27 and 30. In eq. 30 the k-th power is right, as it applies to the distribution of ages; its column 1
    is the reset column. After it the paper compares C_XO with C_OO and means C_OX.
    """
    unseen = np.array([chain.change_chance(age, steps + day) for day in range(days)])
    seen = np.zeros((days, days, len(age)))
    ages = np.arange(chain.last_age + 1)
    gaps = np.array([chain.change_chance(ages, gap) for gap in range(days)])
    for at in np.unique(steps).tolist():
        rows = np.flatnonzero(steps == at)
        reached = np.linalg.matrix_power(chain.matrix(), at)[np.minimum(age[rows], chain.last_age)]
        for day in range(days):
            seen[day, day + 1 :, rows] = reached @ gaps[1 : days - day].T
            reached = reached @ chain.matrix()
    return Outlook(unseen, seen)


def _carry_forward(ends: Floats, of: Floats) -> Floats:
    """Divide ends by exposure; where the exposure is 0, repeat the last share, and 0 before the first."""
    last = np.maximum.accumulate(np.where(of > 0, np.arange(len(of)), -1))
    shares = np.divide(ends, of, out=np.zeros(len(of)), where=of > 0)
    carried: Floats = np.where(last >= 0, shares[last], 0.0)
    return carried
