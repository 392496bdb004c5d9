"""`heedful average`: the parameter average of a run's newest checkpoints."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful.atomic_files import require_replaceable
from heedful.cli.output_file import require_not_in_a_model
from heedful.errors import CheckpointError, UsageError
from heedful.formatting import plural
from heedful.storage.model_directory import is_model, write_model
from heedful.storage.run_directory import RunDirectory, is_run
from heedful.training.averaging import averaged_model


def average(arguments: argparse.Namespace) -> None:
    path, last = Path(arguments.run), arguments.last
    if last < 1:
        raise UsageError(f"`--last` must be at least 1, not {last}.")
    if not is_run(path):
        raise CheckpointError(
            f"{path} is not a run: it has no config.toml. Pass a directory written by `heedful train`."
        )
    out = Path(arguments.out)
    run = RunDirectory(path)
    require_not_in_a_model(out, "--out")
    require_replaceable(out, is_model)
    steps = run.valid_steps(last)
    if len(steps) < last:
        raise CheckpointError(
            f"{path} has {plural(len(steps), 'valid checkpoint')}, fewer than `--last {last}`. "
            "Lower `--last`, or train with a larger training.keep."
        )
    write_model(out, averaged_model(run, steps))
    print(out)
