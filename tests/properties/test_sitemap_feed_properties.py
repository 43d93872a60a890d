"""For any bytes: no error, bounded results, and written files can be read again."""

import gzip
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given
from hypothesis import strategies as st

from vedette.discover.formats.feeds import MAX_TITLE_LENGTH, is_feed, parse_feed
from vedette.discover.formats.sitemaps import is_sitemap, parse_sitemap
from vedette.discover.urls.normalize import resolve
from vedette.timeutil import parse_date

HOME = "https://host.example/list.xml"
PIECES = [
    *("<urlset>", "<url>", "</url>", "<loc>", "</loc>", "<lastmod>", "<priority>", "<sitemapindex>", "<sitemap>"),
    *("<rss>", "<feed>", "<rdf:RDF>", "<channel>", "<item>", "</item>", "<entry>", "<link>", "</link>", "<guid"),
    *("<link rel='hub' href=", "<title type='html'>", "</title>", "<pubDate>", "<image:loc>", "<media:title"),
    *("<![CDATA[", "]]>", "<!--", "-->", "<!DOCTYPE x [", "]>", "<!ENTITY a 'b'>", "<?xml", "?>", "&amp;", "&#", "&a;"),
    *(
        "<",
        ">",
        "/",
        '"',
        "'",
        "=",
        " ",
        "\n",
        "http://a.example/b",
        "2024-01-01",
        "Mon, 1 Jan 2024",
        "xmlns:x=",
        "é",
        "0",
    ),
]
soup = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
encodings = st.sampled_from(["utf-8", "utf-16", "utf-32-le", "windows-1251", "utf-8-sig"])
bodies = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda text, encoding: text.encode(encoding, "replace"), soup, encodings),
    soup.map(lambda text: gzip.compress(text.encode())),
    st.tuples(soup, st.integers(0, 60)).map(lambda pair: gzip.compress(pair[0].encode())[: pair[1]]),
)
# Text that XML can carry; carriage returns and other control characters are not for markup.
words = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc"]), max_size=30)


@given(bodies, st.text(max_size=40))
def test_no_bytes_are_an_error(body: bytes, content_type: str) -> None:
    """Mixed markup, random bytes and truncated archives give a result whose links are absolute and resolved."""
    sitemap, feed = parse_sitemap(body, HOME, content_type), parse_feed(body, HOME, content_type)
    links = [*(entry.loc for entry in sitemap.entries), *sitemap.children, *(entry.link for entry in feed.entries)]
    assert all(resolve(link, None) == link for link in links)
    assert all(len(entry.title) <= MAX_TITLE_LENGTH for entry in feed.entries)
    assert not (is_sitemap(body, content_type) and is_feed(body, content_type))


@given(st.lists(words, max_size=5), encodings)
def test_every_location_that_is_written_is_read(written: list[str], encoding: str) -> None:
    """Escaped by the rules of XML, any text gives the URL that a browser would visit."""
    inside = "".join(f"<url><loc>{escape('/x' + word)}</loc></url>" for word in written)
    body = f'<?xml version="1.0" encoding="{encoding}"?><urlset>{inside}</urlset>'.encode(encoding, "xmlcharrefreplace")
    read = [entry.loc for entry in parse_sitemap(body, HOME).entries]
    assert read == [resolve(("/x" + word).strip(), HOME) for word in written]


@given(st.lists(st.tuples(words, words), max_size=5))
def test_every_entry_that_is_written_is_read(written: list[tuple[str, str]]) -> None:
    """Links in attributes and titles in elements are complete and in order."""
    inside = "".join(
        f"<entry><title>{escape(title)}</title><link href={quoteattr('/x' + link)}/></entry>" for link, title in written
    )
    read = [(entry.link, entry.title) for entry in parse_feed(f"<feed>{inside}</feed>".encode(), HOME).entries]
    assert read == [(resolve(("/x" + link).strip(), HOME), " ".join(title.split())) for link, title in written]


@given(st.lists(words, min_size=1, max_size=8), st.data())
def test_a_shorter_file_names_no_other_pages(written: list[str], data: st.DataObject) -> None:
    """Wherever a file is truncated, the result is a prefix of the whole file's entries."""
    body = ("<urlset>" + "".join(f"<url><loc>/x{escape(word)}</loc></url>" for word in written) + "</urlset>").encode()
    cut = body[: data.draw(st.integers(0, len(body)))]
    whole, part = parse_sitemap(body, HOME).entries, parse_sitemap(cut, HOME).entries
    assert part == whole[: len(part)]


@given(
    st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001 - the zone is drawn separately
    st.integers(-14 * 60, 14 * 60),
)
def test_dates_are_read_to_the_second(naive: datetime, offset_minutes: int) -> None:
    """Dates that the standard library writes as ISO 8601 or RFC 822 are read as the same time, without the fraction."""
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    second_s = moment.replace(microsecond=0).timestamp()
    assert parse_date(moment.isoformat()) == second_s
    assert parse_date(format_datetime(moment)) == second_s


@given(
    st.one_of(
        st.text(max_size=70), st.from_regex(r"[A-Z][a-z]{2}, \d{1,9} [A-Z][a-z]{2} \d{1,6}( [\d:.+-]{0,20}){0,3}")
    )
)
def test_no_text_is_a_date_error(text: str) -> None:
    """Any text gives a finite time or none."""
    moment_s = parse_date(text)
    assert moment_s is None or abs(moment_s) < 1e12
