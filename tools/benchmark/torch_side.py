"""What the comparisons with PyTorch have in common: its malloc, its threads, the memory of its process."""
import os
import resource
import sys

# With these, malloc keeps freed blocks in the process, as Skiff's allocator does.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 33),
          "MALLOC_TOP_PAD_": str(1 << 28)}


def use_malloc():
    """Starts the program again if its malloc isn't that of MALLOC."""
    if any(os.environ.get(name) != value for name, value in MALLOC.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **MALLOC})


def torch_without_gradients(threads):
    """The module torch for so many threads, with the malloc of MALLOC."""
    use_malloc()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch  # after the number of threads is set

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def resident_megabytes():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20


def peak_megabytes():
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024
