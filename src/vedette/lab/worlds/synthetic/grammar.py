"""Text generator of the synthetic web: a small English grammar, run once per topic into pools of ready sentences.

Generating a page then costs a few list lookups per paragraph. Everything in a pool is already escaped for HTML.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape

from vedette.lab.worlds.synthetic.hashing import hash_key, lcg_stream, mix
from vedette.lab.worlds.synthetic.topics import FIRST_NAMES, MONTHS, NUMBERS, SURNAMES, TOPICS, TOWNS, Topic

_SENTENCES = 900
_PARAGRAPHS = 1000
_CHAPTERS = 250
_HEADS = 500
_TAILS = 120

_IRREGULAR = {
    "loaf": "loaves",
    "bread knife": "bread knives",
    "nebula": "nebulae",
}

_TEMPLATES = (
    "The {agent} {verbed} {a_thing} {place}.",
    "Most {agents} {verb} their {things} by hand, although {adj} ones need more {virtue}.",
    "{Doing} is harder than it looks, and it takes {virtue} as well as {a_thing}.",
    "{Name}, {an_agent} from {town}, has {verbed} {things} for {number} years.",
    "According to {name}, the {adj} {thing} {place} will be {verbed} in {month}.",
    "There are {number} {things} {place}, and {number} of them are {adj}.",
    "Nobody has {verbed} the {thing} {place} since {year}.",
    "When {a_thing} is ready, the {agent} {verbs} it at once.",
    "The {thing} that {name} {verbed} in {year} is still {adj}.",
    "Before {doing}, make sure that the {thing} is {adj}.",
    "{A_thing} costs less than {a_thing}, but it needs more {virtue}.",
    "In {town} the {agents} meet every {month} and compare their {things}.",
    "It was {an_agent} who first {verbed} the {things} {place}.",
    "Without {virtue}, even {a_thing} is of little use to {an_agent}.",
    "Some {agents} prefer {doing}; others say that {a_thing} is all you need.",
    "The {things} {place} were {verbed} in {year} and again in {month}.",
    "Anyone who has tried {doing} knows how much {virtue} matters.",
    "{Name} keeps {a_thing} {place} and {verbs} it every {month}.",
    "The report lists {number} {things}, each of them {adj} and none of them {adj}.",
    "After {doing}, the {agents} {verbed} the remaining {things}.",
    "You can {verb} {a_thing} in {number} minutes if there is enough {virtue}.",
    "Visitors from {town} often ask why the {thing} {place} is so {adj}.",
    "A good {agent} looks for {virtue} first and for {a_thing} second.",
    "Since {year} the {agents} of {town} have {verbed} more than {number} hundred {things}.",
    "If the {thing} is not {adj}, leave it {place} until {month}.",
    "Both {things} and {things} can be {verbed} {place}.",
)
_HEADING_TEMPLATES = (
    "What {agents} look for",
    "{Things} {place}",
    "A word on {virtue}",
    "Before {doing}",
    "Choosing {a_thing}",
    "{Town} and its {things}",
    "Why {virtue} matters",
)
_HEAD_TEMPLATES = (
    "{Adj} {things}",
    "{Doing}",
    "How to {verb} {things}",
    "A guide to {adj} {things}",
    "The {adj} {thing}",
    "Why {agents} {verb} {things}",
    "{Number} {adj} {things}",
)
_TAIL_TEMPLATES = (
    "{place}",
    "for {agents}",
    "and the {adj} {thing}",
    "in {month}",
    "without {virtue}",
    "from {town}",
    "before {doing}",
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A generated phrase of a title: as text and as its URL slug."""

    text: bytes
    slug: bytes


@dataclass(frozen=True, slots=True)
class Prose:
    """Generated prose of one topic: a chapter is a heading with its paragraph, a title has a head and a tail."""

    topic: Topic
    sentences: tuple[bytes, ...]
    paragraphs: tuple[bytes, ...]
    chapters: tuple[bytes, ...]
    heads: tuple[Phrase, ...]
    tails: tuple[Phrase, ...]

    def sentence(self, key: int) -> bytes:
        """Return the generated sentence of a key."""
        return self.sentences[mix(key) % len(self.sentences)]

    def paragraph(self, key: int) -> bytes:
        """Return the generated paragraph of a key."""
        return self.paragraphs[mix(key) % len(self.paragraphs)]


def pluralize(noun: str) -> str:
    """Return the plural of a noun from the grammar's vocabulary.

    >>> pluralize("ferry"), pluralize("trolley"), pluralize("rose bush"), pluralize("loaf")
    ('ferries', 'trolleys', 'rose bushes', 'loaves')
    """
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def past_tense(verb: str) -> str:
    """Return the past tense of a regular verb from the grammar's vocabulary."""
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")


def add_article(phrase: str) -> str:
    """Add ``a`` or ``an`` before a phrase of generated text."""
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


def slugify(text: str) -> str:
    """Turn generated title text into a URL slug.

    >>> slugify("Tuesday's salt-stained ferries")
    'tuesdays-salt-stained-ferries'
    """
    letters = "".join(letter for letter in text.lower() if letter.isalnum() or letter in " -")
    return "-".join(letters.replace("-", " ").split())


def person_name(number: int) -> str:
    """Return a generated person's name by number, one of about a thousand."""
    return f"{FIRST_NAMES[number % len(FIRST_NAMES)]} {SURNAMES[number // len(FIRST_NAMES) % len(SURNAMES)]}"


_INFLECTIONS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "agents": ("agent", pluralize),
    "things": ("thing", pluralize),
    "verbs": ("verb", pluralize),
    "verbed": ("verb", past_tense),
    "an_agent": ("agent", add_article),
}


@dataclass(slots=True)
class _TemplateSlots:
    """Slots of one sentence template of the grammar and their words, none used twice in a sentence."""

    lists: Mapping[str, tuple[str, ...]]
    numbers: Iterator[int]
    used: list[str] = field(default_factory=list)

    def __getitem__(self, slot: str) -> str:
        words = self._fill(slot.lower())
        return words[0].upper() + words[1:] if slot[0].isupper() else words

    def _fill(self, slot: str) -> str:
        words = self.lists.get(slot)
        return self._inflect(slot) if words is None else self._pick(words)

    def _pick(self, words: tuple[str, ...]) -> str:
        start = next(self.numbers)
        tries = (words[(start + step) % len(words)] for step in range(len(words)))
        word = next((word for word in tries if word not in self.used), words[0])
        self.used.append(word)
        return word

    def _inflect(self, slot: str) -> str:
        match slot:
            case "a_thing":
                return add_article(f"{self._fill('adj')} {self._fill('thing')}")
            case "name":
                return person_name(next(self.numbers))
            case "year":
                return str(1950 + next(self.numbers) % 75)
            case _:
                base, inflect = _INFLECTIONS[slot]
                return inflect(self._fill(base))


def _word_lists(topic: Topic) -> Mapping[str, tuple[str, ...]]:
    return {
        "agent": topic.agents,
        "thing": topic.things,
        "verb": topic.verbs,
        "adj": topic.adjectives,
        "place": topic.places,
        "virtue": topic.virtues,
        "doing": topic.activities,
        "town": TOWNS,
        "month": MONTHS,
        "number": NUMBERS,
    }


def _fill_templates(topic: Topic, templates: tuple[str, ...], count: int, key: int) -> list[str]:
    lists, numbers = _word_lists(topic), lcg_stream(key)
    return [templates[index % len(templates)].format_map(_TemplateSlots(lists, numbers)) for index in range(count)]


def _build_phrases(topic: Topic, templates: tuple[str, ...], count: int, key: int) -> tuple[Phrase, ...]:
    texts = _fill_templates(topic, templates, count, key)
    return tuple(Phrase(escape(text).encode(), slugify(text).encode()) for text in texts)


def _join_paragraph(sentences: tuple[bytes, ...], key: int) -> bytes:
    """Join generated sentences into a paragraph of three to seven."""
    numbers = lcg_stream(key)
    return b"<p>%b</p>\n" % b" ".join(sentences[next(numbers) % len(sentences)] for _ in range(3 + next(numbers) % 5))


def _escape_all(texts: list[str]) -> tuple[bytes, ...]:
    return tuple(escape(text).encode() for text in texts)


def _build_prose(topic: Topic, seed: int) -> Prose:
    key = hash_key(seed, topic.slug)
    sentences = _escape_all(_fill_templates(topic, _TEMPLATES, _SENTENCES, key + 1))
    headings = _escape_all(_fill_templates(topic, _HEADING_TEMPLATES, _CHAPTERS, key + 2))
    paragraphs = tuple(_join_paragraph(sentences, mix(key + 3) + number) for number in range(_PARAGRAPHS + _CHAPTERS))
    chapters = (b"<h2>%b</h2>\n%b" % parts for parts in zip(headings, paragraphs[_PARAGRAPHS:], strict=True))
    return Prose(
        topic,
        sentences,
        paragraphs[:_PARAGRAPHS],
        tuple(chapters),
        _build_phrases(topic, _HEAD_TEMPLATES, _HEADS, key + 4),
        _build_phrases(topic, _TAIL_TEMPLATES, _TAILS, key + 5),
    )


@lru_cache(maxsize=4)
def build_library(seed: int) -> tuple[Prose, ...]:
    """Build the library of generated prose for every topic, in a fixed order."""
    return tuple(_build_prose(topic, seed) for topic in TOPICS)
