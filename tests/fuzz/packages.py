"""Office documents and books for fuzzing: valid ones, and mutations of the parts inside a valid archive.

A changed byte of a ZIP file fails its checksum, so most of its mutations only test zipfile. Mutations of a part reach
our readers.
"""

import zipfile
from collections.abc import Callable
from io import BytesIO

from tests.adapters.documents import test_office as samples

__all__ = ["SEEDS", "TOKENS", "mutate"]

MOST_UNPACKED_BYTES = 200_000
# One mutation in this many is of the archive itself.
WHOLE_EVERY = 8


def pack(parts: dict[str, bytes]) -> bytes:
    """Write an archive of these parts, uncompressed and without times."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """Read the parts of an archive; none if it is damaged or large."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MOST_UNPACKED_BYTES:
                return {}
            return {info.filename: archive.read(info) for info in archive.infolist()}
    except Exception:  # noqa: BLE001 - zipfile raises many kinds for damaged archives
        return {}


def mutate(data: bytes, mutate_bytes: Callable[[bytes], bytes], seed: int) -> bytes:
    """Mutate one part of an archive, or the archive itself."""
    parts = unpack(data)
    if not parts or seed % WHOLE_EVERY == 0:
        return mutate_bytes(data)
    name = sorted(parts)[seed // WHOLE_EVERY % len(parts)]
    try:
        return pack(parts | {name: mutate_bytes(parts[name])})
    except ValueError:  # a name that cannot be written
        return mutate_bytes(data)


# Repacked without compression, so that mutations of the archive find its parts.
SEEDS = tuple(
    pack(unpack(data))
    for data in (
        samples.docx(f"<w:p>{samples.run('Almonds')}<w:hyperlink r:id='r2'>{samples.run('figs')}</w:hyperlink></w:p>"),
        samples.workbook(),
        samples.presentation(),
        samples.odt("<text:h>A</text:h><text:p>Almonds</text:p><table:table><table:table-row/></table:table>"),
        samples.odt("<table:table><table:table-row><text:p>1</text:p></table:table-row></table:table>", "spreadsheet"),
        samples.epub(),
    )
)
TOKENS = (
    *(
        b"<w:p>",
        b"</w:p>",
        b"<w:t>",
        b"</w:t>",
        b"<w:tr>",
        b"<w:tc>",
        b'<w:pStyle w:val="',
        b"<c t='s'><v>",
        b"<si><t>",
    ),
    *(b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&amp;", b"&#0;", b'encoding="utf-16"', b'numFmtId="14"', b"<v>1e308</v>"),
    *(b"<v>-1</v>", b'state="hidden"', b'TargetMode="External"', b'Target="../', b'r:id="r1"', b"text:outline-level="),
    *(b"number-columns-repeated=", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"mimetype", b"<itemref idref='b'/>"),
)
