"""heedful with a timeout of seconds, on a host that takes its network down.

Usage: failing_link.py INTERFACE EVENT arguments… EVENT is "step", "validation" or "save": rank 0 takes the link down in
the middle of it. With "kill", it kills itself with -9 in a step, unless torchrun has restarted it. With "none", nothing
happens.
"""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from typing import Any

from heedful.cli.main import main
from heedful.training import checkpoints, distributed
from heedful.training.distributed import is_main_process
from heedful.training.parallel import ParallelLoss
from heedful.training.validation import Validation

STEP = 10  # of the forward passes in this process
EVENTS = {
    "step": (ParallelLoss, "__call__", STEP),
    "kill": (ParallelLoss, "__call__", STEP),
    "validation": (Validation, "_score", 1),
    "save": (checkpoints, "write_manifest", 1),
}


def fail(interface: str, event: str) -> None:
    if event == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    subprocess.run(["ip", "link", "set", interface, "down"], check=True)
    print("link down", file=sys.stderr)


def fail_in(interface: str, event: str, owner: Any, name: str, call: int) -> None:
    original, calls = getattr(owner, name), 0

    def replaced(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            fail(interface, event)
        return original(*arguments, **named)

    setattr(owner, name, replaced)


if __name__ == "__main__":
    distributed.TIMEOUT = timedelta(seconds=20)
    interface, event = sys.argv[1:3]
    is_first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if event in EVENTS and is_main_process() and is_first:
        fail_in(interface, event, *EVENTS[event])
    sys.argv[1:] = sys.argv[3:]
    sys.exit(main())
