"""Score how much a page resembles spam, by its content and its links.

An additive score in logit form: every feature beyond what honest pages show adds up to its weight, linearly between
*begins* and *full*; the sum starts at ``BIAS`` and goes through the logistic function. So only the strongest feature
can condemn a page alone, and each verdict can be explained in words. Weights are chosen by hand and are in one table
(after the features of Ntoulas, Najork, Manasse and Fetterly, Detecting Spam Web Pages through Content Analysis, WWW
2006, and of Fetterly, Manasse and Najork, Spam, Damn Spam, and Statistics, WebDB 2004).

Repetition is measured on two slices of the text, its beginning and its middle: the whole text would cost more than it
is worth. For most pages a short sample of each is enough: the full slices are read only if it shows few different
words, long words, or many commas. Only the host in a link matters, so links may be as written, and only if enough links
may name one to count.

*Useful for* stuffed texts, farms of hosts, lists of keywords. *Not useful for* fluent generated text.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp
from operator import gt
from typing import NamedTuple

from vedette.model import registrable_domain

BIAS = -5.0
REASON_LOGITS = 0.75
GLANCE_LETTERS, SLICE_LETTERS = 150, 600
MAX_LINKS = 1_000
MAX_HOSTS = 200
MIN_WORDS = 40
GLANCE_WORDS, GLANCE_DISTINCT, GLANCE_LENGTH, GLANCE_COMMAS = 25, 0.75, 10, 0.4
MIN_TOP_SHARE, MAX_DISTINCT_SHARE = 0.1, 0.6
MIN_LINKS = 10
MIN_FOREIGN_SHARE = 0.4  # of all links; no smaller share counts
MIN_ANCHOR_RATIO = 2  # letters in links to one of the text; fewer do not count
MAX_ANCHOR_LENGTH = 200  # longer ones are truncated
MAX_AUTHORITY_LENGTH = 300
MIN_HOSTS = 8

_SCHEMES = frozenset({"http:", "https:", ""})
_HOST = re.compile(r"(?:[^?#@]*@)?([^?#:@]{1,253})")


class SpamFeatures(NamedTuple):
    """Spam features of a page; every share is from 0 to 1, and 0 if there is too little evidence.

    ``top_share`` is the share of the most frequent word of four letters or more, ``pair_share`` that of repeated word
    pairs; ``title_repeats`` counts the title's most frequent word. ``anchor_share`` is the share of letters in links,
    ``foreign_share`` of links that leave the host, ``fan_share`` of links to different hosts of one domain,
    ``target_share`` of links to the most linked foreign domain, ``blank_share`` of foreign links without text.
    ``foreign_inlinks`` counts links from other domains, if known.
    """

    top_share: float = 0.0
    pair_share: float = 0.0
    word_letters: float = 0.0
    comma_share: float = 0.0
    hidden_share: float = 0.0
    title_repeats: int = 0
    anchor_share: float = 0.0
    foreign_share: float = 0.0
    fan_share: float = 0.0
    target_share: float = 0.0
    blank_share: float = 0.0
    foreign_inlinks: int | None = None


@dataclass(frozen=True, slots=True)
class SpamRule:
    """A spam rule: a feature, where it starts to count and where it counts in full, its weight, and its text."""

    feature: str
    start: float
    full: float
    weight: float
    template: str

    def compute_logits(self, value: float) -> float:
        """Compute what a value of this rule's feature adds to the spam score, in logits."""
        return self.weight * min(max((value - self.start) / (self.full - self.start), 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class SpamScore:
    """A spam score from 0 to 1, and its reasons, the most important first."""

    score: float
    reasons: tuple[str, ...]


RULES = (
    SpamRule("top_share", 0.12, 0.30, 4.0, "{:.0%} of the text is one word"),
    SpamRule("pair_share", 0.50, 0.85, 3.5, "{:.0%} of the text repeats itself"),
    SpamRule("title_repeats", 2, 5, 3.0, "the title says one word {} times"),
    SpamRule("comma_share", 0.50, 0.90, 2.5, "a comma after {:.0%} of the words"),
    SpamRule("hidden_share", 0.50, 0.90, 2.5, "{:.0%} of the words are hidden"),
    SpamRule("word_letters", 11, 16, 2.0, "words of {:.0f} letters on average"),
    SpamRule("fan_share", 0.40, 0.70, 6.0, "{:.0%} of the links lead to different hosts of one domain"),
    SpamRule("target_share", 0.50, 0.90, 1.5, "{:.0%} of the links lead to one foreign domain"),
    SpamRule("blank_share", 0.30, 0.80, 1.5, "{:.0%} of the links that leave the host have no text"),
    SpamRule("anchor_share", 0.70, 0.95, 1.0, "{:.0%} of the text is links"),
    SpamRule("foreign_share", 0.60, 0.95, 1.0, "{:.0%} of the links leave the host"),
)
_BEGINS = tuple(rule.start for field in SpamFeatures._fields for rule in RULES if rule.feature == field)
UNLINKED_LOGITS, LINKED_LOGITS, MANY_INLINKS = 1.0, -3.0, 5


def score_spam(signs: SpamFeatures) -> SpamScore:
    """Score the spam features of a page.

    >>> score_spam(SpamFeatures()).score < 0.01
    True
    >>> score_spam(SpamFeatures(top_share=0.3, title_repeats=5)).reasons
    ('30% of the text is one word', 'the title says one word 5 times')
    """
    found = _score_rules(signs) if any(map(gt, signs[:-1], _BEGINS)) else []
    logits = BIAS + _score_inlinks(signs.foreign_inlinks) + sum([added for added, _, _ in found])
    reasons = [rule.template.format(value) for added, rule, value in found if added >= REASON_LOGITS]
    return SpamScore(1 / (1 + exp(-logits)), tuple(reasons))


def _score_rules(signs: SpamFeatures) -> list[tuple[float, SpamRule, float]]:
    """Score each spam rule whose feature exceeds what honest pages show, the most important first."""
    found = [
        (rule.compute_logits(value), rule, value)
        for rule in RULES
        if (value := getattr(signs, rule.feature)) > rule.start
    ]
    return sorted(found, key=lambda each: -each[0])


def _score_inlinks(foreign_inlinks: int | None) -> float:
    """Score in-links from other domains, which spam hardly gets; a page without any is a little suspect."""
    if foreign_inlinks is None:
        return 0.0
    return LINKED_LOGITS * min(foreign_inlinks / MANY_INLINKS, 1.0) if foreign_inlinks else UNLINKED_LOGITS


def extract_features(
    host: str,
    title: str,
    main: str,
    words: int,
    hidden_words: int,
    links: Sequence[tuple[str, str]],
    foreign_inlinks: int | None = None,
) -> SpamFeatures:
    """Extract the spam features of a page of a host; links are pairs of an address, as written, and its text."""
    links = links[:MAX_LINKS]
    return SpamFeatures(
        *_measure_repetition(main),
        hidden_words / (hidden_words + words) if hidden_words >= MIN_WORDS else 0.0,
        _count_title_repeats(title),
        *(_measure_links(host, main, links) if len(links) >= MIN_LINKS else (0.0, 0.0, 0.0, 0.0, 0.0)),
        foreign_inlinks,
    )


def _measure_repetition(main: str) -> tuple[float, float, float, float]:
    """Measure repetition as a sign of spam: shares of the top word and of repeated pairs, word length, commas."""
    if _is_plain(_take_slices(main, GLANCE_LETTERS)):
        return 0.0, 0.0, 0.0, 0.0
    sample = _take_slices(main, SLICE_LETTERS)
    words = sample.split()
    count = len(words)
    if count < MIN_WORDS:
        return 0.0, 0.0, 0.0, 0.0
    counts = Counter(words)
    # The most frequent word that is neither short, as articles are, nor a number.
    top = max((often for word, often in counts.items() if len(word) > 3 and word.isalpha()), default=0)
    return (
        top / count if max(counts.values()) > MIN_TOP_SHARE * count else 0.0,
        # A pair cannot recur more often than its second word does, so most texts need no count of pairs.
        1 - len(set(pairwise(words))) / (count - 1) if len(counts) < MAX_DISTINCT_SHARE * count else 0.0,
        # The mean word length means nothing without spaces, and little in other scripts.
        len(sample) / count - 1 if sample.isascii() else 0.0,
        sample.count(",") / count,
    )


def _take_slices(main: str, letters: int) -> str:
    middle = max(letters, len(main) // 2)
    return f"{main[:letters]} {main[middle : middle + letters]}".lower()


def _is_plain(sample: str) -> bool:
    """Check whether a text sample is plainly no spam: enough words, mostly different, not long, few commas."""
    words = sample.split()
    count = len(words)
    return (
        count >= GLANCE_WORDS
        and len(set(words)) > GLANCE_DISTINCT * count
        and len(sample) <= GLANCE_LENGTH * count
        and sample.count(",") <= GLANCE_COMMAS * count
    )


def _count_title_repeats(title: str) -> int:
    words = title[:300].lower().split()
    if len(set(words)) == len(words):
        return 1
    return max([words.count(word) for word in words if len(word) > 3], default=1)


def _measure_links(host: str, main: str, links: Sequence[tuple[str, str]]) -> tuple[float, float, float, float, float]:
    """Measure a page's links as signs of spam: share of linked letters, and the shares of ``_measure_leaving``."""
    anchors = 0
    if len(links) * MAX_ANCHOR_LENGTH > MIN_ANCHOR_RATIO * len(main):
        anchors = sum([len(text) for _, text in links])
    return anchors / (anchors + len(main) or 1), *_measure_leaving(host, links)


def _measure_leaving(host: str, links: Sequence[tuple[str, str]]) -> tuple[float, float, float, float]:
    """Measure shares of links: off the host, to different hosts of one domain, to one foreign domain, textless."""
    away = [link for link in links if "//" in link[0]]
    few = len(away) <= MIN_FOREIGN_SHARE * len(links)
    if few and (len(away) < MIN_LINKS or "" not in [text for _, text in away]):
        return 0.0, 0.0, 0.0, 0.0
    named = [
        (_parse_host(parts[2][:MAX_AUTHORITY_LENGTH]), text)
        for href, text in away
        if not (parts := href.split("/", 3))[1] and parts[0].lower() in _SCHEMES
    ]
    leaving = [each for each in named if each[0] not in {host, ""}]
    if len(leaving) < MIN_LINKS:
        return len(leaving) / len(links), 0.0, 0.0, 0.0
    blank = sum([not text for _, text in leaving]) / len(leaving)
    fan, target = (0, 0) if few else _count_domains(host, Counter([name for name, _ in leaving]))
    return len(leaving) / len(links), fan / len(links), target / len(links), blank


def _count_domains(host: str, counts: Counter[str]) -> tuple[int, int]:
    """Count the hosts of the domain with most of them, and the links to the most linked foreign domain."""
    own = _get_domain(host)
    hosts: Counter[str] = Counter()
    links: Counter[str] = Counter()
    for name, often in counts.most_common(MAX_HOSTS):
        domain = _get_domain(name)
        hosts[domain] += 1
        links[domain] += often
    fan = max(hosts.values())
    links.pop(own, None)
    return fan if fan >= MIN_HOSTS else 0, max(links.values(), default=0)


# The pages of a site name the same few hosts. Only short texts are cached, so that hostile pages cannot fill memory.
@lru_cache(maxsize=4096)
def _parse_host(authority: str) -> str:
    """Parse the host of a link's authority, for the spam features; empty if it has none."""
    found = _HOST.match(authority)
    return found[1].lower() if found else ""


_get_domain = lru_cache(maxsize=4096)(registrable_domain)
