"""Types of command-line arguments, with messages that show what was given."""

from __future__ import annotations

import argparse
import math


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'must be a whole number, not "{text}"') from None


def finite_number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'must be a finite number, not "{text}"')
    return value
