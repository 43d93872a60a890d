"""Page vectors on disk: the last text of a page counts, and leftovers of a crash do not."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from vedette.adapters.index_store.vector_store import (
    VectorInfo,
    VectorReader,
    VectorWriter,
    find_vector_damage,
    read_vector_info,
    remove_vectors,
    seal_vectors,
    write_vector_info,
)

INFO = VectorInfo("tiny", "abc", 2, "vectors-abc")
EAST, NORTH = np.array([[1.0, 0.0]], np.float32), np.array([[0.0, 1.0]], np.float32)


def test_the_last_text_of_a_page_counts(tmp_path: Path) -> None:
    """A page that changed has the vectors of its new text, all of them; a reader sees them after a refresh."""
    write_vector_info(tmp_path, INFO)
    reader = VectorReader(tmp_path)
    with closing(VectorWriter(tmp_path, INFO)) as writer:
        writer.add(7, 1, (0, 90), np.concatenate((EAST, EAST)))
        writer.add(5, 2, (0,), NORTH)
        assert reader.refresh()
        assert reader.parts.ids.tolist() == [5, 7]
        assert len(reader.parts.rows) == 3
        writer.add(7, 3, (0,), NORTH)
    assert reader.refresh()
    assert not reader.refresh()
    assert reader.prints.tolist() == [2, 3]
    assert reader.parts.vectors[reader.parts.rows].tolist() == [[0, 1], [0, 1]]


def test_a_torn_write_is_cut_off(tmp_path: Path) -> None:
    """Half a vector after a crash is ignored by readers, and removed before more is added."""
    write_vector_info(tmp_path, INFO)
    with closing(VectorWriter(tmp_path, INFO)) as writer:
        writer.add(1, 1, (0,), EAST)
    with (tmp_path / "vectors-abc").open("ab") as file:
        file.write(b"\xff" * 5)
    reader = VectorReader(tmp_path)
    assert reader.refresh()
    with closing(VectorWriter(tmp_path, INFO)) as writer:
        writer.add(2, 1, (0,), NORTH)
    assert reader.refresh()
    assert reader.parts.vectors[reader.parts.rows].tolist() == [[1, 0], [0, 1]]


def test_nothing_is_left_of_removed_vectors(tmp_path: Path) -> None:
    """Removing vectors deletes files and description; a damaged description counts as missing."""
    write_vector_info(tmp_path, INFO)
    VectorWriter(tmp_path, INFO).close()
    remove_vectors(tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / "vectors.json").write_text('{"unknown": 1}')
    assert read_vector_info(tmp_path) is None
    reader = VectorReader(tmp_path)
    reader.refresh()
    assert not len(reader.parts.ids)


@pytest.mark.parametrize("file", ["vectors-abc", "vectors-abc.parts"])
def test_a_flipped_bit_is_found(tmp_path: Path, file: str) -> None:
    """Sealed rows are verified by their digest; rows still being added do not count yet."""
    with closing(VectorWriter(tmp_path, INFO)) as writer:
        writer.add(1, 1, (0,), EAST)
        write_vector_info(tmp_path, seal_vectors(tmp_path, INFO))
        writer.add(2, 1, (0,), NORTH)
    assert find_vector_damage(tmp_path) == ""
    data = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(bytes([data[0] ^ 1]) + data[1:])
    assert "digest" in find_vector_damage(tmp_path)


@pytest.mark.parametrize(
    "info",
    [
        INFO._replace(file="../../.profile"),
        INFO._replace(file="/etc/passwd"),
        INFO._replace(file="vectors-abc/../../x"),
        INFO._replace(dimensions=-1),
        INFO._replace(dimensions="2"),  # type: ignore[arg-type]
    ],
)
def test_a_description_names_no_other_file(tmp_path: Path, info: VectorInfo) -> None:
    """A folder from someone else can't have other files read, cut or written to."""
    write_vector_info(tmp_path, info)
    assert read_vector_info(tmp_path) is None
    assert find_vector_damage(tmp_path)
