"""A process that adds events until it is stopped, and says each number once it is on the disk.

python writing_process.py LOG PERSON [HOW MANY]
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from echo_hf.apps.events import EventLog


def main() -> None:
    log, person = EventLog(Path(sys.argv[1])), sys.argv[2]
    numbers = range(int(sys.argv[3])) if len(sys.argv) > 3 else count()
    for number in numbers:
        event = log.append("rank", f"s{number % 7}", person, "rank", {"number": number})
        print(event.id, number, flush=True)


if __name__ == "__main__":
    main()
