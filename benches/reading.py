"""Reading a LIBSVM file: obprox beside scikit-learn, in turn, in one run.

    python3 -m venv benches/.venv && benches/.venv/bin/pip install scikit-learn
    cargo build --release -p obprox-benches
    benches/.venv/bin/python benches/reading.py FILE...
"""

import os
import subprocess
import sys
import time

from sklearn.datasets import load_svmlight_file

READER = os.path.join(os.path.dirname(__file__), "..", "target", "release", "reading")

print("| file | MB | scikit-learn | obprox, 1 thread | obprox, 2 threads |")
print("|---|---|---|---|---|")
for path in sys.argv[1:]:
    megabytes = os.path.getsize(path) / 1e6
    peer = float("inf")
    ours = {}
    for _ in range(3):
        begun = time.perf_counter()
        load_svmlight_file(path)
        peer = min(peer, time.perf_counter() - begun)
        for line in subprocess.run([READER, path], check=True, capture_output=True, text=True).stdout.splitlines():
            threads, seconds = line.split()
            ours[threads] = min(ours.get(threads, float("inf")), float(seconds))
    cells = [f"{1e3 * ours[t]:.0f} ms = {peer / ours[t]:.1f}× faster, {megabytes / ours[t]:.0f} MB/s" for t in ("1", "2")]
    print(f"| {os.path.basename(path)} | {megabytes:.0f} | {peer:.2f} s | {cells[0]} | {cells[1]} |")
