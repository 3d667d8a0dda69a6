"""Measures how long it takes to open a safetensors file of 512 MB and to add up some of its tensors, read or mapped.

usage: read_safetensors.py [FOLDER]
The file is written to the folder (that of temporary files if none is given) and removed at the end. Each figure is of
a process of its own: the median of the times, and the memory that the process has more in the end than before.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import skiff

TENSORS = 100
SHAPE = (1280, 1000)  # of float32: 5.12 MB
RUNS = 5


def resident_megabytes():
    """The memory of this process by kind: of its own, and pages of files."""
    with open("/proc/self/status", encoding="utf-8") as stream:
        fields = dict(line.split(":") for line in stream)
    return [int(fields[key].split()[0]) * 1024 / 1e6 for key in ("RssAnon", "RssFile")]


def measure(path, mmap, touched):
    """Prints seconds and megabytes of opening the file and adding up its first tensors."""
    numpy.ones(SHAPE, "float32").sum()
    before = resident_megabytes()
    begin = time.perf_counter()
    tensors = skiff.read_safetensors(path, mmap=mmap)
    total = sum(float(tensors[name].numpy().sum()) for name in sorted(tensors)[:touched])
    seconds = time.perf_counter() - begin
    assert total == touched * SHAPE[0] * SHAPE[1]
    print(seconds, *(after - was for after, was in zip(resident_megabytes(), before)))


def forget(path):
    """Drops the file from the system's cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def figures(path, mmap, touched, is_cached):
    """The median seconds, and the megabytes of a run."""
    runs = []
    for _ in range(RUNS):
        if not is_cached:
            forget(path)
        command = [sys.executable, __file__, "--measure", path, str(int(mmap)), str(touched)]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        runs.append([float(word) for word in text.split()])
    return [statistics.median(column) for column in zip(*runs)]


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        path = os.path.join(folder, "benchmark.safetensors")
        ones = numpy.ones(SHAPE, "float32")
        skiff.write_safetensors(path, {f"x{i:02}": ones for i in range(TENSORS)})
        print(f"{os.path.getsize(path) / 1e6:.0f} MB, {TENSORS} tensors; medians of {RUNS} processes")
        for is_cached in (True, False):
            for touched in (1, TENSORS):
                for mmap in (False, True):
                    seconds, own, of_file = figures(path, mmap, touched, is_cached)
                    print(f"{'cached' if is_cached else 'on disk'}, {touched} of {TENSORS}, "
                          f"{'mapped' if mmap else 'read'}: {seconds * 1e3:.1f} ms, "
                          f"{own:.0f} MB of memory, {of_file:.0f} MB of pages of the file")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], sys.argv[3] == "1", int(sys.argv[4]))
    else:
        main()
