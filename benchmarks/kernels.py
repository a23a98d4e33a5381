"""How long `--target` takes, beside the plain compile for the CPU of the same block.

    python benchmarks/kernels.py [--target SPEC] [--repeat N]

The block is a transformer encoder layer, one training step. The worker is warm, as it is after a
session's first cell; nothing is cached: neither Inductor's kernels nor the target's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

BLOCK = """\
import torch
from torch import nn

layer = nn.TransformerEncoderLayer(
    {width}, nhead=4, dim_feedforward={hidden}, dropout=0.0, batch_first=True
)
x = torch.randn(4, 32, {width})
"""
STEP = "layer(x).pow(2).mean().backward()"

#: The widths differ, so that no kernel of one run is another's.
WIDTHS = (64, 96, 128, 160, 192)


def shell() -> Any:
    """Return an IPython shell with the extension, which displays nothing."""
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    ip = InteractiveShell(display_pub_class=CapturingDisplayPublisher)
    ip.display_pub = CapturingDisplayPublisher()
    ip.history_manager.enabled = False
    for name in ("write_output_prompt", "write_format_data", "finish_displayhook"):
        setattr(ip.displayhook, name, lambda *_, **__: None)
    ip.run_cell("%load_ext dynamo_nb")
    return ip


def run(ip: Any, width: int, words: str) -> float:
    """Return the seconds that a cell with the block's training step took, its report included."""
    ip.run_cell(BLOCK.format(width=width, hidden=2 * width))
    start = time.perf_counter()
    result = ip.run_cell(f"%%dynamo --fresh {words}\n{STEP}")
    assert result.success
    return time.perf_counter() - start


def main() -> None:
    """Measure in a process of its own for each repetition, with caches of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.target)))
        return
    found = [apart(given.target) for _ in range(given.repeat)]
    print(f"{'':28}{'median':>8}{'least':>8}{'most':>8}")
    for name, unit in UNITS.items():
        values = [run[name] for run in found]
        row = (statistics.median(values), min(values), max(values))
        print(f"{name:28}" + "".join(f"{value:8.2f}" for value in row) + f" {unit}")


UNITS = {
    "worker ready": "s",
    "first kernel": "s",
    "plain compile": "s",
    "with the target": "s",
    "ratio": "x",
    "kernels": "",
}


def apart(spec: str) -> dict[str, float]:
    """Return one repetition's figures."""
    command = [sys.executable, __file__, "--one", "--target", spec]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder}
        text = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
    figures: dict[str, float] = json.loads(text.splitlines()[-1])
    return figures


def one(spec: str) -> dict[str, float]:
    """Measure the worker's start, then one width with the target between two without."""
    ip = shell()
    from dynamo_nb import last
    from dynamo_nb.target import client

    run(ip, 32, "")  # torch imports much at its first compile
    start = time.perf_counter()
    client.worker_for(spec).start().result()
    ready = time.perf_counter() - start
    ip.run_cell("import torch\nsmall = torch.randn(64, 64)")
    start = time.perf_counter()
    ip.run_cell(f"%%dynamo --fresh --backend eager --target {spec}\nsmall.relu() + 1")
    first = time.perf_counter() - start
    before = run(ip, WIDTHS[0], "")
    with_target = run(ip, WIDTHS[1], f"--target {spec}")
    targets = [target for entry in last().compiles for target in entry.targets]
    after = run(ip, WIDTHS[2], "")
    plain = (before + after) / 2
    return {
        "worker ready": ready,
        "first kernel": first,
        "plain compile": plain,
        "with the target": with_target,
        "ratio": with_target / plain,
        "kernels": float(sum(len(target.binaries) for target in targets)),
    }


if __name__ == "__main__":
    main()
