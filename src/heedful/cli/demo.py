"""`heedful demo`: print the demo's output."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful.demo import demo as run_demo


def demo(arguments: argparse.Namespace) -> None:
    for line in run_demo(Path(arguments.out)):
        print(line, flush=True)
