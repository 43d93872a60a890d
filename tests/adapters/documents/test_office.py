"""Office documents, books and Markdown: their text is extracted, and no file can do harm."""

import zipfile
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.adapters.documents.office import read_package
from vedette.adapters.documents.outcomes import Bounds, DocumentContent, Verdict
from vedette.adapters.documents.process import read_document

BOUNDS = Bounds(pages=1_000, characters=100_000, cpu_s=5)
FEW = settings(max_examples=settings().max_examples // 2)
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
CORE = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
ODF = "urn:oasis:names:tc:opendocument:xmlns:"


def packed(parts: dict[str, str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a package with these parts."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", method) as package:
        for name, text in parts.items():
            package.writestr(name, text)
    return file.getvalue()


def relations(**targets: str) -> str:
    """Return relations by id: "type target", or an address of the web."""
    found = []
    for id_, words in targets.items():
        kind, _, target = words.rpartition(" ")
        outside = "" if kind else ' TargetMode="External"'
        found.append(f'<Relationship Id="{id_}" Type="{OFFICE}/{kind or "hyperlink"}" Target="{target}"{outside}/>')
    return f'<Relationships xmlns="x">{"".join(found)}</Relationships>'


def docx(body: str, **more: str) -> bytes:
    """Return a DOCX with this body and these additional parts."""
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(r1="officeDocument word/document.xml"),
        "word/_rels/document.xml.rels": relations(r1="styles styles.xml", r2="https://example.org/?a=1&amp;b=2"),
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="berschrift2"><w:name w:val="heading 2"/>'
        "</w:style></w:styles>",
        "word/document.xml": f'<w:document xmlns:w="{WORD}" xmlns:r="{OFFICE}"><w:body>{body}</w:body></w:document>',
    }
    return packed(parts | {name.replace("__", "/"): text for name, text in more.items()})


def run(text: str) -> str:
    """Return a run of text."""
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def read(data: bytes) -> DocumentContent:
    """Read a document that has text."""
    found = read_document(data, BOUNDS)
    assert found.verdict is Verdict.TEXT, found
    return found


def test_a_text_document() -> None:
    """Headings by the style's English name, tables row by row, links; deleted or moved text is left out."""
    heading = f'<w:p><w:pPr><w:pStyle w:val="berschrift2"/></w:pPr>{run("Harvest")}</w:p>'
    broken = f'<w:p>{run("Alm")}{run("onds &amp; ")}<w:hyperlink r:id="r2">{run("fi")}{run("gs")}</w:hyperlink></w:p>'
    cells = "".join(f"<w:tc><w:p>{run(text)}</w:p><w:p>{run('!')}</w:p></w:tc>" for text in ("Year", "Tons"))
    gone = (
        "<w:p><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del><w:moveFrom>"
        + run("moved")
        + "</w:moveFrom></w:p>"
    )
    link = '<a href="https://example.org/?a=1&amp;b=2">'
    found = read(docx(f"{heading}{broken}<w:tbl><w:tr>{cells}</w:tr><w:tr/></w:tbl>{gone}"))
    assert (found.kind, found.text.splitlines()) == (
        "docx",
        [
            "<h2>Harvest</h2>",
            f"<p>Almonds &amp; {link}fi</a>{link}gs</a></p>",
            "<tr><td>Year</td><td>!</td><td>Tons</td><td>!</td></tr>",
        ],
    )


def workbook() -> bytes:
    """Return a workbook of two sheets; one is hidden."""
    rows = (
        '<row><c t="s"><v>1</v></c><c t="inlineStr"><is><t>Fig</t></is></c><c><v>0.30000000000000004</v></c></row>'
        '<row><c s="1"><v>46082</v></c><c t="str"><f>A1</f><v>sum</v></c><c t="e"><v>#REF!</v></c>'
        '<c t="s"><v>9</v></c></row>'
    )
    sheet = '<sheet name="{}" sheetId="{}" r:id="r{}" state="{}"/>'
    parts = {
        "_rels/.rels": relations(r1="officeDocument xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}"><sheets>'
        f"{sheet.format('Prices', 1, 3, 'visible')}{sheet.format('Secret', 2, 4, 'hidden')}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            r1="sharedStrings sharedStrings.xml", r2="styles styles.xml", r3="worksheet a.xml", r4="worksheet b.xml"
        ),
        "xl/sharedStrings.xml": f'<sst xmlns="{SHEET}"><si><t>no</t></si><si><r><t>Almond </t></r><r><t>XK-230</t></r>'
        "<rPh><t>read</t></rPh></si></sst>",
        "xl/styles.xml": f'<s xmlns="{SHEET}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></s>',
        "xl/a.xml": f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData></worksheet>',
        "xl/b.xml": f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData></worksheet>',
    }
    return packed(parts)


def test_a_workbook() -> None:
    """Cells as displayed: shared strings, numbers of fifteen digits, dates; hidden sheets are left out."""
    found = read(workbook())
    assert (found.kind, found.pages, found.text.splitlines()) == (
        "xlsx",
        1,
        [
            "<h2>Prices</h2>",
            "<tr><td>Almond XK-230</td><td>Fig</td><td>0.3</td></tr>",
            "<tr><td>2026-03-01</td><td>sum</td></tr>",
        ],
    )


def presentation() -> bytes:
    """Return a presentation of three slides; one is hidden."""
    shape = "<p:sp><p:nvSpPr><p:nvPr>{}</p:nvPr></p:nvSpPr><p:txBody>{}</p:txBody></p:sp>"
    text = "<a:p><a:r><a:rPr>{}</a:rPr><a:t>{}</a:t></a:r></a:p>"

    def slide(title: str, show: str = "1") -> str:
        shapes = shape.format('<p:ph type="ctrTitle"/>', text.format("", title))
        shapes += shape.format("", text.format('<a:hlinkClick r:id="r1"/>', "more") + text.format("", "points"))
        return f'<p:sld xmlns:p="{SLIDE}" xmlns:a="{DRAWING}" xmlns:r="{OFFICE}" show="{show}">{shapes}</p:sld>'

    parts = {
        "_rels/.rels": relations(r1="officeDocument ppt/presentation.xml"),
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{SLIDE}" xmlns:r="{OFFICE}"><p:sldIdLst>'
        '<p:sldId id="300" r:id="r2"/><p:sldId id="256" r:id="r1"/><p:sldId id="257" r:id="r3"/>'
        "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            r1="slide slides/1.xml", r2="slide slides/2.xml", r3="slide /ppt/slides/3.xml"
        ),
        "ppt/slides/1.xml": slide("Last"),
        "ppt/slides/2.xml": slide("First"),
        "ppt/slides/3.xml": slide("Hidden", "0"),
        "ppt/slides/_rels/2.xml.rels": relations(r1="https://example.org/more"),
    }
    return packed(parts)


def test_a_presentation() -> None:
    """Slides in order, titles as headings, links; a hidden slide is left out."""
    found = read(presentation())
    assert (found.kind, found.text.splitlines()) == (
        "pptx",
        [
            "<h2>First</h2>",
            '<p><a href="https://example.org/more">more</a></p>',
            "<p>points</p>",
            "<h2>Last</h2>",
            "<p>more</p>",
            "<p>points</p>",
        ],
    )


def odt(body: str, media_type: str = "text", **more: str) -> bytes:
    """Return an OpenDocument file."""
    spaces = f'xmlns:text="{ODF}text:1.0" xmlns:office="{ODF}office:1.0" xmlns:table="{ODF}table:1.0" xmlns:xlink="x"'
    parts = {
        "mimetype": f"application/vnd.oasis.opendocument.{media_type}",
        "meta.xml": '<m xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Almonds of 2026</dc:title></m>',
        "content.xml": f"<office:document-content {spaces}>{body}</office:document-content>",
    }
    return packed(parts | {name.replace("__", "/"): text for name, text in more.items()})


def test_an_open_document() -> None:
    """Its title, headings, links and tables, without comments and deleted text."""
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:h text:outline-level="3">Harvest</text:h>'
        '<text:p>One<text:s/>two <text:a xlink:href="https://example.org/">link</text:a>'
        "<office:annotation><text:p>comment</text:p></office:annotation></text:p>"
        "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
        "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>"
    )
    found = read(odt(body))
    assert (found.kind, found.title) == ("odt", "Almonds of 2026")
    assert found.text.splitlines() == [
        "<h3>Harvest</h3>",
        '<p>One two <a href="https://example.org/">link</a></p>',
        "<tr><td>a</td><td>b</td></tr>",
    ]


def epub(encryption: str = "") -> bytes:
    """Return a book of two chapters."""
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<c><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></c>',
        "OPS/book.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The nut</dc:title>'
        '</metadata><manifest><item id="a" href="a%20b.xhtml"/><item id="b" href="b.xhtml"/></manifest>'
        '<spine><itemref idref="b"/><itemref idref="a"/><itemref idref="lost"/></spine></package>',
        "OPS/a b.xhtml": "<html><head><title>no</title></head><body><p>Second&nbsp;chapter</body>",
        "OPS/b.xhtml": "<html><body><h1>One</h1><a href='a.xhtml#x'>next</a> <a href=\"https://example.org/\">web</a></body>",
    }
    return packed(parts | ({"META-INF/encryption.xml": encryption} if encryption else {}))


def test_a_book() -> None:
    """Chapters in the order of the spine, even if they are not XML; internal links are not web links."""
    found = read(epub())
    assert (found.kind, found.title, found.pages) == ("epub", "The nut", 2)
    assert found.text.index("One") < found.text.index("Second")
    assert "https://example.org/" in found.text
    assert "a.xhtml" not in found.text
    assert "<title>" not in found.text


def test_markdown() -> None:
    """Headings, links and tables are read; the title may be in the front matter, and the charset may vary."""
    found = read(
        "---\ntitle: 'Front'\n---\n# Head\n\nCaf\u00e9 [more](other.md)\n\n|a|b|\n|-|-|\n|1|2|\n".encode("cp1252")
    )
    assert (found.kind, found.title) == ("md", "Front")
    assert '<h1>Head</h1>\n<p>Caf\u00e9 <a href="other.md">more</a></p>' in found.text
    assert "<td>1</td>" in found.text


LOCKED = '<e><EncryptedData><CipherReference URI="OPS/{}.xhtml"/></EncryptedData></e>'


@pytest.mark.parametrize(
    "data",
    [
        epub("<x>" + LOCKED.format("a%20b") + LOCKED.format("b") + "</x>"),
        odt("<text:p>x</text:p>", **{"META-INF__manifest.xml": "<m><file-entry><encryption-data/></file-entry></m>"}),
        docx(run("x")).replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00"),
    ],
    ids=["a book", "an open document", "a ZIP archive"],
)
def test_a_locked_document(data: bytes) -> None:
    """A document that needs a password says so."""
    assert read_package(data, BOUNDS).verdict is Verdict.PASSWORD


LAUGHS = '<!DOCTYPE w:document [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "data",
    [
        docx("", **{"word__document.xml": f'{LAUGHS}<w:document xmlns:w="{WORD}">{run("&b;")}</w:document>'}),
        docx("", **{"word__document.xml": "<a>" * 5_000}),
        docx("", **{"word__document.xml": "no XML"}),
        packed({"_rels/.rels": relations(r1="officeDocument word/document.xml")}, zipfile.ZIP_LZMA),
        packed({"_rels/.rels": relations(r1="officeDocument xl/workbook.xml")}),
        packed({"mimetype": "application/java-archive"}),
        packed({"a.txt": "a"}),
    ],
    ids=["entities", "deep", "no XML", "LZMA", "no workbook", "a JAR", "any archive"],
)
def test_a_hostile_document(data: bytes) -> None:
    """A file that is not a document, or exceeds the limits, has no text."""
    found = read_package(data, BOUNDS)
    assert (found.verdict in {Verdict.BROKEN, Verdict.NO_TEXT}, found.text) == (True, "")


def test_a_bomb_is_read_up_to_the_bound() -> None:
    """A hundred kilobytes that unpack to twenty megabytes give as much text as any document may have."""
    found = read_package(docx(f"<w:p>{run('bomb')}</w:p>" * 400_000), BOUNDS)
    assert (found.verdict, len(found.text)) == (Verdict.CUT, BOUNDS.characters)


def test_what_was_read_before_the_damage_is_kept() -> None:
    """A truncated part has the text before the break."""
    whole = f'<w:document xmlns:w="{WORD}"><w:body>' + f"<w:p>{run('almonds')}</w:p>" * 100
    found = read_package(docx("", **{"word__document.xml": whole}), BOUNDS)
    assert (found.verdict, found.text.count("almonds")) == (Verdict.CUT, 100)


SEEDS = [docx(f"<w:p>{run('Almonds')}</w:p>"), odt("<text:p>Almonds</text:p>"), epub(), b"# Almonds\n\n[a](b) `c`"]


@FEW
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8))
def test_a_damaged_document_is_no_error(seed: bytes, damage: list[tuple[float, int]]) -> None:
    """Whatever bytes differ, there is an outcome within the limits."""
    data = bytearray(seed)
    for place, value in damage:
        data[int(place * len(data))] = value
    assert len(read_document(bytes(data), BOUNDS).text) <= BOUNDS.characters


@FEW
@given(st.sampled_from(SEEDS), st.floats(0, 1))
def test_a_document_that_breaks_off_is_no_error(seed: bytes, share: float) -> None:
    """This is true wherever it ends."""
    assert len(read_document(seed[: int(share * len(seed))], BOUNDS).text) <= BOUNDS.characters


NAMES = ("p", "t", "tr", "tc", "r")
XML_PIECES = [*(f"<w:{name}>" for name in NAMES), *(f"</w:{name}>" for name in NAMES), "<w:hyperlink/>", "&amp;", "a"]


@FEW
@given(st.lists(st.sampled_from(XML_PIECES), max_size=40))
def test_any_order_of_elements(pieces: list[str]) -> None:
    """Misplaced elements are not an error, and every word of them is escaped."""
    found = read_package(docx("".join(pieces)), BOUNDS)
    assert found.verdict in {Verdict.TEXT, Verdict.CUT, Verdict.NO_TEXT, Verdict.BROKEN}
    assert "&a" not in found.text.replace("&amp;", "")
