"""Parsing of alerts on new pages as people type them, in a form or on a command line; errors say what is right."""

import re
import secrets

from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.discover.urls.scope import read_site
from vedette.errors import UsageError
from vedette.index.query.parser import MAX_CHARACTERS, parse_query
from vedette.model import origin_of
from vedette.web.commands.rule_text import parse_web_url

MAX_URL_LENGTH = 2000
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_READER = re.compile(r"[^\x00-\x1f\x7f-\x9f]{0,200}")
_EVERYWHERE = "*"


def parse_alert(name: str, place: str = "", query: str = "", webhook: str = "", reader: str = "") -> AlertRow:
    """Parse an alert's name, place, query, webhook and reader, as typed; give it a new id.

    >>> parse_alert("harbour", "https://News.example.org/Local/", "harbour")[2:4]
    ('news.example.org/local', 'harbour')
    """
    row = AlertRow(
        parse_name(name),
        secrets.token_hex(8),
        parse_place(place),
        parse_query_text(query),
        parse_webhook(webhook),
        parse_reader(reader),
    )
    if not row.place and not row.query:
        raise UsageError("specify what to watch: a site, a path on it, or a query; * matches everything")
    if row.reader and not row.webhook:
        raise UsageError("only a webhook can have a reader; feeds and the API check the signed-in user instead")
    return row


def parse_name(text: str) -> str:
    """Parse the typed name of an alert, which must fit into a URL."""
    name = text.strip().lower()
    if not _NAME.fullmatch(name):
        raise UsageError(
            "a watch name can have up to 64 letters, digits, dashes, dots and underscores, for example harbor-news"
        )
    return name


def parse_place(text: str) -> str:
    """Parse the typed place of an alert: a host or a path on one, as the index has them; ``*`` is everywhere."""
    text = text.strip()
    if text in {"", _EVERYWHERE}:
        return text
    if len(text) > MAX_URL_LENGTH:
        raise UsageError(f"a host or path can be at most {MAX_URL_LENGTH} characters long")
    url = read_site(text).start
    authority = str(origin_of(url)).partition("://")[2]
    path = url.partition("://")[2].partition("/")[2].partition("?")[0].partition("#")[0]
    return f"{authority}/{path}".lower().rstrip("/")


def parse_query_text(text: str) -> str:
    """Parse the typed query of an alert; it must contain words to search for."""
    text = text.strip()
    if len(text) > MAX_CHARACTERS:
        raise UsageError(f"a query can be at most {MAX_CHARACTERS} characters long")
    if text and parse_query(text).is_empty:
        raise UsageError("this query matches nothing: add a word that new pages should contain")
    return text


def parse_webhook(text: str) -> str:
    """Parse the typed webhook URL of an alert; credentials in it are refused, since they would be shown."""
    text = text.strip()
    if not text:
        return ""
    if len(text) > MAX_URL_LENGTH:
        raise UsageError(f"a webhook URL can be at most {MAX_URL_LENGTH} characters long")
    if not text.startswith(("http://", "https://")):
        raise UsageError("a webhook must be an http(s) URL, such as https://example.org/hooks/new-pages")
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise UsageError("a webhook URL must not contain a user name or password: messages are signed instead")
    return parse_web_url(text).partition("#")[0]


def parse_reader(text: str) -> str:
    """Parse the typed reader of an alert: a name that private sites list among their readers."""
    name = text.strip()
    if not _READER.fullmatch(name):
        raise UsageError("a reader name can be at most 200 printable characters long")
    return name
