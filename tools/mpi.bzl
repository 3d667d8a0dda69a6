"""MPI in Bazel: if_mpi(), mpi_py_test().

if_mpi(a, b) is a where this machine has MPI, else b.
"""

load("@local_config_mpi//:defs.bzl", "MPIRUN", "MPI_FOUND")
load("//tools:test_rules.bzl", "skiff_py_test")

def if_mpi(if_true, if_false = []):
    return if_true if MPI_FOUND else if_false

# For target_compatible_with: only where this machine has MPI.
WITH_MPI = if_mpi([], ["//tools/cuda:unavailable"])

def mpi_py_test(name, data = [], tags = [], **kwargs):
    """A skiff_py_test of programs that tests/harness/mpirun.py starts; skipped without MPI.

    The sanitizers would report what MPI itself leaves.
    """
    skiff_py_test(
        name = name,
        data = data + ["//tests/harness:mpirun.py"],
        env = {"MPIRUN": MPIRUN},
        tags = tags + ["nosan"],
        target_compatible_with = WITH_MPI,
        **kwargs
    )
