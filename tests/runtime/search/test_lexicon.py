"""The lexicon file: saved data is loaded again, and nothing else is, least of all a pickle."""

from pathlib import Path

import pytest

from vedette.adapters.index_store.stemming import stem
from vedette.index.query.spelling import build_spell_checker, correct_words
from vedette.index.query.suggestions import build_suggestions
from vedette.index.query.vocabulary import build_vocabulary
from vedette.runtime.search.lexicon import FILE, Lexicon, build_empty_lexicon, read_lexicon, save_lexicon

WORDS = [("kafka", 900), ("streams", 400), ("stream", 300), ("überblick", 30), ("cache", 50), ("caches", 20)]
TITLES = [("Kafka Streams", 3.0), ("Überblick: Kafka", 2.0), ("Caches, explained", 1.0)]
# A pickle that creates the file "touched" in the working folder as soon as it is loaded.
PICKLE = b"cpathlib\nPath.touch\n(cpathlib\nPath\n(S'touched'\ntRtR."


def build_sample() -> Lexicon:
    """Return a lexicon of a few words and titles."""
    vocabulary = build_vocabulary(WORDS, stem, ["en", "de"])
    return Lexicon(vocabulary, build_spell_checker(vocabulary), build_suggestions(TITLES, vocabulary))


def ask(lexicon: Lexicon) -> list[object]:
    """Return a lexicon's answers to a few questions."""
    return [
        *map(lexicon.vocabulary.doc_freq, ("kafka", "überblick", "none")),
        lexicon.vocabulary.find_forms("caches"),
        correct_words(["kafak", "straems"], lexicon.spelling),
        *map(lexicon.suggestions.complete, ("k", "kafka st", "ü", "zz")),
    ]


@pytest.mark.parametrize("lexicon", [build_sample(), build_empty_lexicon()], ids=["words", "empty"])
def test_a_saved_lexicon_answers_the_same(tmp_path: Path, lexicon: Lexicon) -> None:
    """Forms, corrections and completions survive the file."""
    save_lexicon(tmp_path, lexicon)
    read = read_lexicon(tmp_path)
    assert read is not None
    assert ask(read) == ask(lexicon)


def test_a_pickle_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier versions wrote pickles, and anyone may have written this one: it has no side effect."""
    monkeypatch.chdir(tmp_path)
    for data in (PICKLE, b"\x80\x05" + PICKLE):
        (tmp_path / FILE).write_bytes(data)
        assert read_lexicon(tmp_path) is None
    assert not (tmp_path / "touched").exists()


def test_a_damaged_file_is_no_lexicon(tmp_path: Path) -> None:
    """If the file is truncated or a byte is flipped, it is rejected, or gives the same results."""
    lexicon = build_sample()
    save_lexicon(tmp_path, lexicon)
    data = (tmp_path / FILE).read_bytes()
    damaged = [data[:cut] for cut in range(0, len(data), 97)]
    damaged += [data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :] for at in range(0, len(data), 13)]
    expected = ask(lexicon)
    for each in damaged:
        (tmp_path / FILE).write_bytes(each)
        read = read_lexicon(tmp_path)
        assert read is None or ask(read) == expected
