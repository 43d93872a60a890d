"""Content store: text fingerprints, duplicate groups, held URLs and trap accounts; a part of ``CrawlStore``."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from vedette.adapters.crawl_store.search_store import SearchStore
from vedette.engine.messages import Content
from vedette.engine.ports import ContentRow
from vedette.model import origin_of, partition_of
from vedette.parse.change.comparison import StoredVersion

CONTENT_SCHEMA = """
CREATE TABLE IF NOT EXISTS content (
  id INTEGER PRIMARY KEY,          -- that of its page
  grp INTEGER NOT NULL,            -- group of copies: the id of its first member, its own where it is alone
  body_digest BLOB NOT NULL,
  text_print BLOB NOT NULL,        -- of the words of the visible text, where its site is judged by them
  main_print BLOB NOT NULL,        -- of the words of the main text
  sketch BLOB NOT NULL,            -- MinHash of the main text
  links_print INTEGER NOT NULL,
  parts BLOB NOT NULL,             -- links and places of the version, for the next comparison
  charset TEXT NOT NULL,
  language TEXT NOT NULL,
  description TEXT NOT NULL,
  canonical TEXT NOT NULL,         -- what the page itself names
  marks TEXT NOT NULL,             -- noindex, max-snippet:80 and the like
  words INTEGER NOT NULL,
  published_s REAL,
  modified_s REAL,
  spam REAL NOT NULL,
  objections TEXT NOT NULL,        -- what speaks against indexing it: pairs of a name and what it rests on
  share REAL,                      -- of the main text that changed last time
  change TEXT NOT NULL,            -- what became of the last version, in words
  private TEXT NOT NULL DEFAULT '', -- the site with whose secrets it was fetched, where it was
  identity BLOB NOT NULL DEFAULT x'' -- what tells it from pages of nearly the same text
) STRICT;
CREATE INDEX IF NOT EXISTS content_copies ON content (grp) WHERE grp <> id;
CREATE INDEX IF NOT EXISTS content_objected ON content (id) WHERE objections <> '[]';
CREATE TABLE IF NOT EXISTS copies (
  grp INTEGER PRIMARY KEY,
  canonical INTEGER NOT NULL,      -- the page that stands for the group
  why TEXT NOT NULL,
  members INTEGER NOT NULL         -- 0 where the group goes on under the name of its canonical
) STRICT;
CREATE TABLE IF NOT EXISTS held (
  url_id INTEGER PRIMARY KEY,
  host INTEGER NOT NULL,
  place TEXT NOT NULL              -- what it waits for: host, port and pattern
) STRICT;
CREATE INDEX IF NOT EXISTS held_place ON held (host, place);
CREATE TABLE IF NOT EXISTS yield (
  name TEXT PRIMARY KEY,           -- host and port
  partition INTEGER NOT NULL,
  account TEXT NOT NULL            -- what the fetches of its patterns brought
) STRICT;
"""

INHERITED = "the first page of the group has changed since"
_SAVE_CONTENT = f"INSERT OR REPLACE INTO content VALUES ({', '.join('?' * 22)})"  # noqa: S608 - question marks only
_CONTENTS = (
    "SELECT id, grp, identity, modified_s, instr(objections, '\"script\"') > 0, body_digest, text_print, main_print, "
    "sketch, links_print, parts FROM content WHERE id IN (SELECT value FROM json_each(?))"
)


class ContentStore(SearchStore):
    """Store of page contents, duplicate groups, held URLs and the trap filter's yield accounts in ``state.db``."""

    # content and duplicates

    def save_contents(self, contents: Sequence[tuple[int, int, Content]]) -> None:
        """Save page contents: the id of each page, its duplicate group, and its content."""
        self._db.executemany(_SAVE_CONTENT, [_content_row(*one) for one in contents])
        self.enqueue_pages((id_, content.stored or None) for id_, _, content in contents)

    def get_contents(self, ids: Iterable[int]) -> Mapping[int, ContentRow]:
        """Return the stored contents of these pages, by page id."""
        wanted = json.dumps(list(ids))
        return {
            row[0]: ContentRow(row[0], row[1], StoredVersion(*row[5:]), row[2], row[3], needs_script=bool(row[4]))
            for row in self._db.execute(_CONTENTS, (wanted,))
        }

    def get_group_members(self, group: int, most: int) -> list[tuple[int, str, str]]:
        """Return id, URL and declared canonical of the members of a duplicate group that are there, oldest first."""
        sql = (
            "SELECT content.id, url, canonical FROM content JOIN url USING (id) JOIN page USING (id) "
            "WHERE status < 300 AND (content.id = :grp AND grp = :grp OR grp = :grp AND grp <> content.id) "
            "ORDER BY content.id LIMIT :most"
        )
        return self._db.execute(sql, {"grp": group, "most": most}).fetchall()

    def get_canonical(self, group: int) -> int:
        """Return the canonical page of a duplicate group; 0 if none was chosen."""
        row = self._db.execute("SELECT canonical FROM copies WHERE grp = ? AND members > 0", (group,)).fetchone()
        return int(row[0]) if row else 0

    def save_canonical(self, group: int, canonical: int, why: str, members: int) -> None:
        """Save the canonical page of a duplicate group, and why it was chosen."""
        before = self.get_canonical(group)
        self._db.execute("INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?)", (group, canonical, why, members))
        if canonical != before:
            self.enqueue_page_ids([id_ for id_ in (before, canonical) if id_])

    def rename_group(self, group: int) -> int:
        """Rename a duplicate group after its oldest member, since the page it was named after left; 0 if empty."""
        (heir,) = self._db.execute("SELECT min(id) FROM content WHERE grp = ? AND grp <> id", (group,)).fetchone()
        if heir is None:
            return 0
        self._db.execute("UPDATE content SET grp = ? WHERE grp = ? AND grp <> id", (heir, group))
        self.save_canonical(group, heir, INHERITED, 0)
        self._enqueue_group(heir)
        return int(heir)

    def get_renamed_groups(self, groups: Sequence[int]) -> list[int]:
        """Return the duplicate groups that these were renamed to."""
        sql = "SELECT canonical FROM copies WHERE grp IN (SELECT value FROM json_each(?)) AND members = 0"
        return [row[0] for row in self._db.execute(sql, (json.dumps(list(groups)),))]

    def dissolve_group(self, group: int) -> None:
        """Delete a duplicate group that has fewer than two members left."""
        self._db.execute("DELETE FROM copies WHERE grp = ?", (group,))
        self._enqueue_group(group)

    def _enqueue_group(self, group: int) -> None:
        """Queue all members of a duplicate group for indexing: each may now be searchable by itself, or no longer."""
        self._db.execute("INSERT INTO news (page) SELECT id FROM content WHERE grp = ?", (group,))

    def get_urls(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the URLs of these ids from the content store."""
        sql = "SELECT id, url FROM url WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self._db.execute(sql, (json.dumps(list(ids)),)))

    # held URLs

    def hold_urls(self, held: Sequence[tuple[int, int, str]]) -> None:
        """Hold URLs back as possible traps: id, host, and the URL pattern that each waits for."""
        self._db.executemany("INSERT OR REPLACE INTO held VALUES (?, ?, ?)", held)

    def release_urls(self, host: int, place: str, most: int) -> list[int]:
        """Release some of the held URLs that wait for a URL pattern.

        Write their new state in the same transaction, otherwise a crash would lose them.
        """
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        sql = "SELECT url_id FROM held WHERE host = ? AND place = ? ORDER BY url_id LIMIT ?"
        ids = [row[0] for row in self._db.execute(sql, (host, place, most))]
        self._db.execute("DELETE FROM held WHERE url_id IN (SELECT value FROM json_each(?))", (json.dumps(ids),))
        return ids

    def count_held(self) -> list[tuple[str, str, int]]:
        """Count the held URLs of each host and URL pattern."""
        sql = "SELECT name, place, count(*) FROM held JOIN host ON host.id = held.host GROUP BY held.host, place"
        return self._db.execute(sql).fetchall()

    def save_yields(self, accounts: Mapping[str, str]) -> None:
        """Save the trap filter's yield accounts of hosts, by host and port."""
        rows = [(name, partition_of(origin_of(f"http://{name}/").host), account) for name, account in accounts.items()]
        self._db.executemany("INSERT OR REPLACE INTO yield VALUES (?, ?, ?)", rows)

    def load_yields(self) -> dict[str, str]:
        """Load all yield accounts of the trap filter."""
        return dict(self._db.execute("SELECT name, account FROM yield"))

    def iter_sketches(self) -> Iterator[tuple[int, bytes]]:
        """Yield the id and the MinHash sketch of every page content that has one."""
        yield from self._db.execute("SELECT id, sketch FROM content WHERE length(sketch) > 0 ORDER BY id")


def _content_row(id_: int, group: int, content: Content) -> tuple[object, ...]:
    change = content.change
    return (
        *(id_, group, *content.baseline, content.charset, content.language, content.description, content.canonical),
        *(content.directives, content.words, content.published_s, content.modified_s, content.spam),
        json.dumps(content.objections) if content.objections else "[]",
        *((change.share, change.why) if change else (None, "")),
        content.private,
        content.identity,
    )
