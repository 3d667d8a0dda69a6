"""CUDA in Bazel: if_cuda(), cuda_library(), cuda_link().

if_cuda(a, b) is a under --config=cuda, else b. cuda_library compiles .cu files
with nvcc for the archs of --//tools/cuda:archs that the toolkit supports.
cuda_link passes on the linker inputs of its deps, but none of their headers or
defines. Host code depends on CUDA only through it, so that its objects are the
same with and without CUDA: only .cu files and links differ.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@local_config_cuda//:defs.bzl", "CUDA_VERSION", "NVCC", "NVCC_ARCHS")

FlagInfo = provider(fields = ["value"])

def _flag_impl(ctx):
    return FlagInfo(value = ctx.build_setting_value)

bool_flag = rule(implementation = _flag_impl, build_setting = config.bool(flag = True))
string_flag = rule(implementation = _flag_impl, build_setting = config.string(flag = True))

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

def _cuda_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
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

    # CUDA's own headers: nvcc finds them by itself.
    headers = [h for h in dep_ctx.headers.to_list() if not h.path.startswith("external/local_config_cuda/")]

    flags = ctx.actions.args()
    flags.add("-ccbin", host_cc)
    flags.add("-std=c++20")
    flags.add_all(["--expt-relaxed-constexpr", "--extended-lambda"])
    flags.add_all([_gencode(a) for a in _supported(ctx.attr._archs[FlagInfo].value.split(","))])
    if mode == "opt":
        flags.add_all(["-O3", "-DNDEBUG", "-lineinfo"])
    elif mode == "dbg":
        flags.add_all(["-O0", "-g", "-lineinfo"])
    else:
        flags.add_all(["-O1"])
    for opt in ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts:
        # The host compiler's options of the command line. -std is nvcc's, and
        # warnings would be about the code that nvcc generates.
        if not opt.startswith("-std=") and not opt.startswith("-W"):
            flags.add("-Xcompiler", opt)
    flags.add("-Xcompiler", "-fPIC")
    flags.add_all(depset(transitive = [dep_ctx.defines, own_ctx.defines]), before_each = "-D")
    flags.add_all(ctx.attr.local_defines, before_each = "-D")
    flags.add_all(depset(transitive = [dep_ctx.quote_includes, dep_ctx.includes]), before_each = "-I")
    flags.add_all([
        d
        for d in dep_ctx.system_includes.to_list()
        if not d.startswith("external/local_config_cuda") and "/external/local_config_cuda" not in d
    ], before_each = "-isystem")
    flags.add_all(ctx.attr.copts)

    objects = []
    for src in ctx.files.srcs:
        path = src.short_path
        if path.startswith(ctx.label.package + "/"):
            path = path[len(ctx.label.package) + 1:]
        stem = "_objs/%s/%s" % (ctx.label.name, path[:-len(src.extension) - 1])
        obj = ctx.actions.declare_file(stem + ".pic.o")
        unused = ctx.actions.declare_file(stem + ".unused_inputs")
        inputs = ctx.actions.declare_file(stem + ".inputs")
        all_headers = ctx.files.hdrs + headers
        ctx.actions.write(inputs, "".join([h.path + "\n" for h in all_headers]))
        own = ctx.actions.args()
        own.add_all([NVCC, src, obj, inputs, unused])
        ctx.actions.run(
            executable = ctx.file._driver,
            arguments = [own, flags],
            inputs = depset([src, inputs] + all_headers, transitive = [cc_toolchain.all_files]),
            outputs = [obj, unused],
            unused_inputs_list = unused,
            # CUDA_VERSION: another toolkit is another action.
            env = {"PATH": "/usr/bin:/bin", "SKIFF_CUDA_VERSION": CUDA_VERSION},
            mnemonic = "CudaCompile",
            progress_message = "Compiling (CUDA) %s" % src.short_path,
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

def _cuda_link_impl(ctx):
    linking = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps]).linking_context
    return [CcInfo(linking_context = linking)]

_cuda_link = rule(
    implementation = _cuda_link_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def cuda_link(name, **kwargs):
    """The linker inputs of `deps`, without their headers; without --config=cuda it is skipped by //..."""
    _cuda_link(
        name = name,
        target_compatible_with = if_cuda([], ["//tools/cuda:unavailable"]),
        **kwargs
    )
