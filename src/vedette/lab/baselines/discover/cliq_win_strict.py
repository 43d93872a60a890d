"""CLIQ-WIN with strict clusters of pages that led to almost the same: the other reading of its parameter."""

from dataclasses import dataclass

from vedette.lab.baselines.discover.cliq_win import CliqWin


@dataclass(frozen=True, slots=True)
class CliqWinStrict(CliqWin):
    """``cliq-win`` where pages are alike from a Jaccard coefficient of .8 on.

    The lemmas of Pandey08 require eps_b up to 1/3, its experiments have eps_b = .8; perhaps .8 was meant to be the
    coefficient itself.

    Useful if pages share a navigation and also have links of their own. Not useful without full crawls.

    Reference: Pandey08, sections 3.6.2 and 3.6.6.

    >>> CliqWinStrict().likeness
    0.8
    """

    name: str = "cliq-win-strict"
    likeness: float = 0.8
