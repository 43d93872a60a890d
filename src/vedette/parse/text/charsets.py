"""Detect the charset of a page as browsers do, and decode it, so that we read what its author saw.

The first available source decides (WHATWG HTML, "encoding sniffing algorithm"):

1. ``bom``      a byte-order mark
2. ``header``   the charset of Content-Type
3. ``page``     a declaration in the first 8 kB: a meta element, or an XML declaration
4. ``content``  the bytes: valid UTF-8 is UTF-8; others are guessed by chardetng, the detector of Firefox
5. ``default``  Windows-1252, if plain ASCII leaves nothing to guess

Labels have the meaning of the WHATWG Encoding standard (section 4.2): Latin-1 is Windows-1252. Only these labels count.
Python accepts more names than the web does, and some of them are dangerous in hostile pages: ``punycode`` takes
quadratic time, ``unicode_escape`` creates lone surrogates, and names of nonexistent codecs stay in memory forever.
Where Python's tables differ from the standard's they are corrected, except for some 190 rare characters of Hong Kong,
19 of GB18030-2022 and GBK's one-byte euro sign. Undecodable bytes become U+FFFD; nothing is an error.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

Source = Literal["bom", "header", "page", "content", "default"]

# A browser looks for a declaration in the first kilobyte, and restarts if it finds one later.
PRESCAN_BYTES = 8192
GUESS_BYTES = 4096  # what the detector gets; more does not change its result, and costs .1 ms per kB
GUESS_RUNS = 400

# The standard's name, Python's codec if its name differs, and the labels.
_TABLE = """
utf-8 utf-8: unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
ibm866 cp866: 866 cp866 csibm866
iso-8859-2 iso8859-2: csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3 iso8859-3: csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4 iso8859-4: csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5 iso8859-5: csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6 iso8859-6: arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i \
iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7 iso8859-7: csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 \
iso_8859-7:1987 sun_eu_greek
iso-8859-8 iso8859-8: csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 \
iso_8859-8:1988 visual
iso-8859-8-i iso8859-8: csiso88598i logical
iso-8859-10 iso8859-10: csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13 iso8859-13: iso8859-13 iso885913
iso-8859-14 iso8859-14: iso8859-14 iso885914
iso-8859-15 iso8859-15: csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16 iso8859-16:
koi8-r koi8-r: cskoi8r koi koi8 koi8_r
koi8-u koi8-u: koi8-ru
macintosh mac-roman: csmacintosh mac x-mac-roman
windows-874 cp874: dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250 cp1250: cp1250 x-cp1250
windows-1251 cp1251: cp1251 x-cp1251
windows-1252 cp1252: ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 \
iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252
windows-1253 cp1253: cp1253 x-cp1253
windows-1254 cp1254: cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 \
x-cp1254
windows-1255 cp1255: cp1255 x-cp1255
windows-1256 cp1256: cp1256 x-cp1256
windows-1257 cp1257: cp1257 x-cp1257
windows-1258 cp1258: cp1258 x-cp1258
x-mac-cyrillic mac-cyrillic: x-mac-ukrainian
gbk gb18030: chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
gb18030 gb18030:
big5 big5hkscs: big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp euc-jp: cseucpkdfmtjapanese x-euc-jp
iso-2022-jp iso2022-jp: csiso2022jp
shift_jis cp932: csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
euc-kr cp949: cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
utf-16be utf-16-be: unicodefffe
utf-16le utf-16-le: csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
replacement ascii: csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr
x-user-defined latin-1:
"""


def _parse_table() -> Iterator[tuple[str, str, list[str]]]:
    for line in _TABLE.strip().splitlines():
        names, _, labels = line.partition(": ")
        name, codec = names.rstrip(":").split()
        yield name, codec, [name, *labels.split()]


_NAMES = {label: name for name, _, labels in _parse_table() for label in labels}
_CODECS = {name: codec for name, codec, _ in _parse_table()}


@dataclass(frozen=True, slots=True)
class DecodedText:
    """The decoded text of a page, the standard's name of its charset, and the source that declared it."""

    text: str
    charset: str
    source: Source


def find_codec(label: str) -> str | None:
    """Return the codec for a charset label; None if the Encoding standard has no such label.

    >>> find_codec("ISO-8859-1"), find_codec("punycode")
    ('cp1252', None)
    """
    name = _find_name(label)
    return None if name in {None, "replacement", "x-user-defined"} else _CODECS[name or ""]


def decode_page(body: bytes, content_type: str) -> DecodedText:
    r"""Decode the body of a page by its detected charset, as a browser would show it.

    >>> decode_page(b"<meta charset=latin1>caf\xe9", "text/html")
    DecodedText(text='<meta charset=latin1>café', charset='windows-1252', source='page')
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return DecodedText(_decode_as(body[len(mark) :], name), name, "bom")
    named = _find_in_header(content_type)
    if named:
        return DecodedText(_decode_as(body, named), named, "header")
    named = _find_in_page(body, xml="xml" in content_type[:64])
    if named:
        return DecodedText(_decode_as(body, named), named, "page")
    return _decode_undeclared(body)


def _find_name(label: str) -> str | None:
    return _NAMES.get(label.strip("\t\n\f\r ").lower())


# --- 1 and 2: byte-order mark and header ---

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_HEADER = re.compile(r""";\s*+charset\s*+=\s*+["']?([^"';\s,]{1,40})""", re.IGNORECASE)


@lru_cache(maxsize=512)
def _find_in_header(content_type: str) -> str | None:
    """Find the charset in a Content-Type header. A site sends few different ones, so they are cached."""
    found = _HEADER.search(content_type[:512])
    return _find_name(found[1]) if found else None


# --- 3: declaration in the page ---

_SPACE = rb"[\t\n\f\r ]"
_VALUE = rb"""(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^\t\n\f\r >"'][^\t\n\f\r >]*+)|(?=>)|\Z)"""
_ATTRIBUTE = rb"[\t\n\f\r /]*+([^\t\n\f\r />][^\t\n\f\r />=]*+)(?:%s*+=%s*+%s)?+" % (_SPACE, _SPACE, _VALUE)
_ATTRIBUTES = rb"(?:%s)*+[\t\n\f\r /]*+" % re.sub(rb"\((?!\?)", rb"(?:", _ATTRIBUTE)
# Comment, meta element, other tag, other declaration: each is skipped as a whole, so that something inside a comment or
# a quoted value is not mistaken for a declaration.
_MARKUP = re.compile(
    rb"<(?:!(?=--).*?(?:-->|\Z)|meta(?=[\t\n\f\r /])(%s)(?:>|\Z)|/?[a-z][^\t\n\f\r >]*+%s(?:>|\Z)|[!/?][^>]*+)"
    % (_ATTRIBUTES, _ATTRIBUTES),
    re.IGNORECASE | re.DOTALL,
)
_EACH_ATTRIBUTE = re.compile(_ATTRIBUTE)
_IN_CONTENT = re.compile(
    rb"""charset%s*+=%s*+(?:"([^"]*+)"|'([^']*+)'|([^\t\n\f\r ;"']++))""" % (_SPACE, _SPACE), re.IGNORECASE
)
_XML = re.compile(rb"""<\?xml[^>]*?encoding[\x00-\x20]*+=[\x00-\x20]*+(?:"([^">]*+)"|'([^'>]*+)')""")
# These declarations could not be read in the charset they name (steps 14 and 15 of the prescan).
_IMPOSSIBLE_LABELS = {"utf-16be": "utf-8", "utf-16le": "utf-8", "x-user-defined": "windows-1252"}


def _find_in_page(body: bytes, *, xml: bool) -> str | None:
    """Find the charset that a page declares near its beginning; in XML its declaration comes first, else last."""
    if body.startswith((b"<\0?\0x\0", b"\0<\0?\0x")):
        return "utf-16be" if body[0] == 0 else "utf-16le"
    asked: tuple[Callable[[bytes], str | None], ...] = (
        (_find_in_xml, _find_in_meta) if xml else (_find_in_meta, _find_in_xml)
    )
    name = asked[0](body) or asked[1](body)
    return _IMPOSSIBLE_LABELS.get(name, name) if name else None


def _find_in_xml(body: bytes) -> str | None:
    found = _XML.match(body, 0, PRESCAN_BYTES)
    return _find_name((found[1] or found[2] or b"").decode("latin-1")) if found else None


def _find_in_meta(body: bytes) -> str | None:
    for found in _MARKUP.finditer(body, 0, PRESCAN_BYTES):
        # A meta element cut off by the end of the prescan is ignored.
        if found[1] is not None and found[0].endswith(b">"):
            label = _parse_label(found[1])
            name = _find_name(label.decode("latin-1")) if label else None
            if name:
                return name
    return None


def _parse_label(attributes: bytes) -> bytes | None:
    """Parse the charset label in a meta element: its ``charset``, or that in its ``content``."""
    given: dict[bytes, bytes] = {}
    for name, double, single, bare in _EACH_ATTRIBUTE.findall(attributes):
        given.setdefault(name.lower(), double or single or bare)
    if b"charset" in given:
        return given[b"charset"]
    if given.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    found = _IN_CONTENT.search(given.get(b"content", b""))
    return (found[1] or found[2] or found[3]) if found else None


# --- 4 and 5: no declaration ---

_HIGH_RUN = re.compile(rb"[\x80-\xff][^<>]*+")


def _decode_undeclared(body: bytes) -> DecodedText:
    if body.isascii():
        escaped = b"\x1b" in body  # as ISO-2022-JP does
        return _decode_guessed(body) if escaped else DecodedText(body.decode("ascii"), "windows-1252", "default")
    text = body.decode("utf-8", "replace")
    # Text of another charset hardly ever has a valid sequence, while UTF-8 text may have a broken one. Every character
    # of two bytes or more makes the text shorter than the body.
    if len(body) - len(text) >= 8 * text.count("\ufffd"):
        return DecodedText(text, "utf-8", "content")
    return _decode_guessed(body)


def _decode_guessed(body: bytes) -> DecodedText:
    # The only user, on one page in thousands: not worth importing in every process.
    from chardetng_py import EncodingDetector  # type: ignore[import-untyped]  # it ships stubs without their marker

    shown = _sample_bytes(body)
    detector = EncodingDetector()
    detector.feed(shown[:GUESS_BYTES], last=len(shown) <= GUESS_BYTES)
    guess = detector.guess(tld=None, allow_utf8=False).lower()
    name = _NAMES.get({"cp874": "windows-874"}.get(guess, guess), "windows-1252")
    return DecodedText(_decode_as(body, name), name, "content")


def _sample_bytes(body: bytes) -> bytes:
    """Sample the bytes of a body that a charset detector needs: those beyond ASCII, with their neighbors.

    No multi-byte charset except ISO-2022-JP, which is all ASCII, has angle brackets inside its characters.
    """
    if body.isascii():
        return body
    runs = (body[max(0, run.start() - 8) : run.end()] for run in islice(_HIGH_RUN.finditer(body), GUESS_RUNS))
    return b" ".join(run[run.rfind(b">", 0, 8) + 1 :] for run in runs)


# --- Decoding, where Python's codecs need help ---

_FULL_WIDTH = str.maketrans("〜‖−¢£¬", "～∥－￠￡￢")  # noqa: RUF001 -- look-alikes are the point
_CORRECTIONS: dict[str, Mapping[int, int | str]] = {
    "koi8-u": str.maketrans("╝╬", "ўЎ"),
    "big5": str.maketrans("•､‾∼♁☉／＼¥¢£", "‧﹑¯～⊕⊙∕﹨￥￠￡"),  # noqa: RUF001 -- look-alikes are the point
    "gbk": {0xE5E5: "\u3000"},
    "gb18030": {0xE5E5: "\u3000"},
    "iso-2022-jp": _FULL_WIDTH,
}


def _decode_as(body: bytes, name: str) -> str:
    """Decode a body in a charset of the Encoding standard, with U+FFFD for what it does not define."""
    if name == "utf-8":
        return body.decode("utf-8", "replace")
    if name in _CUSTOM_DECODERS:
        return _CUSTOM_DECODERS[name](body)
    text = body.decode(_CODECS[name], "replace")
    if name in _CORRECTIONS:
        return text.translate(_CORRECTIONS[name])
    if "\ufffd" in text and name.startswith("windows-"):
        return body.decode("latin-1").translate(_build_windows_table(name))
    return text


@lru_cache(maxsize=16)
def _build_windows_table(name: str) -> dict[int, str]:
    """Build the decoding table of a Windows charset, with control characters in the gaps from 80 to 9F."""
    table = {byte: bytes([byte]).decode(_CODECS[name], "replace") for byte in range(0x80, 0x100)}
    table.update({byte: chr(byte) for byte in range(0x80, 0xA0) if table[byte] == "\ufffd"})
    if name == "windows-1255":
        table[0xCA] = "\u05ba"
    return table


_EUC_PARTS = re.compile(
    rb"(?:[\x00-\x7f]|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe]{2}|[\xa1-\xac\xae-\xf8\xfd\xfe][\xa1-\xfe])++"
    rb"|((?:[\xad\xf9-\xfc][\xa1-\xfe])++)|.",
    re.DOTALL,
)


def _decode_euc_jp(body: bytes) -> str:
    """Decode the EUC-JP charset with the rows of NEC and IBM, which Python has in Shift_JIS only."""
    text = body.decode("euc-jp", "replace")
    if "\ufffd" in text:
        parts = _EUC_PARTS.finditer(body)
        text = "".join(_decode_nec_rows(p[1]) if p[1] else p[0].decode("euc-jp", "replace") for p in parts)
    return text.translate(_FULL_WIDTH)


def _decode_nec_rows(pairs: bytes) -> str:
    """Decode NEC and IBM rows of JIS X 0208 by way of Shift_JIS (Encoding standard, 12.3.1)."""
    shifted = bytearray()
    for row, cell in zip(pairs[::2], pairs[1::2], strict=True):
        lead, trail = divmod((row - 0xA1) * 94 + cell - 0xA1, 188)
        shifted += bytes((lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)))
    return shifted.decode("cp932", "replace")


_PRIVATE_USE = {byte: 0xF700 + byte for byte in range(0x80, 0x100)}
_CUSTOM_DECODERS: dict[str, Callable[[bytes], str]] = {
    # Charsets used to smuggle text past filters: nothing in them is read (Encoding standard, 14.1).
    "replacement": lambda body: "\ufffd" if body else "",
    "x-user-defined": lambda body: body.decode("latin-1").translate(_PRIVATE_USE),
    "euc-jp": _decode_euc_jp,
}
