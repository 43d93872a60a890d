"""Replay: parse an archived or imported answer as if it had just been fetched.

It gets an archive record of its own. The request that brought it is not invented: there is none in the archive.
"""

from dataclasses import dataclass
from http import HTTPStatus

from vedette.adapters.archive.warc_record import Exchange, build_answer_record, compute_digest
from vedette.engine.fetcher.page_reader import parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import FetchSuccess, FetchTask
from vedette.fetch.body import decode
from vedette.model import Failure, FetchResponse, Headers


@dataclass(frozen=True, slots=True)
class ImportedResponse:
    """What a server once said: ``payload`` has its content coding still, ``source`` says where it was found."""

    url: str
    fetched_s: float
    status: int
    headers: Headers
    payload: bytes
    source: str


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The answer as the coordinator would have got it, and its packed record."""

    result: FetchSuccess
    record: bytes


def replay(old: ImportedResponse, errand: FetchTask, links: LinkResolver, limit_bytes: int) -> ReplayResult | Failure:
    """Read it; why not, where its body cannot be unpacked."""
    body = decode_body(old, limit_bytes)
    if isinstance(body, Failure):
        return body
    result = parse_outcome(errand, to_answer(old, body), links)
    assert isinstance(result, FetchSuccess)
    result = result._replace(payload_digest=compute_digest(old.payload))
    exchange = Exchange(old.url, old.fetched_s, b"", _format_head(old), old.payload, "")
    return ReplayResult(result, build_answer_record(exchange, old.source)[1])


def decode_body(old: ImportedResponse, limit_bytes: int) -> bytes | Failure:
    """Its body without the content coding; why not, where it cannot be unpacked."""
    coding = next((value for name, value in old.headers if name == "content-encoding"), "")
    return decode(old.payload, coding, limit_bytes)


def to_answer(old: ImportedResponse, body: bytes) -> FetchResponse:
    """As if a server had just said it."""
    return FetchResponse(
        old.url, "page", old.status, old.headers, body, started_s=old.fetched_s, ended_s=old.fetched_s, address=""
    )


def _format_head(old: ImportedResponse) -> bytes:
    known = {status.value: status.phrase for status in HTTPStatus}
    lines = [f"HTTP/1.1 {old.status} {known.get(old.status, '')}", *(f"{name}: {value}" for name, value in old.headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
