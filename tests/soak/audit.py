"""Audit of a data folder that is not in use, with nothing of Vedette's own code: only SQLite, JSON, gzip and hashes.

What ARCHITECTURE.md promises about files is read here the way a stranger would read it. Each finding is one line.

    python -m tests.soak.audit DATA [ACCESS-LOG]
"""

import base64
import hashlib
import json
import sqlite3
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

FETCHED, REFUSED, FAILED = 1, 2, 3
FORMAT = "10"
DATABASES = ("state.db", "record.db", "watch.db", "ledger.db", "requests.db")
PRIVATE_BITS = 0o077
DAY_S = 86_400.0
# Of the table of known URLs (invariant 5), beside 16 bytes for each: its smallest size.
LEAST_URLS_BYTES = 1 << 16
# Names that exist only while something is written.
UNFINISHED = ("*.partial", "*.tmp", "*.new.db", "~*")


def audit(folder: Path) -> tuple[dict[str, int], list[str]]:
    """Audit a data folder; return its counts, and the problems found."""
    counts: dict[str, int] = {}
    wrong = [*_check_files(folder), *_check_databases(folder)]
    with closing(_open(folder / "state.db")) as db:
        wrong += [*_check_urls(db, counts), *_check_commands(db, counts), *_check_archive(folder, db, counts)]
    table = folder / "urls"
    if table.exists() and table.stat().st_size > 16 * counts["urls"] + LEAST_URLS_BYTES:
        wrong.append(f"the table of {counts['urls']} URLs has {table.stat().st_size} bytes")
    if (folder / "record.db").exists():
        with closing(_open(folder / "record.db")) as db:
            wrong += _check_events(db, counts)
    if (folder / "ledger.db").exists():
        with closing(_open(folder / "ledger.db")) as db, closing(_open(folder / "state.db")) as state:
            wrong += _check_ledger(db, dict(state.execute("SELECT name, budget FROM campaign")), counts)
    return counts, wrong


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def _check_files(folder: Path) -> Iterator[str]:
    """Check that other users have no access, that nothing is half written, and that the format is known."""
    for path in [folder, *folder.rglob("*")]:
        if path.lstat().st_mode & PRIVATE_BITS and path.is_dir() is False and path.stat().st_nlink == 1:
            yield f"{path.relative_to(folder)} can be read by others"
    if folder.stat().st_mode & 0o007:
        yield "the folder is open to others"
    yield from (f"{path.name} was left behind" for pattern in UNFINISHED for path in folder.rglob(pattern))
    if (folder / "format").read_text().strip() != FORMAT:
        yield "the format is not the current one"
    for meta in folder.glob("index/*/tantivy/meta.json"):
        json.loads(meta.read_bytes())


def _check_databases(folder: Path) -> Iterator[str]:
    for name in DATABASES:
        if (folder / name).exists():
            with closing(_open(folder / name)) as db:
                (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
                if verdict != "ok":
                    yield f"{name}: {verdict}"


def _check_urls(db: sqlite3.Connection, counts: dict[str, int]) -> Iterator[str]:
    """Check that each URL is known once, is in its host's partition, and has at most one lease and one final state."""
    counts["urls"] = _count(db, "SELECT count(*) FROM url")
    counts["pages"] = _count(db, "SELECT count(*) FROM page")
    yield from _none(db, "is known twice", "SELECT url FROM url GROUP BY url HAVING count(*) > 1")
    other = "SELECT url.url FROM url JOIN host ON host.id = url.host WHERE host.partition <> url.partition"
    yield from _none(db, "is in another partition than its host", other)
    yield from _none(db, "is a host that is known twice", "SELECT name FROM host GROUP BY name HAVING count(*) > 1")
    for table, column in (
        ("page", "id"),
        ("lease", "url_id"),
        ("note", "url_id"),
        ("retry", "url_id"),
        ("held", "url_id"),
    ):
        lost = f"SELECT {column} FROM {table} WHERE {column} NOT IN (SELECT id FROM url)"  # noqa: S608 - names above
        yield from _none(db, f"in {table} is no URL", lost)
    yield from _none(
        db,
        "has a lease of a later epoch than its owner",
        "SELECT url_id FROM lease WHERE epoch > (SELECT max(epoch) FROM ownership)",
    )
    yield from _none(db, "is tried again without a reason", "SELECT url_id FROM retry EXCEPT SELECT url_id FROM note")
    last = "SELECT url_id, fate FROM fate WHERE id IN (SELECT max(id) FROM fate GROUP BY url_id)"
    fates = dict(db.execute(last))
    pages = {id_ for (id_,) in db.execute("SELECT id FROM page")}
    notes = dict(db.execute("SELECT url_id, why FROM note"))
    for name, fate in (("fetched", FETCHED), ("refused", REFUSED), ("failed", FAILED)):
        counts[name] = sum(one == fate for one in fates.values())
    for id_, fate in fates.items():
        if fate == FETCHED and id_ not in pages:
            yield f"URL {id_} was fetched, but has no page"
        if fate in {REFUSED, FAILED} and not notes.get(id_):
            yield f"URL {id_} was refused or failed without a reason"
    yield from (f"page {id_} was never fetched" for id_ in pages - fates.keys())


def _check_commands(db: sqlite3.Connection, counts: dict[str, int]) -> Iterator[str]:
    """Check that each acknowledged command is in the log, with its author."""
    counts["commands"] = _count(db, "SELECT count(*) FROM action")
    yield from _none(db, "is a command of nobody", "SELECT what FROM action WHERE who = ''")
    row = db.execute("SELECT value FROM life WHERE what = 'answers to commands'").fetchone()
    logged = {id_ for (id_,) in db.execute("SELECT id FROM action")}
    for command, (_, reply) in json.loads(row[0] if row else "{}").items():
        if reply.get("action") and reply["action"] not in logged:
            yield f"command {command} was acknowledged, but is not logged"


def _check_archive(folder: Path, db: sqlite3.Connection, counts: dict[str, int]) -> Iterator[str]:
    """Check that every acknowledged record is on disk, complete, under its URL and with its digest."""
    lengths = dict(db.execute("SELECT file, length FROM archive"))
    for name, length in lengths.items():
        path = folder / "warc" / name
        if not path.exists() or path.stat().st_size < length:
            yield f"{name} is shorter than acknowledged"
    rows = db.execute("SELECT url, file, offset, page.length FROM page JOIN url USING (id) WHERE file IS NOT NULL")
    for url, name, offset, length in rows.fetchall():
        counts["records"] = counts.get("records", 0) + 1
        if offset + length > lengths.get(name, 0):
            yield f"{url} is archived beyond what is acknowledged"
        else:
            yield from _check_record(url, (folder / "warc" / name), offset, length)


def _check_record(url: str, path: Path, offset: int, length: int) -> Iterator[str]:
    with path.open("rb") as file:
        file.seek(offset)
        unpack = zlib.decompressobj(31)
        try:
            record = unpack.decompress(file.read(length))
        except zlib.error as error:
            yield f"the record of {url} cannot be unpacked: {error}"
            return
    head, _, rest = record.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode("utf-8", "replace").split("\r\n")[1:])
    block = rest[: int(fields["Content-Length"])]
    if not unpack.eof or fields.get("WARC-Target-URI") != url:
        yield f"the record of {url} is cut, or that of another URL"
    if fields.get("WARC-Block-Digest") != _digest(block):
        yield f"the record of {url} has another digest than it claims"
    body = block.partition(b"\r\n\r\n")[2]
    if fields["WARC-Type"] == "response" and fields.get("WARC-Payload-Digest") != _digest(body):
        yield f"the body of {url} has another digest than it claims"


def _digest(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()  # noqa: S324 - the archive's digest


def _check_events(db: sqlite3.Connection, counts: dict[str, int]) -> Iterator[str]:
    """Check that each search and click is stored once, and that hourly counts match the list."""
    counts["searches"] = _count(db, "SELECT count(*) FROM slate")
    counts["clicks"] = _count(db, "SELECT count(*) FROM event WHERE kind = 'click'")
    yield from _none(db, "has an event, but was never shown", "SELECT slate FROM event EXCEPT SELECT id FROM slate")
    for what, column in (
        ("searches", "slate WHERE doubt = ''"),
        ("clicks", "event WHERE kind = 'click' AND doubt = ''"),
    ):
        listed = _count(db, f"SELECT count(*) FROM {column}")  # noqa: S608 - names above
        summed = _count(db, f"SELECT coalesce(sum({what}), 0) FROM hour")  # noqa: S608 - names above
        if listed != summed:
            yield f"{listed} {what} are listed and {summed} counted"


def _check_ledger(db: sqlite3.Connection, budgets: dict[str, str], counts: dict[str, int]) -> Iterator[str]:
    """Check that each impression is held and closed once, and balances are sums of entries within the day's budget."""
    kinds: dict[str, list[str]] = defaultdict(list)
    charged: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    held: dict[str, tuple[tuple[str, str], Decimal]] = {}
    for kind, token, payer, day, amount in db.execute("SELECT kind, token, payer, day, amount FROM entry ORDER BY seq"):
        kinds[token].append(kind)
        if kind == "held":
            held[token] = ((payer, day), Decimal(amount))
        else:
            held.pop(token, None)
        if kind in {"charged", "refunded"}:
            charged[payer, day] += Decimal(amount) if kind == "charged" else -Decimal(amount)
    counts["ads shown"], counts["ads charged"] = len(kinds), sum("charged" in each for each in kinds.values())
    for token, each in kinds.items():
        if each[0] != "held" or each.count("held") > 1 or each.count("charged") > 1 or each.count("refunded") > 1:
            yield f"the showing {token} has the entries {each}"
    for payer, day, total, open_holds in db.execute("SELECT payer, day, charged, held FROM balance"):
        open_sum = sum((amount for account, amount in held.values() if account == (payer, day)), Decimal())
        if Decimal(open_holds) != open_sum:
            yield f"{payer} has {open_holds} on hold on {day}, and open entries of {open_sum}"
        if Decimal(total) != charged[payer, day]:
            yield f"{payer} has a balance of {total} on {day}, and entries of {charged[payer, day]}"
        if payer in budgets and charged[payer, day] > Decimal(budgets[payer]):
            yield f"{payer} paid {charged[payer, day]} on {day}, more than its budget of {budgets[payer]}"


def audit_requests(
    log: Path, *, delay_s: float, address_delay_s: float, robots_age_s: float, rounding_s: float
) -> tuple[int, list[str]]:
    """Audit the servers' log.

    Nothing was disallowed, and no host or address was requested twice at once or too soon.
    """
    rows = _read_log(log)
    wrong = [f"{row['host']}{row['target']} is disallowed" for row in rows if row["target"].startswith("/private/")]
    wrong += _find_unruled(rows, robots_age_s + rounding_s)
    for key, gap_s in (("host", delay_s), ("address", address_delay_s)):
        wrong += _find_gaps(rows, key, gap_s - rounding_s)
    return len(rows), wrong


def audit_budget(folder: Path, log: Path, *, limit: int, shift_s: float, since_s: float) -> list[str]:
    """Audit the fetchers' count of the last day: at most the limit, and at least what the servers saw.

    The crawler's clock is ahead of the servers' by ``shift_s`` since ``since_s``.
    """
    with closing(_open(folder / "requests.db")) as db:
        ((day,),) = db.execute("SELECT day FROM today")
        counted = dict(db.execute("SELECT name, requests FROM spent WHERE kind = 'address'"))
        wrong = _none(db, "is over the daily limit", f"SELECT name FROM spent WHERE requests > {limit:d}")  # noqa: S608 - a number
    seen = [row for row in _read_log(log) if row["start_s"] >= since_s and (row["start_s"] + shift_s) // DAY_S == day]
    for address, requests in Counter(row["address"] for row in seen).items():
        if counted.get(address, 0) < requests:
            wrong.append(f"{address} saw {requests} requests on the last day; {counted.get(address, 0)} are counted")
    return wrong


def _read_log(log: Path) -> list[dict[str, Any]]:
    with log.open(encoding="ascii") as file:
        rows = [row for row in map(json.loads, file) if "log" not in row]
    return sorted(rows, key=lambda row: row["start_s"])


def _find_unruled(rows: Iterable[dict[str, Any]], age_s: float) -> Iterator[str]:
    """Find requests to hosts whose robots.txt was not available, or too long ago."""
    answered: dict[str, float] = {}
    for row in rows:
        if row["target"] == "/robots.txt":
            if row["status"] in range(200, 500):
                answered[row["host"]] = row["end_s"]
        elif row["host"] not in answered or row["start_s"] - answered[row["host"]] > age_s:
            yield f"{row['host']}{row['target']} was requested without a current robots.txt"


def _find_gaps(rows: Iterable[dict[str, Any]], key: str, gap_s: float) -> Iterator[str]:
    ended: dict[str, float] = {}
    for row in rows:
        last_s = ended.get(row[key])
        if last_s is not None and row["start_s"] - last_s < gap_s:
            yield f"{key} {row[key]} was requested {row['start_s'] - last_s:.1f} s after its last response"
        ended[row[key]] = max(row["end_s"], last_s or 0.0)


def _count(db: sqlite3.Connection, sql: str) -> int:
    return int(db.execute(sql).fetchone()[0])


def _none(db: sqlite3.Connection, words: str, sql: str) -> list[str]:
    return [f"{found} {words}" for (found,) in db.execute(f"{sql} LIMIT 5")]


if __name__ == "__main__":
    numbers, findings = audit(Path(sys.argv[1]))
    sys.stdout.write(json.dumps({**numbers, "wrong": findings}, indent=1) + "\n")
    sys.exit(bool(findings))
