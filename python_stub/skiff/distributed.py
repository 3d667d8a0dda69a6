"""The ranks of a training: the processes that mpirun or srun has started, each with batches of its own.

Without a launcher, a process is rank 0 of 1, and the same script trains alone.
"""
from ._skiff.distributed import *  # noqa: F401,F403
