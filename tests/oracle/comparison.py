"""Compares arrays of two frameworks and describes the result. Needs only NumPy.

Whatever can't be compared differs infinitely: nothing is the same for want of a second array.
"""
import numpy as np

# Of training: relative to a loss, or to the largest magnitude of an array.
BOUNDS = {"float64": 1e-9, "float32": 1e-3}
INFINITE = float("inf")


def load_arrays(path):
    with np.load(path) as archive:
        return dict(archive.items())


def are_alike(found, expected):
    """Whether both are there, of one shape and one dtype."""
    if found is None or expected is None:
        return False
    return found.shape == expected.shape and found.dtype == expected.dtype


def largest_difference(found, expected):
    """The largest difference, relative to the largest magnitude of `expected`; 0 for equal arrays.

    Infinite where one is missing (None), where shapes, dtypes, or the places of infinities and NaNs
    differ, or integers do.
    """
    if not are_alike(found, expected):
        return INFINITE
    if found.size == 0 or np.array_equal(found, expected):
        return 0.0
    if not np.issubdtype(expected.dtype, np.floating):
        return INFINITE
    finite = np.isfinite(expected)
    same = np.array_equal(found[~finite], expected[~finite], equal_nan=True)
    if not same or not np.isfinite(found[finite]).all():
        return INFINITE
    if not finite.any():
        return 0.0
    difference = np.abs(found[finite].astype(np.float64) - expected[finite].astype(np.float64)).max()
    size = np.abs(expected[finite]).max()
    return float(difference / size) if size > 0 else INFINITE


def series_difference(found, expected):
    """The largest difference of a step's number, relative to the expected one.

    Infinite where one series is missing (None), empty or longer, or a number is not finite.
    """
    if found is None or expected is None:
        return INFINITE
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    if found.shape != expected.shape or found.size == 0:
        return INFINITE
    if not (np.isfinite(found).all() and np.isfinite(expected).all()):
        return INFINITE
    differences = [abs(f - e) / abs(e) if e else INFINITE for f, e in zip(found, expected) if f != e]
    return float(max(differences, default=0.0))


def compare_arrays(what, found, expected, bound):
    """Returns (largest difference of two dicts of arrays, descriptions of differences beyond the bound).

    An array that only one of the two has differs infinitely, and so do two empty dicts.
    """
    if not found and not expected:
        return INFINITE, ["%s: there is none" % what]
    describe = lambda array: "missing" if array is None else "%s %s" % (array.dtype, list(array.shape))
    worst, problems = 0.0, []
    for name in sorted(set(found) | set(expected)):
        pair = found.get(name), expected.get(name)
        difference = largest_difference(*pair)
        worst = max(worst, difference)
        if not difference <= bound:
            problems.append("%s %s differs by %.1e: %s, expected %s" % (what, name, difference, *map(describe, pair)))
    return worst, problems


def compare_rounding(arrays, names, gradients, bound):
    """Describes those of `names` that are more than rounding: larger than `bound` times the largest gradient."""
    size_of = lambda name: float(np.abs(arrays[name]).max())
    largest = max(map(size_of, gradients))
    return ["%s should be zero but for rounding: it is up to %.1e, and the largest gradient %.1e" %
            (name, size_of(name), largest) for name in sorted(names) if not size_of(name) <= bound * largest]


def print_table(header, rows):
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
