"""Replay: parse an archived or imported response as if it had just been fetched.

The replayed response gets its own archive record. No request is invented for it.
"""

from dataclasses import dataclass
from http import HTTPStatus

from vedette.adapters.archive.warc_record import Exchange, build_answer_record, compute_digest
from vedette.adapters.documents.reader import DocumentReader, DocumentText, read_and_wait
from vedette.engine.fetcher.page_reader import add_document, parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import FetchSuccess, FetchTask
from vedette.fetch.body import decode
from vedette.model import Failure, FetchResponse, Headers


@dataclass(frozen=True, slots=True)
class ImportedResponse:
    """An archived or imported HTTP response to replay; ``payload`` is still encoded, ``source`` is its origin."""

    url: str
    fetched_s: float
    status: int
    headers: Headers
    payload: bytes
    source: str


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """A replayed response as the coordinator would have received it, and its compressed WARC record."""

    result: FetchSuccess
    record: bytes


def replay(old: ImportedResponse, errand: FetchTask, links: LinkResolver, limit_bytes: int) -> ReplayResult | Failure:
    """Replay an archived or imported response; return the failure if its body cannot be decompressed."""
    body = decode_body(old, limit_bytes)
    if isinstance(body, Failure):
        return body
    result = parse_outcome(errand, to_answer(old, body), links)
    assert isinstance(result, FetchSuccess)
    result = result._replace(payload_digest=compute_digest(old.payload))
    exchange = Exchange(old.url, old.fetched_s, b"", _format_head(old), old.payload, "")
    return ReplayResult(result, build_answer_record(exchange, old.source)[1])


def replay_document(
    result: FetchSuccess, old: ImportedResponse, links: LinkResolver, limit_bytes: int, reader: DocumentReader[int]
) -> FetchSuccess:
    """Add the text of a document to its replayed result; waits for the reader's child process."""
    body = decode_body(old, limit_bytes)
    if isinstance(body, Failure):
        return result
    found = read_and_wait(reader, body)
    text, trouble = (found.text, "") if isinstance(found, DocumentText) else ("", str(found.reason))
    answer = to_answer(old, body)
    return add_document(result, answer, links, title=found.title, text=text, trouble=trouble, kind=found.kind)


def decode_body(old: ImportedResponse, limit_bytes: int) -> bytes | Failure:
    """Decode the content coding of a replayed body; return the failure if it cannot be decompressed."""
    coding = ", ".join(value for name, value in old.headers if name == "content-encoding")
    return decode(old.payload, coding, limit_bytes)


def to_answer(old: ImportedResponse, body: bytes) -> FetchResponse:
    """Convert an imported response to a fetch response, as if a server had just sent it."""
    return FetchResponse(
        old.url, "page", old.status, old.headers, body, started_s=old.fetched_s, ended_s=old.fetched_s, address=""
    )


def _format_head(old: ImportedResponse) -> bytes:
    known = {status.value: status.phrase for status in HTTPStatus}
    lines = [f"HTTP/1.1 {old.status} {known.get(old.status, '')}", *(f"{name}: {value}" for name, value in old.headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
