"""Secrets are only sent to their own site, and no error message shows them."""

import os
from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vedette.adapters.files.secret_files import read_secrets
from vedette.errors import ConfigError
from vedette.fetch.credentials import Secrets, parse_secrets, redact, select_headers
from vedette.model import FetchRequest, Site

HORSE = "correct-horse-battery"
KEY = Secrets((("x-key", HORSE),))
WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)


def complaint(text: str) -> str:
    """Return the error about an invalid secrets text: one line, without the secret."""
    with pytest.raises(ConfigError) as caught:
        parse_secrets(text)
    assert str(caught.value).isprintable()
    assert HORSE not in str(caught.value)
    return str(caught.value)


def test_lines_are_headers() -> None:
    """Header lines, empty lines and comments are read, with any line ends."""
    text = "\ufeff# intranet\r\nCookie: a=b; c=d \r\n\r\n  # more\nX-Key:k:1\n"
    assert parse_secrets(text).headers == (("cookie", "a=b; c=d"), ("x-key", "k:1"))
    assert parse_secrets("").headers == ()


@given(st.from_regex(r"[^:\s\0-\x1f]{1,20}", fullmatch=True), st.from_regex(r"\S{1,20}", fullmatch=True))
def test_basic_is_user_and_password(user: str, password: str) -> None:
    """A password may contain anything, including colons and letters of any script; the server decodes both."""
    ((name, value),) = parse_secrets(f"Basic: {user}:{password}").headers
    scheme, _, coded = value.partition(" ")
    assert (name, scheme) == ("authorization", "Basic")
    assert b64decode(coded).decode() == f"{user}:{password}"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (HORSE, "line 1"),
        (f"\n#\n{HORSE} {HORSE}: x", "line 3"),
        (f"x-key: a\nx {HORSE}: y", "line 2"),
        ("x-key:", "line 1"),
        (f"Basic: {HORSE}", "password"),
        (f"Host: {HORSE}", "host"),
        (f"transfer-encoding: {HORSE}", "transfer-encoding"),
        (f"Proxy-Authorization: {HORSE}", "proxy-authorization"),
        (f"User-Agent: {HORSE}", "user-agent"),
        (f"Basic: a:{HORSE}\nAuthorization: {HORSE}", "authorization"),
        (f"x-key: {HORSE}\rx-evil: 1", "line 1"),
        (f"x-key: {HORSE}\x00", "line 1"),
        (f"x-key: {HORSE}\u20ac", "line 1"),
    ],
)
def test_a_mistake_is_told_without_the_text(text: str, wrong: str) -> None:
    """The error gives the line or the header, without repeating its content."""
    assert wrong in complaint(text)


@pytest.mark.parametrize(
    ("start", "url", "sent"),
    [
        ("https://a.test/docs/", "https://a.test/other", True),
        ("https://a.test/", "https://a.test:443/", True),
        ("https://a.test/", "https://b.a.test/", False),
        ("https://b.a.test/", "https://a.test/", False),
        ("https://a.test/", "https://a.test.evil.test/", False),
        ("https://a.test/", "https://evil.test/?https://a.test/", False),
        ("https://a.test/", "https://a.test@evil.test/", False),
        ("https://a.test/", "http://a.test/", False),
        ("http://a.test/", "http://a.test/x", True),
        ("http://a.test/", "https://a.test/x", True),
        ("https://a.test/", "https://a.test:8443/", False),
        ("http://a.test:8080/", "http://a.test:8080/x", True),
        ("http://a.test:8080/", "http://a.test:8081/x", False),
        ("http://a.test:8080/", "https://a.test/x", False),
        ("https://10.0.0.7/", "http://10.0.0.7/", True),
        ("https://[fd00::7]/", "http://[fd00::7]/", True),
        ("https://93.184.216.34/", "http://93.184.216.34/", False),
    ],
)
def test_who_gets_them(start: str, url: str, *, sent: bool) -> None:
    """Credentials go to the host and port of the start URL, over https only, unless it is http or private."""
    assert select_headers(KEY, Site(start), url) == (KEY.headers if sent else ())


@given(WORDS, st.sampled_from(["Cookie", "X-Key", "Authorization"]))
def test_nothing_shows_them(secret: str, name: str) -> None:
    """The repr of secrets, tasks and sites doesn't contain them, and they are removed from texts of a server."""
    site = Site("https://a.test/", secrets="env:KEY")
    assume(secret not in repr(site))  # a word that its settings have anyway
    secrets = parse_secrets(f"{name}: {secret}")
    ask = FetchRequest("https://a.test/", "page", (("accept", "*/*"),), secrets.headers)
    shown = f"{secrets!r} {ask!r} {site!r} {secrets} {ask}"
    assert secret not in shown
    assert secret not in redact(f"bad value: {secret}, {secret}{secret}", secrets.headers)


def test_part_of_a_secret_is_a_secret() -> None:
    """Text in which a server repeats only the token, or one of the cookies, is cleaned as well."""
    headers = parse_secrets(f"Authorization: Bearer {HORSE}\nCookie: theme=dark; session=0123456789abcdef").headers
    assert redact(f"unknown token {HORSE} in 0123456789abcdef", headers) == "unknown token … in …"


def test_no_place_no_secrets() -> None:
    """Without secrets, a site is requested without credentials."""
    assert read_secrets("") == Secrets()


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of the variable is used; the error names an unset variable."""
    monkeypatch.setenv("WIKI_KEY", f"X-Key: {HORSE}")
    assert read_secrets("env:WIKI_KEY") == KEY
    monkeypatch.delenv("WIKI_KEY")
    with pytest.raises(ConfigError, match="environment variable WIKI_KEY"):
        read_secrets("env:WIKI_KEY")


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_from_a_private_file(tmp_path: Path, mode: int) -> None:
    """A file that only its owner can read is accepted."""
    path = tmp_path / "wiki"
    path.write_text(f"X-Key: {HORSE}\n")
    path.chmod(mode)
    assert read_secrets(f"file:{path}") == KEY


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o777])
def test_a_file_for_others_is_refused(tmp_path: Path, mode: int) -> None:
    """If others have any access to the file, the error says what to type, and typing it helps."""
    path = tmp_path / "wiki"
    path.write_text(f"X-Key: {HORSE}\n")
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        read_secrets(f"file:{path}")
    path.chmod(0o600)
    assert read_secrets(f"file:{path}") == KEY


def test_files_that_are_none(tmp_path: Path) -> None:
    """A missing, special, endless or binary file is reported in one line, without waiting."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    for name, content in (("binary", b"X-Key: \xff"), ("endless", b"#" * 1_000_000)):
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    for name in ("missing", "pipe", "folder", "binary", "endless", "nul\0"):
        with pytest.raises(ConfigError) as caught:
            read_secrets(f"file:{tmp_path / name}")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("where", [HORSE, f"Bearer {HORSE}", f"http://{HORSE}", "env:", "file:", f"ENV:{HORSE}"])
def test_a_secret_in_the_place_of_a_place(where: str) -> None:
    """A secret given instead of its location is reported, without repeating it."""
    with pytest.raises(ConfigError, match="env:NAME or file:PATH") as caught:
        read_secrets(where)
    assert HORSE not in str(caught.value)


def test_a_mistake_in_a_file_names_the_file(tmp_path: Path) -> None:
    """The error names file and line, not the text."""
    path = tmp_path / "wiki"
    path.write_text(f"# key\n{HORSE}\n")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=f"file:{path}: line 2") as caught:
        read_secrets(f"file:{path}")
    assert HORSE not in str(caught.value)
