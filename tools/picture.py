"""Draw docs/demo.svg: the screen of a real `vedette demo` once it has fetched some pages."""

import io
import re
import signal
import time
from pathlib import Path

from rich.console import Console

from vedette.cli.demo.command import run_demo
from vedette.cli.main import parse_arguments
from vedette.cli.progress import Screen, StatusNumbers

PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
PAGES = 1_500
FRESH_S = 2.0


class PhotographedScreen(Screen):
    """Draw nothing, save the state after enough pages as a picture, and stop the demo like Ctrl-C."""

    started_s = time.monotonic()

    def update(self, numbers: StatusNumbers) -> None:
        """Save the picture when it is due."""
        if numbers.get("pages", 0) < PAGES or numbers.get("age_s", 0.0) > FRESH_S:
            return
        elapsed_s = time.monotonic() - self.started_s
        camera = Console(record=True, width=92, file=io.StringIO(), force_terminal=True)
        camera.print(self.build_table(numbers, numbers["pages"] / elapsed_s, elapsed_s))
        # Without web fonts, so that the picture loads nothing from elsewhere.
        svg = re.sub(r"@font-face \{.*?\}\s*", "", camera.export_svg(title="vedette demo"), flags=re.DOTALL)
        PICTURE.write_text(svg.replace("Fira Code", "ui-monospace"), encoding="utf-8")
        signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    run_demo(parse_arguments(["demo"]), PhotographedScreen)
