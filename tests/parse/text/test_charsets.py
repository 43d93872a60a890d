"""A page is decoded in the charset that a browser would use."""

# ruff: noqa: RUF001 -- letters that look like Latin ones are tested here

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.text.charsets import decode_page, find_codec

RUSSIAN = "Библиотеку построили на окраине города, потому что на старой площади для неё уже не было места."
SENTENCES = {
    "ru": RUSSIAN,
    "uk": "Бібліотеку збудували на околиці міста, бо на старій площі для неї вже не було місця.",
    "ja": "図書館は町のはずれに建てられました。古い市場の広場には、もう場所がなかったからです。",
    "zh": "图书馆建在城市的边缘，因为旧集市广场上已经没有地方了。馆里有四万多本书。",
    "zh-hant": "圖書館建在城市的邊緣，因為舊市集廣場上已經沒有地方了。館裡有四萬多本書。",
    "ko": "도서관은 옛 시장 광장에 더 이상 자리가 없었기 때문에 도시 변두리에 지어졌습니다.",
    "pl": "Bibliotekę zbudowano na skraju miasta, ponieważ na starym rynku nie było już dla niej miejsca. Są książki.",
    "cs": "Knihovna byla postavena na okraji města, protože na starém náměstí už pro ni nebylo místo. Čtěte dál.",
    "de": "Die Bücherei wurde am Rand der Stadt gebaut, weil für sie auf dem alten Marktplatz kein Platz übrig war.",
    "fr": "La bibliothèque a été construite près de la forêt, où l'on était sûr d'avoir de la place.",
    "el": "Η βιβλιοθήκη χτίστηκε στην άκρη της πόλης επειδή στην παλιά πλατεία δεν υπήρχε πια χώρος.",
    "tr": "Kütüphane şehrin kenarına yapıldı çünkü eski pazar meydanında artık ona yer yoktu.",
    "he": "הספרייה נבנתה בקצה העיר כי בכיכר השוק הישנה כבר לא היה לה מקום.",
    "ar": "بنيت المكتبة على أطراف المدينة لأن ساحة السوق القديمة لم يعد فيها مكان لها.",
    "th": "ห้องสมุดถูกสร้างขึ้นที่ชานเมืองเพราะที่จัตุรัสตลาดเก่าไม่มีที่ว่างเหลืออยู่แล้ว",
}


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "source"),
    [
        (b"\xef\xbb\xbf<meta charset=koi8-r>x", "text/html; charset=big5", "utf-8", "bom"),
        (b"\xff\xfex\0", "text/html; charset=big5", "utf-16le", "bom"),
        (b"\xfe\xff\0x", "", "utf-16be", "bom"),
        (b"<meta charset=koi8-r>x", "text/html; charset=big5", "big5", "header"),
        (b"<meta charset=koi8-r>x", 'text/html; version=1; CharSet="Shift_JIS"', "shift_jis", "header"),
        (b"<meta charset=koi8-r>x", "text/html; xcharset=big5", "koi8-r", "page"),
        (b"<meta charset=koi8-r>x", "text/html; charset=no-such", "koi8-r", "page"),
        ("<p>naïve".encode(), "text/html", "utf-8", "content"),
        (b"<p>plain", "text/html", "windows-1252", "default"),
        (b"", "", "windows-1252", "default"),
    ],
)
def test_the_first_that_speaks_is_believed(body: bytes, content_type: str, charset: str, source: str) -> None:
    """The order is byte-order mark, header, page, content, default, and the result says which one was used."""
    decoded = decode_page(body, content_type)
    assert (decoded.charset, decoded.source) == (charset, source)


@pytest.mark.parametrize(
    "head",
    [
        b"<meta charset=koi8-r>",
        b"<META CHARSET = 'KOI8-R' >",
        b'<meta name=x charset="\tkoi8-r ">',
        b"<meta/charset=koi8-r >",
        b'<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">',
        b"<meta content='text/html; charset = koi8-r; x' http-equiv=content-type>",
        b"<meta content='a charset=\"koi8-r\"' http-equiv=content-type>",
        b"<!-- <meta charset=big5> --><meta charset=koi8-r>",
        b"<!--><meta charset=koi8-r>",
        b"<p title='<meta charset=big5>'><meta charset=koi8-r>",
        b'<p a=="<meta charset=big5>"><meta charset=koi8-r>',
        b"<!x <meta charset=koi8-r>><meta charset=koi8-r>",
        b"<metal charset=big5><meta charset=koi8-r>",
        b"<meta charset=no-such><meta charset=koi8-r>",
        b"<meta charset=koi8-r charset=big5>",
        b"<meta content='text/html; charset=big5'><meta charset=koi8-r>",
        b"<meta http-equiv=refresh content='text/html; charset=big5'><meta charset=koi8-r>",
        b"<meta http-equiv=content-type content='text/html; charset=big5' charset=koi8-r>",
        b"<?xml version='1.0' encoding='big5'?><meta charset=koi8-r>",
        b"<?xml version='1.0' encoding='koi8-r'?><html>",
    ],
)
def test_the_page_declares_its_charset(head: bytes) -> None:
    """A declaration is found in any notation, and lookalikes are ignored."""
    decoded = decode_page(head + b"\xc2\xc9\xc2\xcc\xc9\xcf", "text/html")
    assert (decoded.charset, decoded.source) == ("koi8-r", "page")
    assert decoded.text.endswith("библио")


def test_a_declaration_behind_a_long_comment_counts() -> None:
    """Like a browser, the parser starts over if a declaration comes after the first kilobyte."""
    decoded = decode_page(
        b"<!--" + b"x" * 1100 + b"--><head><meta charset=windows-1251><title>\xcf\xf0</title>", "text/html"
    )
    assert decoded.text.endswith("<title>Пр</title>")


@pytest.mark.parametrize(
    "head",
    [
        b"<!-- <meta charset=koi8-r>",
        b"<p title='<meta charset=koi8-r>",
        b"<meta content='text/html; charset=koi8-r'>",
        b" " * 8180 + b"<meta charset=koi8-r>",
        b" " * 9000 + b"<meta charset=koi8-r>",
        b"<metacharset=koi8-r>",
    ],
)
def test_what_is_no_declaration_declares_nothing(head: bytes) -> None:
    """Comments, quoted values, content without its pragma, and incomplete declarations don't count."""
    assert decode_page(head, "text/html").source == "default"


@pytest.mark.parametrize(
    ("head", "charset"),
    [
        (b"<meta charset=utf-16>", "utf-8"),
        (b"<meta charset=utf-16be>", "utf-8"),
        (b"<?xml encoding='utf-16'?>", "utf-8"),
        (b"<meta charset=x-user-defined>", "windows-1252"),
        (b"<meta charset=latin1>", "windows-1252"),
        (b"<meta charset=us-ascii>", "windows-1252"),
        (b"<meta charset=gb2312>", "gbk"),
        (b"<meta charset=ks_c_5601-1987>", "euc-kr"),
        (b"<meta charset=iso-8859-9>", "windows-1254"),
    ],
)
def test_labels_stand_for_what_browsers_take(head: bytes, charset: str) -> None:
    """An old label means its superset; one in which the declaration itself would be unreadable means another one."""
    assert decode_page(head, "text/html").charset == charset


def test_xml_comes_first_in_xml() -> None:
    """In XHTML the XML declaration outranks a meta element, which has no meaning there."""
    body = b"<?xml version='1.0' encoding='koi8-r'?><html><meta charset='big5'/></html>"
    assert decode_page(body, "application/xhtml+xml").charset == "koi8-r"
    assert decode_page(body, "text/html").charset == "big5"


def test_an_xml_declaration_in_utf_16_is_seen_without_a_mark() -> None:
    """Its first characters alternate with zeros."""
    text = "<?xml version='1.0'?><p>ж</p>"
    assert decode_page(text.encode("utf-16-le"), "text/html").text == text
    assert decode_page(text.encode("utf-16-be"), "text/html").text == text


@pytest.mark.parametrize(
    ("language", "codec"),
    [
        *(("ru", codec) for codec in ("cp1251", "koi8-r", "iso8859-5", "cp866")),
        *(("uk", codec) for codec in ("cp1251", "koi8-u")),
        *(("ja", codec) for codec in ("cp932", "euc-jp", "iso2022-jp")),
        *(("zh", "gb18030"), ("zh-hant", "big5"), ("ko", "cp949")),
        *((language, codec) for language in ("pl", "cs") for codec in ("cp1250", "iso8859-2")),
        *(("de", "cp1252"), ("fr", "cp1252"), ("el", "cp1253"), ("el", "iso8859-7"), ("tr", "cp1254")),
        *(("he", "cp1255"), ("ar", "cp1256"), ("th", "cp874")),
    ],
)
@pytest.mark.parametrize("repeats", [1, 300])
def test_undeclared_text_is_recognised(language: str, codec: str, repeats: int) -> None:
    """The charset of a bare sentence is detected, and so is that of a long page full of markup."""
    page = f'<div class="box"><p id="first">{SENTENCES[language]}</p><a href="/x/y">link</a></div>' * repeats
    decoded = decode_page(page.encode(codec), "text/html")
    assert (decoded.text, decoded.source) == (page, "content")


def test_a_few_broken_bytes_do_not_unmake_utf_8() -> None:
    """An undeclared UTF-8 page is still UTF-8 if it is cut within a character, or has one byte of another charset."""
    body = RUSSIAN.encode()
    for broken in (body[:-2], body + "ж".encode()[:1], body[:30] + b"\xa9" + body[30:]):
        decoded = decode_page(broken, "text/html")
        assert decoded.charset == "utf-8"
        assert decoded.text.count("\ufffd") == 1


@pytest.mark.parametrize("label", ["iso-2022-kr", "hz-gb-2312", "iso-2022-cn"])
def test_a_dangerous_charset_is_not_read(label: str) -> None:
    """Text that hides its markup from filters is replaced with one character."""
    assert decode_page(b"~{<script>~}", f"text/html; charset={label}").text == "\ufffd"
    assert find_codec(label) is None


@pytest.mark.parametrize(
    ("label", "body", "text"),
    [
        ("latin1", b"\x80\x81\x9d\xe9", "€\x81\x9dé"),
        ("windows-1253", b"\x81\xd2\xe1", "\x81\ufffdα"),
        ("windows-1255", b"\x81\xca\xe0", "\x81\u05baא"),
        ("koi8-u", b"\xae\xbe\xd6", "ўЎж"),
        ("x-user-defined", b"a\x80\xff", "a\uf780\uf7ff"),
        ("euc-jp", b"\xad\xa1\xa4\xa2\xf9\xa1\xa1\xc1\xff<", "①あ纊～\ufffd<"),
        ("shift_jis", b"\x87\x40\x82\xa0\x81\x60", "①あ～"),
        ("big5", b"\xa1\xe3\xa4\xa4", "～中"),
        ("gbk", b"\xd6\xd0\xa3\xa0", "中\u3000"),
    ],
)
def test_decoders_follow_the_standard(label: str, body: bytes, text: str) -> None:
    """If Python's tables differ from the Encoding standard, the standard's are used."""
    assert decode_page(body, f"text/html; charset={label}").text == text


@pytest.mark.parametrize("label", ["gbk", "big5", "euc-jp", "shift_jis", "euc-kr", "gb18030", "utf-8"])
def test_a_half_character_swallows_no_markup(label: str) -> None:
    """A lead byte before a tag, or at the end, is one bad character, and the tag is still a tag."""
    text = decode_page(b"\xe4<b>\xe4", f"text/html; charset={label}").text
    assert text == "\ufffd<b>\ufffd"


@given(st.binary(max_size=3000), st.text(max_size=60))
def test_no_bytes_are_an_error(body: bytes, content_type: str) -> None:
    """Any bytes are decoded to text that can be encoded again."""
    decode_page(body, content_type).text.encode()


@given(
    st.binary(max_size=200),
    st.sampled_from([b"<meta ", b"<!--", b"<a b='", b"<?xml ", b"\x1b$B", b"\xff\xfe"]),
    st.sampled_from(["", "gbk", "euc-jp", "iso-2022-jp", "big5", "windows-1258", "utf-16", "x-user-defined"]),
)
def test_no_broken_page_is_an_error(body: bytes, start: bytes, label: str) -> None:
    """Partial declarations and characters are text, too, in every charset."""
    decode_page(start + body, f"text/html; charset={label}").text.encode()


@given(st.text(max_size=300))
def test_declared_utf_8_comes_back(text: str) -> None:
    """Text declared as UTF-8 and encoded in it is decoded without loss."""
    page = f"<meta charset=utf-8>{text}"
    assert decode_page(page.encode("utf-8", "replace"), "text/html").text == page.encode("utf-8", "replace").decode()
