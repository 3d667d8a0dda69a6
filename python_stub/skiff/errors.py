"""The exceptions that Skiff raises: one class for each code of the C++ Error, with the same message.

Each is also the built-in exception that Python programs expect in its place.
"""
from typing import Tuple, Type


class Error(Exception):
    """A mistake of the caller or of a file: the message says where, what was found and what was expected."""

    code = ""

    # Not KeyError's, which quotes the message.
    __str__ = Exception.__str__


class InvalidArgumentError(Error, ValueError):
    """A value that the call can't accept."""

    code = "INVALID_ARGUMENT"


class NotFoundError(Error, KeyError):
    """A name that isn't there."""

    code = "NOT_FOUND"


class AlreadyExistsError(Error, ValueError):
    """A name that is there twice."""

    code = "ALREADY_EXISTS"


class OutOfRangeError(Error, IndexError):
    """An index or a count beyond its bounds."""

    code = "OUT_OF_RANGE"


class FailedPreconditionError(Error, RuntimeError):
    """The right call at the wrong moment."""

    code = "FAILED_PRECONDITION"


class UnimplementedError(Error, NotImplementedError):
    """Legal, but not supported."""

    code = "UNIMPLEMENTED"


class ResourceExhaustedError(Error, MemoryError):
    """Memory or disk is full."""

    code = "RESOURCE_EXHAUSTED"


class DataLossError(Error, ValueError):
    """A file is truncated or corrupt."""

    code = "DATA_LOSS"


class IoError(Error, OSError):
    """The system refused to read or write."""

    code = "IO"


BY_CODE: Tuple[Type[Error], ...] = (
    InvalidArgumentError, NotFoundError, AlreadyExistsError, OutOfRangeError, FailedPreconditionError, UnimplementedError,
    ResourceExhaustedError, DataLossError, IoError)
