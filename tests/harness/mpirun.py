"""Starts a program several times, as the ranks of MPI."""
import os
import subprocess


def variables(environment=None):
    """The environment of a launcher whose ranks are more than the cores."""
    return {
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


def launcher(ranks):
    """The command that starts so many ranks, to be followed by that of a rank."""
    return [os.environ.get("MPIRUN", "mpirun"), "-n", str(ranks)]


def mpirun(ranks, command, environment=None, seconds=300):
    """Runs `command` on that many ranks: the exit status of the launcher, and the output of all.

    An AssertionError if that takes longer than `seconds`. MPI keeps its files in the folder for temporary files.
    """
    try:
        done = subprocess.run([*launcher(ranks), *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, env=variables(environment),
                              timeout=seconds)
    except subprocess.TimeoutExpired as expired:
        raise AssertionError(f"{' '.join(command)} hasn't ended in {seconds} s\n{expired.output}") from None
    return done.returncode, done.stdout
