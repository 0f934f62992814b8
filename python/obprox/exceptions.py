"""What can go wrong. Each failure of the core is one of these, and each is also the built-in exception that fits."""

from __future__ import annotations


class ObproxError(Exception):
    """Every failure of obprox."""


class ParseError(ObproxError, ValueError):
    """The text of a file is not what its format asks for; the message says file, line and column."""


class FileError(ObproxError, ValueError):
    """A file as a whole is not usable: empty, truncated, of an unknown format."""


class ParameterError(ObproxError, ValueError):
    """A parameter is out of its range, or does not go with another one."""


class DataError(ObproxError, ValueError):
    """Data cannot be used for what is asked of it."""


class MemoryShortError(ObproxError, MemoryError):
    """Something needs more memory than there is; the message says how much."""


class ClusterError(ObproxError, RuntimeError):
    """The machines that have the rows cannot be reached; a checkpoint is kept."""


class NotFiniteError(DataError):
    """A value among the features is NaN or infinite; the message says where."""

    def __init__(self, message, column=None):
        super().__init__(message)
        self.column = column

    def of(self, names):
        """The same, with the name of the column where columns have names."""
        if names is None or self.column is None:
            return self
        return NotFiniteError(f'{self} (column "{names[self.column]}")', self.column)


class FileAccessError(ObproxError, OSError):
    """The operating system refused to open, read or write a file."""


class FileMissingError(FileAccessError, FileNotFoundError):
    """There is no such file."""


class FilePermissionError(FileAccessError, PermissionError):
    """The file may not be read or written."""


def file_access_error(errno: int | None, reason: str, path: object) -> FileAccessError:
    """The exception for a reason of the operating system."""
    import errno as numbers
    import os

    kinds = {numbers.ENOENT: FileMissingError, numbers.EACCES: FilePermissionError, numbers.EPERM: FilePermissionError}
    # In Python's words where the number is known.
    return kinds.get(errno or 0, FileAccessError)(errno, os.strerror(errno) if errno else reason, str(path))
