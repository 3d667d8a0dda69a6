"""Finds this machine's MPI by its compiler wrapper, mpicc, or makes an empty library.

Looks at $MPI_HOME/bin, then at $PATH. MPI_HOME=none: pretend there is none.
defs.bzl of the repository says whether there is one (MPI_FOUND), and the path of
its launcher (MPIRUN).
"""

_DEFS = "MPI_FOUND = %s\nMPIRUN = %s\n"

def _mpicc(rctx):
    home = rctx.os.environ.get("MPI_HOME", "")
    if home == "none":
        return None
    if not home:
        return rctx.which("mpicc")
    mpicc = rctx.path(home + "/bin/mpicc")
    if not mpicc.exists:
        fail("MPI_HOME=%s: found no %s. MPI_HOME=none builds without MPI" % (home, mpicc))
    return mpicc

def _flags(rctx, mpicc):
    """-> (folders of headers, options for the linker) that the wrapper adds."""
    shown = rctx.execute([mpicc, "-show"])
    if shown.return_code != 0:
        fail("%s -show failed: %s" % (mpicc, shown.stderr))
    flags = shown.stdout.replace("\"", "").strip().split(" ")
    folders = [f[len("-I"):] for f in flags if f.startswith("-I")]
    linkopts = [f for f in flags if f[:2] in ("-L", "-l") or f.startswith("-Wl,") or f == "-pthread"]
    return folders, linkopts

def _impl(rctx):
    build = ["package(default_visibility = [\"//visibility:public\"])\n"]
    rctx.file("WORKSPACE", "")
    mpicc = _mpicc(rctx)
    if not mpicc:
        rctx.file("BUILD", build[0] + "\ncc_library(name = \"mpi\")\n")
        rctx.file("defs.bzl", _DEFS % (False, repr("")))
        return
    folders, linkopts = _flags(rctx, mpicc)

    # Only mpi.h and what lies beside it; the compiler finds its own folders by itself.
    folders = [f for f in folders if f != "/usr/include" and rctx.path(f + "/mpi.h").exists]
    for number, folder in enumerate(folders):
        rctx.symlink(folder, "include%d" % number)
    includes = ["include%d" % number for number in range(len(folders))]
    build.append("""
cc_library(
    name = "mpi",
    hdrs = glob(%s),
    includes = %s,
    linkopts = %s,
)
""" % (repr([i + "/mpi*.h" for i in includes]), repr(includes), repr(linkopts)))
    rctx.file("BUILD", "".join(build))
    rctx.file("defs.bzl", _DEFS % (True, repr(str(mpicc.dirname) + "/mpirun")))

mpi_configure = repository_rule(
    implementation = _impl,
    environ = ["MPI_HOME", "PATH"],
    local = True,
    configure = True,
)
