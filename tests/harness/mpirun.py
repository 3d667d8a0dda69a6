"""Starts a program several times, as the ranks of MPI."""
import os
import subprocess


def mpirun(ranks, command, environment=None, seconds=300):
    """Runs `command` on that many ranks: the exit status of the launcher, and the output of all.

    An AssertionError if that takes longer than `seconds`. MPI keeps its files in the folder for temporary files.
    """
    variables = {
        **os.environ,
        # The user of a container is often root.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        # More ranks than cores: ranks that wait let others run.
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMP_NUM_THREADS": "1",
        **(environment or {}),
    }
    try:
        done = subprocess.run([os.environ["MPIRUN"], "-n", str(ranks), *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=variables,
                              timeout=seconds)
    except subprocess.TimeoutExpired as expired:
        raise AssertionError(f"{' '.join(command)} hasn't ended in {seconds} s\n{expired.output}") from None
    return done.returncode, done.stdout
