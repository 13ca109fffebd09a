"""Write what each stage sends to a model about a small invented thread into `tests/golden`.

    python scripts/write_requests.py [--folder FOLDER]

Run it after a change of a prompt or of what a request shows, and look at the difference.
"""

from __future__ import annotations

import argparse
import runpy
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=TESTS / "golden", help="where to write")
    runpy.run_path(str(TESTS / "golden_requests.py"))["write"](parser.parse_args().folder)
