"""batches: which sources are compiled as one.

For many sources the compiler takes longer to read the headers than for all the rest: nvcc took
105 s for the ten of operators/loss one by one, and 35 s for all at once, g++, without a precompiled
header, 22 s and 4 s for the cases of eight operators. The price is that a change of one file compiles its whole batch, and
that files of a batch may not define the same names.
"""

_MOST = 8

def batches(sources):
    """Returns the sources in as few lists as there can be, of at most eight and about as long."""
    count = (len(sources) + _MOST - 1) // _MOST
    return [sources[i * len(sources) // count:(i + 1) * len(sources) // count] for i in range(count)]
