"""CUDA in Bazel: if_cuda(), cuda_library(), cuda_link().

if_cuda(a, b) is a under --config=cuda, else b. cuda_library compiles .cu files
with nvcc for the archs of --//tools/cuda:archs that the toolkit supports or,
under --config=cuda_emulated, with the host's compiler for the CPU, several
files as one (batches.bzl).
cuda_link passes on the linker inputs of its deps, but none of their headers or
defines. Host code depends on CUDA only through it, so that its objects are the
same with and without CUDA: only .cu files and links differ.
"""

load("@local_config_cuda//:defs.bzl", "CUDA_VERSION", "NVCC", "NVCC_ARCHS")
load("//tools:batches.bzl", "batches")
load("//tools:cc_features.bzl", "cc_features")

FlagInfo = provider(fields = ["value"])

def _flag_impl(ctx):
    return FlagInfo(value = ctx.build_setting_value)

bool_flag = rule(implementation = _flag_impl, build_setting = config.bool(flag = True))
string_flag = rule(implementation = _flag_impl, build_setting = config.string(flag = True))

def _link_only_impl(ctx):
    linking = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps]).linking_context
    return [CcInfo(linking_context = linking)]

# The linker inputs of `deps`, without their headers.
link_only = rule(
    implementation = _link_only_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def if_cuda(if_true, if_false = []):
    return select({
        "//tools/cuda:enabled": if_true,
        "//conditions:default": if_false,
    })

def _gencode(arch):
    """sm_90a -> its SASS; compute_90 -> PTX."""
    kind, _, cc = arch.partition("_")
    if kind not in ("sm", "compute") or not cc:
        fail("bad CUDA arch %r: want sm_NN or compute_NN" % arch)
    return "-gencode=arch=compute_%s,code=%s" % (cc, arch)

def _supported(archs):
    """The archs of the flag that this nvcc can compile for.

    An older toolkit does not know the newest devices. For these, PTX of the
    newest arch that it knows is added, which the driver compiles on the device.
    """
    known = {a[len("sm_"):]: True for a in NVCC_ARCHS}
    kept = []
    for arch in archs:
        number = arch.partition("_")[2]

        # sm_90a is listed as sm_90.
        if number in known or number.rstrip("af") in known:
            kept.append(arch)
    if not kept:
        fail("nvcc %s supports none of the archs %s" % (CUDA_VERSION, ", ".join(archs)))
    if not [a for a in kept if a.startswith("compute_")]:
        kept.append("compute_" + kept[-1].partition("_")[2])
    return kept

def _nvcc_flags(mode, archs, optimized):
    archs = _supported(archs)
    if not optimized:
        # PTX is for devices that nothing here has.
        archs = [a for a in archs if a.startswith("sm_")] or archs
    flags = ["-std=c++20", "--expt-relaxed-constexpr", "--extended-lambda"]
    flags += [_gencode(a) for a in archs]
    major, minor = [int(n) for n in CUDA_VERSION.split(".")[:2]]
    if (major, minor) >= (12, 8):
        # The code for devices is most of a program: a seventh of it this way.
        flags.append("--compress-mode=size")
    flags += {
        # For the host's part, which only checks arguments and launches.
        "opt": ["-O1", "-DNDEBUG", "-lineinfo"],
        "dbg": ["-O0", "-g", "-lineinfo"],
    }.get(mode, ["-O1"])
    if optimized:
        return flags
    return flags + (["--Ofast-compile=max"] if major >= 13 else ["-Xptxas", "-O0"])

# nvcc's options -> the host compiler's.
_EMULATED_COPTS = {"-fmad=false": "-ffp-contract=off"}

# Every access to memory in a kernel is checked (tools/cuda/emulation/checks.cc) unless another
# sanitizer does it.
_MEMORY_CHECKS = [
    "-fsanitize=thread",
    "--param=tsan-instrument-func-entry-exit=0",
    "-fsanitize=alignment",
]

_INLINING = ["-finline-functions", "-finline-small-functions", "-findirect-inlining", "-fpartial-inlining"]

def _emulation_flags(mode, host_copts, nvcc_copts):
    flags = ["-std=c++20", "-fPIC", "-w"]
    # As written: two accesses made one would have another alignment.
    flags += ["-fno-tree-vectorize", "-fno-store-merging"]

    # Inlined, few functions of the standard library stay in the objects, where their accesses are
    # checked, and where the linker may choose them for the emulation itself. The rest of -O2 takes
    # half as long again to compile.
    flags += ["-O0", "-g"] if mode == "dbg" else ["-O1"] + _INLINING
    if mode == "opt":
        flags.append("-DNDEBUG")
    flags += [o for o in host_copts if not o.startswith("-O")]
    if not [o for o in host_copts if o.startswith("-fsanitize=")]:
        flags += _MEMORY_CHECKS
    return flags + [_EMULATED_COPTS[o] for o in nvcc_copts if o in _EMULATED_COPTS]

def _batch_name(package, batch):
    """<first> or, of several, <first>_to_<last>: their paths in the package, without the suffix."""
    ends = []
    for src in batch[:1] + batch[1:][-1:]:
        path = src.short_path
        if path.startswith(package + "/"):
            path = path[len(package) + 1:]
        ends.append(path[:-len(src.extension) - 1])
    return "_to_".join([ends[0]] + [e.rpartition("/")[2] for e in ends[1:]])

def _cuda_library_impl(ctx):
    cc_toolchain, features = cc_features(ctx)
    host_cc = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = "c++-compile",
    )
    mode = ctx.var["COMPILATION_MODE"]

    deps_cc = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    dep_ctx = deps_cc.compilation_context
    own_ctx = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        defines = depset(ctx.attr.defines),
    )

    is_emulated = ctx.attr._emulated[FlagInfo].value
    all_headers = ctx.files.hdrs + dep_ctx.headers.to_list()
    system_includes = dep_ctx.system_includes.to_list()
    if is_emulated:
        all_headers += ctx.files._emulation_headers
    else:
        # CUDA's own headers: nvcc finds them by itself.
        all_headers = [h for h in all_headers if not h.path.startswith("external/local_config_cuda/")]
        system_includes = [d for d in system_includes if "external/local_config_cuda" not in d]

    # The options of the command line. -std is the compiler's own, and warnings would be about the
    # code that nvcc generates.
    host_copts = [
        opt
        for opt in ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts
        if not opt.startswith("-std=") and not opt.startswith("-W")
    ]
    flags = ctx.actions.args()
    if is_emulated:
        flags.add_all(_emulation_flags(mode, host_copts, ctx.attr.copts))
    else:
        flags.add("-ccbin", host_cc)
        flags.add_all(_nvcc_flags(mode, ctx.attr._archs[FlagInfo].value.split(","), ctx.attr._optimized[FlagInfo].value))
        flags.add_all(host_copts + ["-fPIC"], before_each = "-Xcompiler")
    flags.add_all(depset(transitive = [dep_ctx.defines, own_ctx.defines]), before_each = "-D")
    flags.add_all(ctx.attr.local_defines, before_each = "-D")
    flags.add_all(depset(transitive = [dep_ctx.quote_includes, dep_ctx.includes]), before_each = "-I")
    flags.add_all(system_includes, before_each = "-isystem")
    if not is_emulated:
        flags.add_all(ctx.attr.copts)

    objects = []
    for batch in batches(ctx.files.srcs):
        stem = "_objs/%s/%s" % (ctx.label.name, _batch_name(ctx.label.package, batch))
        if is_emulated:
            stem += ".emulated"
        obj = ctx.actions.declare_file(stem + ".pic.o")
        if len(batch) == 1:
            src = batch[0]
        else:
            src = ctx.actions.declare_file(stem + ".cu")
            ctx.actions.write(src, "// Generated by tools/cuda.bzl.\n" + "".join(["#include \"%s\"\n" % s.path for s in batch]))
        unused = ctx.actions.declare_file(stem + ".unused_inputs")
        inputs = ctx.actions.declare_file(stem + ".inputs")
        ctx.actions.write(inputs, "".join([h.path + "\n" for h in all_headers]))
        own = ctx.actions.args()
        own.add_all([host_cc, ctx.file._rewrite] if is_emulated else [NVCC])
        own.add_all([src, obj, inputs, unused])
        ctx.actions.run(
            executable = ctx.file._emulation_driver if is_emulated else ctx.file._driver,
            arguments = [own, flags],
            inputs = depset(
                batch + [src, inputs] + all_headers + ([ctx.file._rewrite] if is_emulated else []),
                transitive = [cc_toolchain.all_files],
            ),
            outputs = [obj, unused],
            unused_inputs_list = unused,
            # CUDA_VERSION: another toolkit is another action.
            env = {"PATH": "/usr/bin:/bin", "SKIFF_CUDA_VERSION": CUDA_VERSION},
            mnemonic = "CudaCompile",
            progress_message = "Compiling (CUDA) %s/%s" % (ctx.label.package, _batch_name(ctx.label.package, batch)),
        )
        objects.append(obj)

    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        linking_contexts = [deps_cc.linking_context],
        user_link_flags = ctx.attr.linkopts,
        alwayslink = ctx.attr.alwayslink,
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(
            compilation_context = cc_common.merge_cc_infos(cc_infos = [
                CcInfo(compilation_context = own_ctx),
                deps_cc,
            ]).compilation_context,
            linking_context = linking,
        ),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh", ".hpp"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "defines": attr.string_list(),
        "local_defines": attr.string_list(),
        "linkopts": attr.string_list(),
        "alwayslink": attr.bool(),
        "_archs": attr.label(default = "//tools/cuda:archs"),
        "_driver": attr.label(default = "//tools/cuda:nvcc_driver.sh", allow_single_file = True),
        "_emulated": attr.label(default = "//tools/cuda:emulated"),
        "_emulation_driver": attr.label(
            default = "//tools/cuda/emulation:compile.sh",
            allow_single_file = True,
        ),
        "_emulation_headers": attr.label(default = "//tools/cuda/emulation:device_headers"),
        "_optimized": attr.label(default = "//tools/cuda:optimized"),
        "_rewrite": attr.label(
            default = "//tools/cuda/emulation:rewrite.py",
            allow_single_file = True,
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, deps = [], **kwargs):
    """A library of .cu files; without --config=cuda it is skipped by //..."""
    _cuda_library(
        name = name,
        deps = deps + ["//tools/cuda:cuda"],
        target_compatible_with = if_cuda([], ["//tools/cuda:unavailable"]),
        **kwargs
    )

def cuda_link(name, **kwargs):
    """The linker inputs of `deps`, without their headers; without --config=cuda it is skipped by //..."""
    link_only(
        name = name,
        target_compatible_with = if_cuda([], ["//tools/cuda:unavailable"]),
        **kwargs
    )
