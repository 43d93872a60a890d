"""From the bytes of a sitemap or feed to its text: packed files, byte-order marks, declared encodings.

A ``.gz`` file is the content itself here, not a transfer coding, so it is unpacked whatever the headers say. What could
be unpacked before an error or the limit is kept: half a sitemap still names pages. The encoding is taken from the first
that speaks: byte-order mark, XML declaration, Content-Type, UTF-8. The declaration comes before the header because an
author writes the one and a server's default the other. Nothing here raises.
"""

import re
import zlib

__all__ = ["MOST_BYTES", "text_of"]

MOST_BYTES = 50 * 2**20  # what sitemaps.org allows for an unpacked sitemap
_MOST_MEMBERS = 1_000  # gzip files may be chained; a hostile chain has millions of links
_CHUNK_BYTES = 16 * 2**10
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 16 + zlib.MAX_WBITS

# Longer marks first: that of UTF-32 begins with that of UTF-16. The last four are a "<" that no mark precedes.
_OPENINGS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"<\x00\x00\x00", "utf-32-le"),
    (b"\x00\x00\x00<", "utf-32-be"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
_DECLARED = re.compile(rb"""\s{0,99}<\?xml\s[^<>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})["']""")
_CHARSET = re.compile(r"""charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)

# Only names that XML files bear. Python would look for more: some of its codecs take quadratic time on hostile bytes,
# and it remembers every name it was ever asked for. As in browsers, Latin-1 and ASCII are read as Windows-1252.
_FAMILY = re.compile(r"(?:iso[-_]?8859-(?:[2-8]|1[03-6])|(?:windows|cp)-?125[0-8]|koi8-[ru])")
_CODECS = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "gb18030": "gb18030",
    "big5": "big5",
    "shift_jis": "cp932",
    "windows-31j": "cp932",
    "euc-jp": "euc-jp",
    "iso-2022-jp": "iso2022-jp",
    "euc-kr": "cp949",
}


def text_of(body: bytes, content_type: str = "", limit_bytes: int = MOST_BYTES) -> str:
    r"""The text behind a body, of at most so many bytes.

    >>> text_of(b'<?xml version="1.0" encoding="iso-8859-1"?><t>caf\xe9</t>').partition("<t>")[2]
    'café</t>'
    """
    plain = _unpacked(_unpacked(body, limit_bytes), limit_bytes)[:limit_bytes]  # some servers pack what is packed
    for opening, codec in _OPENINGS:
        if plain.startswith(opening):
            return plain.decode(codec, "replace").removeprefix("\ufeff")
    return plain.decode(_declared(plain) or _from_header(content_type) or "utf-8", "replace")


def _declared(plain: bytes) -> str | None:
    found = _DECLARED.match(plain)
    return _codec_of(found[1].decode("latin-1")) if found else None


def _from_header(content_type: str) -> str | None:
    found = _CHARSET.search(content_type)
    return _codec_of(found[1]) if found else None


def _codec_of(label: str) -> str | None:
    lowered = label.lower()
    return _CODECS.get(lowered) or (lowered if _FAMILY.fullmatch(lowered) else None)


def _unpacked(body: bytes, limit_bytes: int) -> bytes:
    if not body.startswith(_GZIP_MAGIC):
        return body
    parts: list[bytes] = []
    at, room = 0, limit_bytes
    for _ in range(_MOST_MEMBERS):
        member_end = _unpack_member(body, at, room, parts)
        room = limit_bytes - sum(map(len, parts))
        if member_end is None or room <= 0:
            break
        at = member_end
    return b"".join(parts)


def _unpack_member(body: bytes, at: int, room: int, parts: list[bytes]) -> int | None:
    """Adds what one member holds; where the next begins, or None where nothing more can be had.

    Fed in small pieces, so that an error loses little and the bytes after a member's end are not copied whole.
    """
    member = zlib.decompressobj(_GZIP)
    while at < len(body) and room > 0:
        try:
            part = member.decompress(body[at : at + _CHUNK_BYTES], room)
        except zlib.error:
            return None
        parts.append(part)
        room -= len(part)
        at = min(at + _CHUNK_BYTES, len(body)) - len(member.unused_data)
        if member.eof:
            return at
    return None
