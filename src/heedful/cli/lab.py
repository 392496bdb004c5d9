"""`heedful lab`: the experiments behind the paper's claims."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful.errors import UsageError, nearest
from heedful.lab.experiment import Setting, report, write_finding
from heedful.lab.experiments import EXPERIMENTS
from heedful.storage.ownership import LAB, claim
from heedful.views.cross_attention_figure import require_matplotlib

ALL = "all"


def lab(arguments: argparse.Namespace) -> None:
    if arguments.name is None:
        for one in EXPERIMENTS:
            print(f"{one.name:<10} {one.section}: {one.claim}")
        return
    chosen = [one for one in EXPERIMENTS if arguments.name in (one.name, ALL)]
    if not chosen:
        allowed = [ALL, *(one.name for one in EXPERIMENTS)]
        raise UsageError(f'Unknown experiment "{arguments.name}".{nearest(arguments.name, allowed)}')
    require_matplotlib()
    for one in chosen:
        directory = Path(arguments.out) / one.name
        claim(directory, LAB)
        found = one.run(Setting(directory / ("runs-quick" if arguments.quick else "runs"), arguments.quick))
        write_finding(one, found, directory)
        print(f"{report(one, found)}\n\n{directory / 'report.md'}\n", flush=True)
