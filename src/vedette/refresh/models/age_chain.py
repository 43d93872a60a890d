"""Age chain: a Markov chain of page age (steps since the last change) that predicts the next change.

From age t a page is reset to 0 with probability p(t), or becomes t + 1. The last state, N, means "N or more". All is
stored in survival form: the usual question is whether a page is unchanged, and that is a product.

    unchanged over k steps from age i  =  prod of 1 - p(min(i + s, N)), s = 0 .. k - 1

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, section 2.2. Where its print is wrong, the
right form is here, and a comment says so.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints


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
        # Added, not set: a chain with a single state is reset to where it stays.
        np.add.at(moves, (ages, np.minimum(ages + 1, self.last_age)), 1 - self.resets)
        return moves

    def replacement_matrix(self) -> Floats:
        """Return the transition matrix with "changed" as an absorbing last state.

        This is the machine that waits to be replaced; a fetch would put it back to the age that it finds.
        """
        moves = np.zeros((len(self.resets) + 1, len(self.resets) + 1))
        moves[:-1, :-1] = self.matrix()
        moves[:-1, 0] -= self.resets
        moves[:-1, -1] = self.resets
        moves[-1, -1] = 1.0
        return moves

    def survival(self, age: npt.ArrayLike, steps: npt.ArrayLike) -> Floats:
        """Return the probability that a page of an age is unchanged over ``steps`` steps.

        The paper reads this off an element (i, i + k) of the k-th power of the matrix (eq. 11-13), which does not exist
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

    def first_change_chance(self, at_age: npt.ArrayLike, age: npt.ArrayLike) -> Floats:
        """Return P(j, i) of eq. 18: the chance that the first change since age i comes at age j.

        Eq. 16 and 28 count j from 1. Eq. 19 computes each from the one before, and divides by zero where that is zero.
        """
        assert bool(np.all(np.greater_equal(at_age, age))), "a change comes at the age that was seen, or later"
        first: Floats = self.resets[np.minimum(at_age, self.last_age)] * self.survival(age, np.subtract(at_age, age))
        return first

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

    def age_distribution(self, age: int, steps: int) -> Floats:
        """Return the distribution of a page's age ``steps`` steps after it was seen at an age (eq. 11)."""
        after: Floats = np.linalg.matrix_power(self.matrix(), steps)[min(age, self.last_age)]
        return after

    def stationary_ages(self) -> Floats:
        """Return the stationary distribution of a page's age, for a moment without any information.

        The paper takes the limit of powers (eq. 12), which periodic pages do not have; this vector exists for them,
        too.

        >>> periodic_chain(3).stationary_ages().round(4).tolist()
        [0.3333, 0.3333, 0.3333]
        """
        reached = np.append(1.0, np.cumprod(1 - self.resets[:-1]))
        if reached[-1] > 0 and self.resets[-1] == 0:
            # Once there, always there.
            return np.append(np.zeros(self.last_age), 1.0)
        reached[-1] /= self.resets[-1] if reached[-1] > 0 else 1.0
        share: Floats = reached / reached.sum()
        return share

    def expected_changes(self, age: int, steps: int) -> float:
        """Return the expected number of page changes within ``steps`` steps; a fetch finds at most one."""
        ages = np.zeros(len(self.resets))
        ages[min(age, self.last_age)] = 1.0
        moves, total = self.matrix(), 0.0
        for _ in range(steps):
            total += float(ages @ self.resets)
            ages = ages @ moves
        return total

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


@dataclass(frozen=True, slots=True, eq=False)
class WeekChain:
    """An age chain with a weekly rhythm: a day with pace 0 has no changes, one with pace 2 counts for two.

    The chain alone cannot express it: a page that changes each working day and rests on weekends has a state with two
    parts, its age and the day of the week.

    >>> busy = WeekChain(memoryless_chain(1.0, last_age=0), pace=np.array([1.0, 1, 1, 1, 1, 0, 0]))
    >>> busy.survival(0, 2, weekday=5), busy.survival(0, 3, weekday=5)
    (1.0, 0.0)
    """

    chain: AgeChain
    pace: Floats

    def __post_init__(self) -> None:
        assert self.pace.shape == (7,), "a week has seven days"
        assert bool((self.pace >= 0).all()), "no day takes changes back"

    def survival(self, age: int, steps: int, weekday: int) -> float:
        """Return the probability that a page is unchanged over ``steps`` days that begin on a weekday."""
        on = np.arange(steps)
        staying = 1 - self.chain.resets[np.minimum(age + on, self.chain.last_age)]
        return float(np.prod(staying ** self.pace[(weekday + on) % 7]))


def memoryless_chain(reset: float, last_age: int) -> AgeChain:
    """Build the age chain of a memoryless page, whose age has no effect (eq. 10)."""
    return AgeChain(np.full(last_age + 1, reset))


def periodic_chain(period: int) -> AgeChain:
    """Build the age chain of a page that changes every ``period`` steps (eq. 9).

    Its last age before a change is ``period - 1``.
    """
    return AgeChain(np.append(np.zeros(period - 1), 1.0))


def chain_from_survival(survival: Floats) -> AgeChain:
    """Build the age chain of a page that reaches age t unchanged with probability survival[t]; two at least."""
    before, after = survival[:-1], survival[1:]
    resets = 1 - np.divide(after, before, out=np.zeros(len(before)), where=before > 0)
    return AgeChain(np.clip(resets, 0.0, 1.0))


def chain_from_lifetimes(ended: Ints, last_age: int, unended: Ints | None = None) -> AgeChain:
    """Estimate an age chain from lifetimes between changes, in steps; ``unended`` are censored lifetimes.

    Eq. 7 with f indexed by the age at reset, which is the lifetime less one: period 3 needs f(2) = 1. For the last
    state the paper's p would be 1; here it is the share of ends among all steps that were begun at that age or later.
    Ages that no page reached are like the oldest that one did.

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
    having been younger, so the counts are fitted by the nearest that never rise. The last two ages share one p, that of
    eq. 8 for a page without memory from there on: p = g(N - 1) / (g(N - 1) + g(N)).

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


def _carry_forward(ends: Floats, of: Floats) -> Floats:
    """Divide ends by exposure; where the exposure is 0, repeat the last share, and 0 before the first."""
    last = np.maximum.accumulate(np.where(of > 0, np.arange(len(of)), -1))
    shares = np.divide(ends, of, out=np.zeros(len(of)), where=of > 0)
    carried: Floats = np.where(last >= 0, shares[last], 0.0)
    return carried
