"""merged_library: one static library of all that its deps link.

merged_library(name, deps) writes <name>.a with every object of this repository that the deps need. Who links the target
gets all of these objects, whether something refers to them or not, so that a shared library holds them all. The
libraries of the distribution and of CUDA stay outside; LinkInfo lists them.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

LinkInfo = provider(fields = {
    "archives": "static libraries of others, files",
    "flags": "flags of the linker that programs with the library need",
})

def _unique(items):
    return {item: None for item in items}.keys()

def _merged_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    merged = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    inputs = merged.linking_context.linker_inputs.to_list()
    libraries = [library for linker_input in inputs for library in linker_input.libraries]
    archives = {library.pic_static_library or library.static_library: library for library in libraries}
    ours = [archive for archive in archives if not archive.path.startswith("external/")]
    foreign = [archive for archive in archives if archive.path.startswith("external/")]
    flags = _unique([flag for linker_input in inputs for flag in linker_input.user_link_flags])

    # A script of ar's: ADDLIB keeps objects of equal names.
    merged_archive = ctx.actions.declare_file(ctx.label.name + ".a")
    script = ctx.actions.declare_file(ctx.label.name + ".mri")
    ctx.actions.write(script, "".join(
        ["CREATE %s\n" % merged_archive.path] +
        ["ADDLIB %s\n" % archive.path for archive in ours] +
        ["SAVE\nEND\n"],
    ))
    ar = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = "c++-link-static-library",
    )
    ctx.actions.run_shell(
        command = "%s -M < %s" % (ar, script.path),
        inputs = depset(ours + [script], transitive = [cc_toolchain.all_files]),
        outputs = [merged_archive],
        mnemonic = "MergeLibraries",
        progress_message = "Merging static libraries into %s" % merged_archive.short_path,
    )

    library = cc_common.create_library_to_link(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        pic_static_library = merged_archive,
        alwayslink = True,
    )
    return [
        DefaultInfo(files = depset([merged_archive])),
        LinkInfo(archives = foreign, flags = flags),
        CcInfo(linking_context = cc_common.create_linking_context(linker_inputs = depset([
            cc_common.create_linker_input(
                owner = ctx.label,
                libraries = depset([library] + [archives[archive] for archive in foreign]),
                user_link_flags = depset(flags),
            ),
        ]))),
    ]

merged_library = rule(
    implementation = _merged_library_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
