"""The most memory that torch holds at one time while it computes something: exact, and the same at each run."""

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from torch.profiler import ProfilerActivity, profile


def peak_memory(compute: Callable[[], object]) -> int:
    """The peak of what torch's allocator for the CPU hands out during a computation, in bytes.

    Scratch memory that a kernel asks the allocator for counts; what was there before, such as inputs and weights, does
    not. Neither does what a vendor's library (oneDNN, MKL) takes by itself.

    Args:
        compute: runs the computation, and returns what is to stay alive until its end.
    """
    with _quiet_tracer(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as traced:
        result = compute()
    del result
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        traced.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = sorted((event for event in events if event["name"] == "[memory]"), key=lambda event: event["ts"])
    held = peak = 0
    for change in changes:  # allocations are positive, what is given back is negative
        held += change["args"]["Bytes"]
        peak = max(peak, held)
    return peak


@contextmanager
def _quiet_tracer():
    """Keep the tracer's remarks, such as that there is no GPU, off stderr; it reads this setting when it first runs."""
    before = os.environ.get("KINETO_LOG_LEVEL")
    os.environ["KINETO_LOG_LEVEL"] = "99"
    try:
        yield
    finally:
        if before is None:
            del os.environ["KINETO_LOG_LEVEL"]
        else:
            os.environ["KINETO_LOG_LEVEL"] = before
