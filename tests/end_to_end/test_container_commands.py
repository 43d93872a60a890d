"""The commands of the image and the compose file work without a container engine: install, start, health check, stop.

Paths of the image become those of a temporary folder, and its port a free one; everything else is as written.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.contracts.test_deploying import COMPOSE, IMAGE, in_compose, in_image
from tests.tree_runs import PATIENCE_S, PROVE, kill_all, patiently

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
CONTACT = dict.fromkeys(COMPOSE["environment"], "ops@example.org")


def find_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def write_settings(folder: Path, port: int) -> Path:
    """Write the image's settings, for a local folder and port."""
    (written,) = re.findall(r"printf '([^']*)' > /etc/vedette/vedette.toml", IMAGE)
    text = written.replace(r"\n", "\n").replace("0.0.0.0:8080", f"127.0.0.1:{port}")
    file = folder / "vedette.toml"
    file.write_text(text.replace("/var/lib/vedette", str(folder)), encoding="utf-8")
    return file


def is_healthy(port: int) -> bool:
    """Run the image's health check against a port."""
    (check,) = re.findall(r"^HEALTHCHECK .*\\\n +CMD (\[.*\])$", IMAGE, re.MULTILINE)
    words = [word.replace(":8080", f":{port}") for word in json.loads(check)]
    return subprocess.run([PROGRAMS / words[0], *words[1:]], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        pytest.param(in_image(), {}, id="image"),
        # A site on loopback, at a port that nothing answers, in place of one on the web.
        pytest.param([*in_compose()[:-1], "http://127.0.0.1:9/", "--allow-private"], CONTACT, id="compose"),
    ],
)
def test_the_service_starts_is_healthy_and_stops(
    command: Sequence[str], environment: dict[str, str], tmp_path: Path
) -> None:
    """It exits with status 0 on the image's stop signal."""
    port = find_port()
    settings = write_settings(tmp_path, port)
    words = [word.replace("/etc/vedette/vedette.toml", str(settings)) for word in command]
    assert not is_healthy(port)
    service = subprocess.Popen(
        [PROGRAMS / words[0], *words[1:]], cwd=tmp_path, env=os.environ | environment, start_new_session=True
    )
    try:
        patiently(lambda: service.poll() is not None or is_healthy(port))
        assert service.poll() is None
        (stop,) = re.findall(r"^STOPSIGNAL (\w+)$", IMAGE, re.MULTILINE)
        service.send_signal(signal.Signals[stop])
        assert service.wait(timeout=PATIENCE_S) == 0
    finally:
        kill_all(service)


@pytest.mark.skipif(not PROVE, reason="downloads every dependency: make prove")
def test_the_dependencies_of_the_image_have_wheels_with_these_hashes() -> None:
    """The dependencies that the image installs first are available for its Python."""
    (line,) = re.findall(r"^RUN /opt/vedette/bin/pip (install .*requirements.lock)$", IMAGE, re.MULTILINE)
    (version,) = set(re.findall(r"^FROM docker.io/library/python:(3\.\d+)-slim", IMAGE, re.MULTILINE))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *line.split()]
    dry = ["--dry-run", "--no-deps", "--python-version", version, "--target", "unused"]
    subprocess.run([*pip, *dry], cwd=ROOT, check=True, capture_output=True, timeout=600)
