"""A site's credentials are sent to that site, and appear in nothing that is stored or printed."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

from tests.tree_runs import PATIENCE_S
from tests.wire_server import WireServer, whole

WORD = "hunter22-open-sesame"


def test_a_secret_reaches_its_site_and_no_archive_log_or_export(tmp_path: Path) -> None:
    """The header is sent with every request to the host; state, archive and output only contain its location."""
    page = b"<title>Wiki</title>"
    with WireServer(lambda _: whole(page, "Content-Type: text/html")) as server:
        site = f"http://{server.address}:{server.port}/"

        def vedette(*arguments: str) -> str:
            command = [sys.executable, "-m", "vedette", *arguments, "--data", str(tmp_path / "data")]
            environment = {**os.environ, "WIKI_KEY": f"X-Key: {WORD}"}
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True, cwd=tmp_path
            )
            return done.stdout + done.stderr

        said = vedette("sites", "add", site, "--secrets", "env:WIKI_KEY", "--allow-private")
        said += vedette("fetch", site) + vedette("explain", site) + vedette("sites", "export")
        keys = [question.header("x-key") for question in server.questions]
    assert keys == [WORD] * 2
    assert "env:WIKI_KEY" in said
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir() if path.is_file())
    (archive,) = (tmp_path / "data" / "warc").glob("*.warc.gz")
    assert b"Wiki" in gzip.decompress(archive.read_bytes())
    for place in (said.encode(), kept, gzip.decompress(archive.read_bytes())):
        assert WORD.encode() not in place
