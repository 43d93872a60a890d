"""What a visitor sees on a page of results, read off the HTML that everybody is served."""

from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

from vedette.lab.visitors.deeds import Found, Hit

__all__ = ["read_results"]

MOST_HITS = 100
LONGEST_NUMBER = 18  # digits; no page has a higher one
LONGEST_QUERY = 500

_Attributes = list[tuple[str, str | None]]


def read_results(html: str) -> Found:
    """The results of a page, in their order; ``NOTHING`` where it shows none, whatever it is.

    >>> page = '<ol data-slate="s1"><li><a class="title" data-page="7" href="http://a.test/">An <b>anchor</b></a></ol>'
    >>> read_results(page)
    Found(slate='s1', hits=(Hit(page=7, url='http://a.test/', title='An anchor'),), meant='', more=False)
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return Found(reader.slate, tuple(reader.hits[:MOST_HITS]), reader.meant, reader.more)


class _Reader(HTMLParser):
    """Goes by the attributes that the page's own script goes by."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.slate = ""
        self.hits: list[Hit] = []
        self.meant = ""
        self.more = False
        self._open: Hit | None = None
        self._words: list[str] = []
        self._offering = False

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        """A slate, a result, an offer to correct, or the way to the next page."""
        told = {name: value or "" for name, value in attrs}
        self.slate = self.slate or told.get("data-slate", "")
        if tag == "p":
            self._offering = told.get("class") == "meant"
        elif tag == "a":
            self._link(told)

    def handle_data(self, data: str) -> None:
        """The words of a title."""
        if self._open is not None:
            self._words.append(data)

    def handle_endtag(self, tag: str) -> None:
        """A title ends with its link."""
        if tag == "a" and self._open is not None:
            self.hits.append(self._open._replace(title=" ".join("".join(self._words).split())))
            self._open, self._words = None, []

    def _link(self, told: dict[str, str]) -> None:
        href, number = told.get("href", ""), told.get("data-page", "")
        if told.get("rel") == "next":
            self.more = True
        elif self._offering:
            self.meant = self.meant or _asked(href)
        elif "title" in told.get("class", "").split() and _is_number(number):
            self._open = Hit(int(number), href, "")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER


def _asked(href: str) -> str:
    """The query of a link to a search."""
    try:
        return parse_qs(urlsplit(href).query).get("q", [""])[0][:LONGEST_QUERY]
    except ValueError:
        return ""
