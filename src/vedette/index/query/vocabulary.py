"""Vocabulary of the index: its words, how many pages have each, and which words are inflections of one word.

Words are stored in their indexed form (``vedette.text``), sorted, as UTF-8 in one buffer; half a million of them take
about ten bytes each, and any is found by bisection. Since UTF-8 sorts like its characters, all words with a prefix are
adjacent.

Nothing is stemmed in the index, so that a word finds itself first. Other forms of a query's word are looked up here:
words with the same *stem* in one of the languages of the index. Stemming makes mistakes ("news" is no plural in
English, but German rules treat it as one), so a form never weighs as much as the word, and weighs less the fewer
languages agree on it and the more of its ending differs.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.policy import Ints
from vedette.text import fold_character, raw_word_hashes

# Stop words are written here in their usual spelling and stored in indexed form (``vedette.text``). A common word of
# one language may be meaningful in another ("die", "war", "sin"), or even in its own ("will", "it", "us"): a query of
# only stop words must still find them.
_LISTS = {
    "en": """
        a all also an and any are as at be been but by can do does for from had has have how i if in is it its my no not
        of on or our so some than that the their them there these they this to was we were what when where which who
        will with you your
        """,
    "de": """
        aber als am an auch auf aus bei bin bis das dass dem den der des die doch durch ein eine einem einen einer er es
        für hat ich ihr im in ist kann man mit nach nicht noch nur oder sich sie sind so über um und uns vom von war was
        wenn wie wir wird zu zum zur
        """,
    "fr": """
        à au aux avec ce ces cette comme dans de des du elle en est et être eux il ils je la le les leur lui mais même
        mon ne nos notre nous on ont ou où par pas plus pour qu que qui sa sans se ses son sont sur ta te tu un une vos
        votre vous y
        """,
    "es": """
        a al algo como con cuando de del desde donde el ella ellos en entre era es esta este esto están fue ha han hay
        la las le les lo los más me mi muy no nos o para pero por porque que qué se ser si sin sobre son su sus también
        te tu un una y ya
        """,
    "it": """
        a ai al alla alle anche che chi ci come con cosa da dal dalla dei del della delle di dove e è ed gli ha hanno i
        il in io la le lo loro ma mi nel nella non o per perché più quando questa questo se sei si sono su sua sul suo
        ti tra un una uno
        """,
    "pt": """
        a ao aos as até com como da das de do dos e é ela ele em entre era essa esse esta este eu foi há isso já lhe
        mais mas me mesmo muito na não nas no nos o os ou para pela pelo por qual quando que quem se sem ser seu sua
        são também te um uma
        """,
    "nl": """
        aan al als bij dat de deze die dit door dus een en er geen had heb heeft het hij hoe ik in is je kan maar me met
        mijn naar niet nog nu of om onder ons ook op over te tot uit van veel voor waar was wat we wel wie wij worden
        wordt ze zich zijn zo
        """,
    "sv": """
        alla att av bara de den det dig din du där efter ej eller en er ett från för ha hade han har hon hur här i icke
        in inte jag kan man med men mig min mot ni nu när och om oss på samma sig sin ska som så till under upp ut var
        vi vid är
        """,
    "da": """
        af alle at blev da de dem den der deres det dig din du efter eller en er et for fra ham han har havde hun hvad
        hvis hvor i ikke ind jeg kan man med men mig min mod ned nej noget nogle nu når og også om op os på sig sin
        skal som til ud var vi
        """,
    "no": """
        alle at av ble bli da de dem den der det dette du eller en er et etter for fra få ha hadde han har hun hva hvis
        hvor i ikke inn jeg kan man med men meg min mot nå når og også om opp oss over på seg sin skal som så til under
        ut var ved vi
        """,
    "fi": """
        ei eikä en ennen että hän he ja jo joka jonka jos kaikki kanssa koska kuin kun me mikä minä mitä mukaan mutta
        muut myös ne niin noin nyt ole oli olla on ovat se sekä sen siitä sille sitä sinä tai tämä te tuo vaan vain
        vielä voi
        """,
    "ru": """
        без был была были быть в вам вас во вот все вы где да для до его ее если есть еще же за и из или им их к как ко
        когда кто ли мы на не нет но ну о об он она они от по при с со так то только ты у уже что это я
        """,  # noqa: RUF001 -- Russian is written in Cyrillic
}

# Folded by character: `split_words` would build its table of all characters, in every process that imports this.
STOP_WORDS: dict[str, tuple[str, ...]] = {
    language: tuple(dict.fromkeys("".join(map(fold_character, written)).split()))
    for language, written in _LISTS.items()
}
_ALL = frozenset(word for words in STOP_WORDS.values() for word in words)


def is_stop_word(word: str) -> bool:
    """Check whether a word, in indexed form, is common in one of the languages.

    >>> is_stop_word("the"), is_stop_word("fur"), is_stop_word("kafka")
    (True, True, False)
    """
    return word in _ALL


Stemmer = Callable[[str, Sequence[str]], list[str]]
Keys = npt.NDArray[np.uint64]

MIN_LETTERS = 4  # letters of a word that has other forms
MAX_LETTERS = 40
LATIN_END = "\u0250"  # beyond this, few of the languages matter
OTHER_SCRIPTS = ("ar", "el", "ru", "ta")
CLOSE_WEIGHT, CLOSE_LETTERS = 0.8, 2  # of forms whose endings differ by this few letters, as singular and plural do
PER_LETTER, MIN_WEIGHT = 0.08, 0.3
MIN_AGREEMENT_FACTOR = 0.7  # the rest of a weight if almost no language agrees

_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The sorted vocabulary of an index. Words are addressed by *row*, their alphabetical position.

    ``text`` has the words one after the other, ``starts`` the start of each and finally the end of the text, ``df`` how
    many pages have each. ``stem_keys`` are sorted stem hashes, and ``stem_rows`` the word of each, most frequent first
    if a stem has several: twelve bytes for each word and language.
    """

    text: bytes
    starts: Ints
    df: Ints
    languages: tuple[str, ...]
    stem: Stemmer
    stem_keys: Keys
    stem_rows: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.df)

    def get_word(self, row: int) -> str:
        """Return the word of a vocabulary row."""
        return self._word_bytes(row).decode("utf-8", "surrogatepass")

    def doc_freq(self, word: str) -> int:
        """Return how many pages have a word; 0 if none has."""
        row = self._bisect(word)
        return int(self.df[row]) if row < len(self) and self.get_word(row) == word else 0

    def find_prefix(self, prefix: str) -> range:
        """Return the rows of all vocabulary words with a prefix, including the prefix itself."""
        first, encoded = self._bisect(prefix), _encode_word(prefix)
        if first == len(self) or not self._word_bytes(first).startswith(encoded):
            return range(0)
        end = bisect_left(range(len(self)), 1, first, key=lambda row: not self._word_bytes(row).startswith(encoded))
        return range(first, end)

    def find_forms(self, word: str, most: int = 6) -> tuple[tuple[str, float], ...]:
        """Find inflected forms of a word in the vocabulary, most frequent first, each with a weight below 1.

        The word itself need not be in the index. Short words and words with digits have no other forms.
        """
        if not _is_inflected(word):
            return ()
        sharing = [self._find_by_stem(language, word, most) for language in self.languages]
        rows, languages = np.unique(np.concatenate([np.zeros(0, np.int64), *sharing]), return_counts=True)
        best = np.lexsort((rows, -self.df[rows]))
        found = ((self.get_word(int(rows[at])), int(languages[at])) for at in best)
        forms = [(form, self._weigh_form(word, form, count)) for form, count in found if form != word]
        return tuple(forms[:most])

    def _find_by_stem(self, language: str, word: str, most: int) -> Ints:
        """Find the most frequent words with the same stem in a language, possibly including the word itself."""
        key = _compute_stem_keys(language, self.stem(language, [word]))[0]
        first = int(np.searchsorted(self.stem_keys, key))
        few = slice(first, first + most + 1)
        return np.asarray(self.stem_rows[few][self.stem_keys[few] == key], np.int64)

    def _weigh_form(self, word: str, form: str, agreeing: int) -> float:
        voters = [language for language in self.languages if language not in OTHER_SCRIPTS]
        share = min(1.0, agreeing / len(voters)) if word < LATIN_END and voters else 1.0
        return round(_compute_likeness(word, form) * (MIN_AGREEMENT_FACTOR + (1 - MIN_AGREEMENT_FACTOR) * share), 3)

    def _bisect(self, word: str) -> int:
        return bisect_left(range(len(self)), _encode_word(word), key=self._word_bytes)

    def _word_bytes(self, row: int) -> bytes:
        return self.text[self.starts[row] : self.starts[row + 1]]


def build_vocabulary(pairs: Iterable[tuple[str, int]], stem: Stemmer, languages: Sequence[str]) -> Vocabulary:
    """Build the vocabulary from words and their page counts; of duplicates the larger count wins.

    ``stem`` stems many words of a language (ISO 639-1) at once.

    >>> plain = lambda language, words: [word.rstrip("s") for word in words]
    >>> words = build_vocabulary([("cache", 40), ("caches", 12), ("cash", 3)], plain, ["en"])
    >>> words.doc_freq("caches"), words.find_forms("caches"), words.find_forms("cash")
    (12, (('cache', 0.8),), ())
    >>> [words.get_word(row) for row in words.find_prefix("cac")]
    ['cache', 'caches']
    """
    known: dict[str, int] = {}
    for word, pages in pairs:
        if word and known.get(word, 0) < pages:
            known[word] = pages
    words = sorted(known)
    encoded = [_encode_word(word) for word in words]
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in encoded], out=starts[1:])
    df = np.array([known[word] for word in words], np.int64)
    languages = tuple(dict.fromkeys(languages))
    keys, rows = _build_stem_index(words, df, stem, languages)
    return Vocabulary(b"".join(encoded), starts, df, languages, stem, keys, rows)


def _build_stem_index(
    words: list[str], df: Ints, stem: Stemmer, languages: tuple[str, ...]
) -> tuple[Keys, npt.NDArray[np.uint32]]:
    """Build the stem index of the vocabulary: the sorted stem keys of all languages, and their words."""
    inflected = np.array([row for row, word in enumerate(words) if _is_inflected(word)], np.int64)
    rows = inflected[np.argsort(-df[inflected], kind="stable")]
    chosen = [words[row] for row in rows.tolist()]
    parts = [_compute_stem_keys(language, stem(language, chosen)) for language in languages]
    keys = np.concatenate([np.zeros(0, np.uint64), *parts])
    order = np.argsort(keys, kind="stable")
    return keys[order], np.tile(rows.astype(np.uint32), len(languages))[order]


def _compute_stem_keys(language: str, stems: list[str]) -> Keys:
    """Compute a hash key for each stem in a language."""
    form = " ".join([stem or "-" for stem in stems])
    keys = raw_word_hashes(_encode_word(form)) if stems else np.zeros(0, np.uint64)
    keys ^= np.uint64(xxhash.xxh3_64_intdigest(language.encode()))
    return keys


def _encode_word(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


def _is_inflected(word: str) -> bool:
    """Check whether a word may have inflected forms: numbers, short words and very long ones have none."""
    return MIN_LETTERS <= len(word) <= MAX_LETTERS and not _DIGIT.search(word)


def _compute_likeness(word: str, form: str) -> float:
    """Compute how close two inflected forms are, by the length of their endings after the common prefix."""
    pairs = zip(word, form, strict=False)
    same = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(word), len(form)))
    further = max(0, len(word) + len(form) - 2 * same - CLOSE_LETTERS)
    return max(MIN_WEIGHT, CLOSE_WEIGHT - PER_LETTER * further)
