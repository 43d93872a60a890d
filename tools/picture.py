"""Draw docs/demo.svg: the screen of a real `vedette demo`, a few seconds after it starts."""

import io
import re
import time
from pathlib import Path

from rich.console import Console

from vedette.cli.demo.command import run_demo
from vedette.cli.main import parse_arguments
from vedette.cli.progress import Screen, StatusNumbers

PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
AFTER_S = 8.0


class PhotographedScreen(Screen):
    """Draws nothing until the end, which it keeps as a picture."""

    started_s = time.monotonic()

    def update(self, told: StatusNumbers) -> None:
        """The latest state is the one that stays."""
        elapsed_s = time.monotonic() - self.started_s
        if "pages" in told and elapsed_s > AFTER_S - 0.5:
            camera = Console(record=True, width=92, file=io.StringIO(), force_terminal=True)
            camera.print(self.build_table(told, told["pages"] / elapsed_s, elapsed_s))
            # The reader's own monospaced font will do; a picture fetches nothing from elsewhere.
            svg = re.sub(r"@font-face \{.*?\}\s*", "", camera.export_svg(title="vedette demo"), flags=re.DOTALL)
            PICTURE.write_text(svg.replace("Fira Code", "ui-monospace"), encoding="utf-8")


if __name__ == "__main__":
    run_demo(parse_arguments(["demo", "--for", f"{AFTER_S:g}s"]), PhotographedScreen)
