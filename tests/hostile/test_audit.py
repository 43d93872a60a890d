"""The soak's auditor: it shares no code with what it audits, accepts an intact folder, and finds damage."""

import ast
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.data_folders import NOW_S
from tests.runtime.indexing.test_index_builder import SITE, Web, page
from tests.soak import audit as auditor
from tests.soak.audit import audit

from vedette.adapters.crawl_store.store import SiteRow


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few pages, closed cleanly."""
    folder = tmp_path_factory.mktemp("sound") / "data"
    web = Web(folder)
    with web.state() as state:
        state.store.save_site(SiteRow(SITE, paused=False, added_s=NOW_S))
    web.all_answer({str(number): page(f"Page {number}", "zeppelin") for number in range(3)})
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return folder


def change(sql: str) -> Callable[[Path], object]:
    """Change the state behind the program's back."""

    def run(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "state.db")) as db, db:
            db.execute(sql)

    return run


def flip_record(folder: Path) -> None:
    """Damage the archive."""
    (path,) = folder.glob("warc/*.warc.gz")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "has no page": change("DELETE FROM page WHERE id = 2"),
    "without a reason": change("UPDATE fate SET fate = 3 WHERE url_id = 1"),
    "is known twice": change(
        "INSERT INTO url SELECT 99, partition, host, url, depth, priority, found_s FROM url LIMIT 1"
    ),
    "another partition": change("UPDATE url SET partition = partition + 1 WHERE id = 1"),
    "in lease is no URL": change("INSERT INTO lease VALUES (77, 0, 0, 0, 0, 1, 0.0)"),
    "beyond what is acknowledged": change("UPDATE archive SET length = length - 1"),
    "is a command of nobody": change("INSERT INTO action (at_s, what) VALUES (0.0, 'removed a site')"),
    "is not logged": change(
        'INSERT INTO life VALUES (\'answers to commands\', \'{"c": [0.0, {"done": "x", "action": 99}]}\')'
    ),
    "tried again without a reason": change("INSERT INTO retry SELECT id, 1, 0.0, 0.0 FROM url LIMIT 1"),
    "the table of": lambda folder: (folder / "urls").write_bytes(bytes(1 << 17)),
    "read by others": lambda folder: (folder / "format").chmod(0o644),
    "was left behind": lambda folder: (folder / "state.new.db").touch(0o600),
    "the record of": flip_record,
}


def test_it_shares_no_code_with_what_it_audits() -> None:
    """It only imports the standard library."""
    source = Path(auditor.__file__).read_text(encoding="utf-8")
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in nodes}
    assert not [name for name in names if name and name.split(".")[0] in {"vedette", "tests", "numpy", "fastwarc"}]


def test_it_detects_each_kind_of_damage(sound: Path, tmp_path: Path) -> None:
    """An intact folder has three pages and no problems; each kind of damage is reported."""
    counts, wrong = audit(sound)
    assert (counts["pages"], counts["records"], wrong) == (3, 3, [])
    missed = []
    for number, (words, damage) in enumerate(DAMAGE.items()):
        folder = shutil.copytree(sound, tmp_path / str(number))
        damage(folder)
        if not any(words in finding for finding in audit(folder)[1]):
            missed.append(words)
    assert missed == []
