"""Keys are found by their secret, and nothing stored reveals it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.small_search import made_key

from vedette.errors import UsageError
from vedette.web.auth.keys import Key, create_key, find_key

SECRETS = st.binary(min_size=32, max_size=32)


@given(st.lists(SECRETS, min_size=1, max_size=8, unique=True), st.data())
def test_each_secret_finds_its_own_key(randoms: list[bytes], data: st.DataObject) -> None:
    """This works with any number of keys."""
    made = [create_key(f"reader {place}", ["search"], None, [], each) for place, each in enumerate(randoms)]
    secret, key = data.draw(st.sampled_from(made))
    assert find_key([each for _, each in made], secret) is key


@given(st.text() | SECRETS.map(lambda each: create_key("x", [], None, [], each)[0]))
def test_invalid_secrets_match_no_key(presented: str) -> None:
    """Guesses, hashes and anything else that is displayed find nothing; lone surrogates do no harm."""
    _, key = made_key("wiki")
    assert find_key([key], presented) is None
    assert find_key([], presented) is None
    assert find_key([key], key.hash.hex()) is None


def test_a_secret_is_all_of_its_randomness_and_is_not_kept() -> None:
    """It is recognizable as a key, differs with every byte, and the stored key does not reveal it."""
    secret, key = create_key("wiki", ["search"], None, [], bytes(31) + b"\x01")
    assert secret.startswith("vk_")
    assert secret.isascii()
    assert secret != create_key("wiki", ["search"], None, [], bytes(32))[0]
    assert secret not in repr(key)


def test_a_secret_with_something_behind_it_is_another() -> None:
    """Truncating a longer secret does not make it valid."""
    secret, key = made_key("wiki")
    assert find_key([key], secret + "x") is None
    assert find_key([key], secret + " " * 500) is None


def test_a_revoked_key_opens_nothing() -> None:
    """It is refused from the moment it is revoked."""
    secret, key = made_key("wiki")
    revoked = Key(key.name, key.hash, key.scopes, revoked_s=1.0)
    assert find_key([revoked], secret) is None


@pytest.mark.parametrize("name", ["", " ", "*", "a\nb", "x" * 65, " a", "a "])
def test_a_name_is_short_and_means_one_reader(name: str) -> None:
    """``*`` means all readers, so no key may have that name."""
    with pytest.raises(UsageError, match="name"):
        create_key(name, ["search"], None, [], bytes(32))


def test_wrong_scopes_and_sites_are_reported() -> None:
    """Each error says what is valid."""
    with pytest.raises(UsageError, match="choose from search, private, admin"):
        create_key("wiki", ["searching"], None, [], bytes(32))
    with pytest.raises(UsageError, match=r"docs\.example\.org"):
        create_key("wiki", ["search"], None, ["https://docs.example.org/"], bytes(32))
    with pytest.raises(ValueError, match="random"):
        create_key("wiki", ["search"], None, [], b"short")
