"""Messages between a gateway and the search processes of shards, as MessagePack.

Bytes are decoded to values, never to code. Both ends run the same version of Vedette, so the format may change with any
release.
"""

from typing import Any, Final, NamedTuple

import msgspec

from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.adapters.crawl_store.status_file import FailingProcess
from vedette.adapters.crawl_store.url_list import UrlFilter, UrlPage
from vedette.engine.search.shard_search import (
    Correction,
    Cosines,
    Description,
    Glance,
    ShardCandidates,
    ShownResults,
    ShownRow,
    Statistics,
)
from vedette.errors import VedetteError
from vedette.model import Site
from vedette.serve.slate import SearchRequest, SearchResult
from vedette.web.console.ports.alerts import AlertLine, SentMessage
from vedette.web.console.ports.monitoring import (
    BudgetReport,
    CrawlStatus,
    DiscoveryReport,
    HostList,
    RefreshStatus,
    RuntimeSettings,
    StorageStatus,
)
from vedette.web.console.ports.sites import RemovalImpact, SiteLine, SitePreview, StoredRule, UnlistedHost
from vedette.web.ports import CachedCopy, IndexOverview
from vedette.web.public.new_page_ports import ItemBatch

Allowed = tuple[str, ...]

# Calls of a shard's searcher, and of the search over its folder.
_SEARCHER = frozenset(("describe", "correct", "look", "loosen", "score", "get_examples", "measure", "rescore"))
_ENDED, _FAILED = b"\x00", b"\x01"


class _Verb(NamedTuple):
    """The types of a verb's arguments and of its reply."""

    arguments: msgspec.msgpack.Decoder[Any]
    reply: msgspec.msgpack.Decoder[Any]


def _build_verb(arguments: Any, reply: Any) -> _Verb:  # noqa: ANN401 - types
    return _Verb(msgspec.msgpack.Decoder(arguments), msgspec.msgpack.Decoder(reply))


_VERBS: Final = {
    "describe": _build_verb(tuple[list[str]], Description),
    "correct": _build_verb(tuple[Allowed, Allowed, Allowed], Correction),
    "look": _build_verb(tuple[str, SearchRequest, Statistics, float], Glance),
    "loosen": _build_verb(tuple[str, int], Glance),
    "score": _build_verb(tuple[str, dict[str, int]], ShardCandidates),
    "get_examples": _build_verb(tuple[str, list[int], list[float]], bytes),
    "measure": _build_verb(tuple[str, bytes], Cosines),
    "rescore": _build_verb(tuple[str, float, float], ShardCandidates),
    "show": _build_verb(tuple[str, tuple[ShownRow, ...], bool], ShownResults),
    "suggest": _build_verb(tuple[str, int, str, Allowed], tuple[str, ...]),
    "get_overview": _build_verb(tuple[Allowed], IndexOverview),
    "find_copy": _build_verb(tuple[int, Allowed], CachedCopy | None),
    "find_page": _build_verb(tuple[str, Allowed], int | None),
    "find_similar": _build_verb(tuple[int, Allowed], tuple[SearchResult, ...]),
    "list_sites": _build_verb(tuple[()], tuple[Site, ...]),
    "list_keys": _build_verb(tuple[()], list[UserKeyRow]),
    "get_incomplete_reason": _build_verb(tuple[()], str),
    "list_failing": _build_verb(tuple[()], tuple[FailingProcess, ...]),
    "count_exceeded": _build_verb(tuple[()], int),
    # Verbs that begin with the name of a service are for the console.
    "monitoring.get_crawl_status": _build_verb(tuple[()], CrawlStatus),
    "monitoring.list_hosts": _build_verb(tuple[()], HostList),
    "monitoring.get_refresh_status": _build_verb(tuple[()], RefreshStatus),
    "monitoring.get_discovery_report": _build_verb(tuple[()], DiscoveryReport),
    "monitoring.get_budget_report": _build_verb(tuple[int], BudgetReport),
    "monitoring.get_runtime_settings": _build_verb(tuple[()], RuntimeSettings),
    "monitoring.list_gains": _build_verb(tuple[float], list[tuple[float, float]]),
    "monitoring.get_storage_status": _build_verb(tuple[()], StorageStatus),
    "sites.list_sites": _build_verb(tuple[()], list[SiteLine]),
    "sites.preview_site": _build_verb(tuple[Site, float | None], SitePreview),
    "sites.list_urls": _build_verb(tuple[UrlFilter, int, int], UrlPage),
    "sites.preview_removal": _build_verb(tuple[str], RemovalImpact),
    "sites.explain_url": _build_verb(tuple[str], dict[str, Any]),
    "sites.list_unlisted_hosts": _build_verb(tuple[int], list[UnlistedHost]),
    "sites.list_rules": _build_verb(tuple[()], list[StoredRule]),
    "alerts.list_alerts": _build_verb(tuple[()], list[AlertLine]),
    "alerts.list_messages": _build_verb(tuple[int], list[SentMessage]),
    "alerts.send_test": _build_verb(tuple[str], SentMessage),
    "pages.find_hosts": _build_verb(tuple[list[int]], dict[int, int]),
    "pages.find_url": _build_verb(tuple[int], str),
    "news.list_after": _build_verb(tuple[int, int, str, Allowed], ItemBatch),
    "news.list_latest": _build_verb(tuple[int, str, Allowed, int | None], ItemBatch),
}
_encode: Final = msgspec.msgpack.Encoder(enc_hook=lambda value: value.item()).encode  # numbers of numpy


class ShardFailure(VedetteError):
    """A shard's search process failed to answer a call."""


def encode_call(verb: str, arguments: tuple[Any, ...]) -> bytes:
    """Encode a call: the length of its verb, the verb, and its arguments."""
    name = verb.encode()
    return bytes((len(name),)) + name + _encode(arguments)


def decode_call(data: bytes) -> tuple[str, tuple[Any, ...]]:
    """Decode a call; raise ``ValueError`` if the bytes are not a call."""
    verb = data[1 : 1 + data[0]].decode("ascii", "replace") if data else ""
    if verb not in _VERBS:
        raise ValueError("unknown verb")
    arguments: tuple[Any, ...] = _VERBS[verb].arguments.decode(memoryview(data)[1 + data[0] :])
    return verb, arguments


def is_for_console(data: bytes) -> bool:
    """Check whether a call is for the console, by its first bytes."""
    return bool(data) and b"." in data[1 : 1 + data[0]]


def call_verb(search: Any, verb: str, arguments: tuple[Any, ...]) -> object:  # noqa: ANN401 - a shard's search, whose methods are checked by the table
    """Call a verb of a shard's search; without an index, it finds nothing."""
    if verb not in _SEARCHER:
        return getattr(search, verb)(*arguments)
    searcher = search.get_searcher()
    return _NOTHING[verb] if searcher is None else getattr(searcher, verb)(*arguments)


_NOTHING: Final[dict[str, object]] = {
    "describe": Description(0, {}),
    "correct": Correction(),
    "look": Glance({}),
    "loosen": Glance({}),
    "score": ShardCandidates(),
    "get_examples": b"",
    "measure": Cosines(),
    "rescore": ShardCandidates(),
}


def encode_reply(reply: object) -> bytes:
    """Encode a reply."""
    return _ENDED + _encode(reply)


def encode_failure(words: str) -> bytes:
    """Encode why a call failed."""
    return _FAILED + words.encode("utf-8", "replace")


def decode_reply(verb: str, data: bytes) -> Any:  # noqa: ANN401 - of the verb's type
    """Decode a reply to a verb; raise ``ShardFailure`` if the call failed, ``ValueError`` for other bytes."""
    if data[:1] == _FAILED:
        raise ShardFailure(data[1:].decode("utf-8", "replace"))
    return _VERBS[verb].reply.decode(memoryview(data)[1:])
