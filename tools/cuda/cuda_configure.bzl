"""Finds this machine's CUDA toolkit, or makes targets that fail and say why there is none.

Looks at $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, /opt/cuda,
/usr/lib/nvidia-cuda-toolkit (Debian's package), then at nvcc in $PATH.
CUDA_HOME=none: pretend there is none.
"""

_DEFS = "CUDA_FOUND = %s\nCUDA_VERSION = %s\nNVCC = %s\nNVCC_ARCHS = %s\n"

def _first(rctx, dirs, name):
    for d in dirs:
        if rctx.path(d + "/" + name).exists:
            return d
    return None

def _find(rctx):
    """-> (toolkit or None, why not)"""
    env = rctx.os.environ
    if env.get("CUDA_HOME") == "none":
        return None, "CUDA_HOME=none"
    root = None
    for r in [env.get("CUDA_HOME"), env.get("CUDA_PATH"), "/usr/local/cuda", "/opt/cuda", "/usr/lib/nvidia-cuda-toolkit"]:
        if r and rctx.path(r + "/bin/nvcc").exists:
            root = r
            break
    if not root:
        nvcc = rctx.which("nvcc")
        if not nvcc:
            return None, "no nvcc found; set CUDA_HOME"
        root = str(nvcc.dirname.dirname)
    nvcc = root + "/bin/nvcc"
    res = rctx.execute([nvcc, "--version"])
    if res.return_code != 0:
        return None, "%s --version failed" % nvcc
    archs = rctx.execute([nvcc, "--list-gpu-code"])
    if archs.return_code != 0:
        return None, "%s --list-gpu-code failed" % nvcc
    libdirs = [root + "/lib64", root + "/lib", root + "/targets/x86_64-linux/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
    inc = _first(rctx, [root + "/include", root + "/targets/x86_64-linux/include", "/usr/include"], "cuda_runtime.h")
    if not inc:
        return None, "no cuda_runtime.h under " + root
    static = _first(rctx, libdirs, "libcudart_static.a")
    if not static:
        return None, "no libcudart_static.a under " + root
    return struct(
        nvcc = nvcc,
        archs = [a for a in archs.stdout.replace("\n", " ").split(" ") if a.startswith("sm_")],
        version = res.stdout.partition(", V")[2].partition("\n")[0].strip(),
        include = inc,
        cudart_static = static + "/libcudart_static.a",
    ), ""

def _missing(target, why):
    return """
genrule(
    name = "{t}_missing",
    outs = ["{t}_missing.h"],
    cmd = "echo 'CUDA: {why}. (Or build without --config=cuda.)' >&2; exit 1",
    tags = ["manual"],
)

cc_library(
    name = "{t}",
    hdrs = [":{t}_missing"],
    tags = ["manual"],
)
""".format(t = target, why = why)

def _impl(rctx):
    rctx.file("WORKSPACE", "")
    build = ["package(default_visibility = [\"//visibility:public\"])\n"]
    cuda, why = _find(rctx)
    if not cuda:
        for target in ["cuda_headers", "cudart_static"]:
            build.append(_missing(target, why))
        rctx.file("BUILD", "".join(build))
        rctx.file("defs.bzl", _DEFS % (False, repr("none"), repr("nvcc-not-found"), []))
        return

    if cuda.include == "/usr/include":
        build.append("\ncc_library(name = \"cuda_headers\")\n")
    else:
        rctx.symlink(cuda.include, "include")

        # What host code includes: some 230 files instead of the toolkit's
        # 2000 in the sandbox of every action. (libcu++, CUB and Thrust are
        # for .cu files, where nvcc finds them by itself.)
        build.append("""
cc_library(
    name = "cuda_headers",
    hdrs = glob([
        "include/*.h",
        "include/*.hpp",
        "include/crt/*",
        "include/nv/**",  # <nv/target> of cuda_fp16.h
        "include/cccl/nv/**",
        "include/nccl_device/**",
        "include/nvtx3/**",
    ]),
    includes = ["include", "include/cccl"],
)
""")
    rctx.symlink(cuda.cudart_static, "lib/libcudart_static.a")
    build.append("""
cc_import(
    name = "cudart_static_import",
    static_library = "lib/libcudart_static.a",
)

cc_library(
    name = "cudart_static",
    linkopts = ["-ldl", "-lrt", "-lpthread"],
    deps = [":cudart_static_import"],
)
""")
    rctx.file("BUILD", "".join(build))
    rctx.file("defs.bzl", _DEFS % (True, repr(cuda.version), repr(cuda.nvcc), repr(cuda.archs)))

cuda_configure = repository_rule(
    implementation = _impl,
    environ = ["CUDA_HOME", "CUDA_PATH", "PATH"],
    local = True,
    configure = True,
)
