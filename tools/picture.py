"""Draws docs/demo.svg: the screen of a real `vedette demo`, some seconds after its start."""

import io
import re
import time
from pathlib import Path

from rich.console import Console

from vedette.cli.arguments import parse
from vedette.cli.demo.command import demonstrate
from vedette.cli.progress import Numbers, Screen

PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
AFTER_S = 8.0


class PhotographedScreen(Screen):
    """Draws nothing until the end, which it keeps as a picture."""

    started_s = time.monotonic()

    def look(self, told: Numbers) -> None:
        """The latest state is the one that stays."""
        elapsed_s = time.monotonic() - self.started_s
        if "pages" in told and elapsed_s > AFTER_S - 0.5:
            camera = Console(record=True, width=92, file=io.StringIO(), force_terminal=True)
            camera.print(self.table(told, told["pages"] / elapsed_s, elapsed_s))
            # The reader's own monospaced font will do; a picture fetches nothing from elsewhere.
            svg = re.sub(r"@font-face \{.*?\}\s*", "", camera.export_svg(title="vedette demo"), flags=re.DOTALL)
            PICTURE.write_text(svg.replace("Fira Code", "ui-monospace"), encoding="utf-8")


if __name__ == "__main__":
    demonstrate(parse(["demo", "--for", f"{AFTER_S:g}s"]), PhotographedScreen)
