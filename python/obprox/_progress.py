"""The progress bar of ``verbose=1``: a line in a terminal, an updated cell in a notebook."""

from __future__ import annotations

import math
import sys

WIDTH = 24


class Progress:
    """Shows how far a run has come; writes to the error stream and nowhere else."""

    def __init__(self, name, total=1, tol=0.0):
        self.name, self.total, self.tol = name, total, tol
        self._cell = _notebook_cell()

    def epoch(self, figures):
        """Shows an epoch of a run."""
        share = figures["epoch"] / self.total
        words = [f"{figures['phase']} {figures['epoch']}/{self.total}"]
        if "F" in figures:
            words += [f"F {figures['F']:.6g}", f"nnz {figures['nnz']}"]
            gap = figures["relative_gap"]
            if gap is not None:
                words.append(f"gap {gap:.1e}")
                # A run ends by its epochs or by its gap, of which each digit is a step towards the tolerance.
                if 0 < self.tol < 1 and gap < 1:
                    share = max(share, math.log(max(gap, self.tol)) / math.log(self.tol))
        self.show(share, "  ".join(words))

    def count(self, done, total):
        """Shows how many of the fits are done."""
        self.show(done / max(total, 1), f"{done}/{total} fits")

    def show(self, share, words):
        full = round(WIDTH * min(share, 1))
        line = f"{self.name}  {'█' * full}{'░' * (WIDTH - full)}  {words}"
        if self._cell is not None:
            self._cell(line)
        else:
            sys.stderr.write(f"\r\x1b[K{line}" if sys.stderr.isatty() else f"{line}\n")
            sys.stderr.flush()

    def close(self):
        """Leaves the last line as it is and goes on below it."""
        if self._cell is None and sys.stderr.isatty():
            sys.stderr.write("\n")
            sys.stderr.flush()


def _notebook_cell():
    """A function that shows a line in the output cell, or None where there is no notebook."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda line: handle.update({"text/plain": line}, raw=True)
