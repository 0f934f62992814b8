"""The progress bar of ``verbose=1``: a line in a terminal, an updated cell in a notebook."""

from __future__ import annotations

import sys

WIDTH = 24


class Progress:
    """Shows how far a run has come; writes to the error stream and nowhere else."""

    def __init__(self, name, total):
        self.name, self.total = name, total
        self._cell = _notebook_cell()

    def epoch(self, figures):
        """Shows an epoch of a run."""
        words = [f"{figures['phase']} {figures['epoch']}/{self.total}"]
        if "F" in figures:
            words += [f"F {figures['F']:.6g}", f"nnz {figures['nnz']}"]
            if figures["relative_gap"] is not None:
                words.append(f"gap {figures['relative_gap']:.1e}")
        self.show(figures["epoch"] / self.total, "  ".join(words))

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
