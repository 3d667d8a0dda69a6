"""merged_library: one static library of all that its deps link.

merged_library(name, deps) writes <name>.a with every object of this repository that the deps need. Who links the target
gets all of these objects, whether something refers to them or not, so that a shared library holds them all. The
libraries of the distribution and of CUDA stay outside; LinkInfo lists them.

merged_library(name, deps, beside = [...]) leaves out what the merged libraries `beside` it hold and link.

Inline functions and templates of libraries whose headers are inside are weak symbols, of which a linker keeps one of
all definitions. Those of the namespaces below get another name, so that the archive has its own ones whatever version
of these libraries else is in the program.
"""

load("//tools:cc_features.bzl", "cc_features")

LinkInfo = provider(fields = {
    "archives": "static libraries of others, files",
    "flags": "flags of the linker that programs with the library need",
    "merged": "static libraries of this repository whose objects are inside, files",
})

_RENAMED_NAMESPACES = [
    "dnnl",
    "hwy",
    "nlohmann",
    "protozero",
]

# Demanglers show it: "nlohmann::… [clone .skiff]".
_SUFFIX = ".skiff"

# A mangled name in namespace skiff, as in tests/install/install_test.py.
_OF_SKIFF = "^_Z(T[ISVT]|T[hvc][hv0-9n_]+|GV)?Z?N[KRO]*5skiff"

def _map_of_names(nm, archive):
    """A command that prints "NAME NEW_NAME" for the weak symbols to rename, and for the names of COMDAT groups (n)."""
    mentions = "(^|[^0-9])(" + "|".join(["%d%s" % (len(name), name) for name in _RENAMED_NAMESPACES]) + ")"
    condition = "$2 ~ /^[WVun]$/ && $1 ~ /%s/ && $1 !~ /%s/" % (mentions, _OF_SKIFF)
    return "%s --defined-only --format=posix --quiet %s | awk '%s { print $1, $1 \"%s\" }' | sort -u" % (
        nm,
        archive,
        condition,
        _SUFFIX,
    )

def _unique(items):
    return {item: None for item in items}.keys()

def _merged_library_impl(ctx):
    cc_toolchain, features = cc_features(ctx)
    merged = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    inputs = merged.linking_context.linker_inputs.to_list()
    libraries = [library for linker_input in inputs for library in linker_input.libraries]
    beside = [target[LinkInfo] for target in ctx.attr.beside]
    outside = {archive: None for link in beside for archive in link.merged + link.archives}
    outside_flags = [flag for link in beside for flag in link.flags]
    archives = {library.pic_static_library or library.static_library: library for library in libraries}
    archives = {archive: library for archive, library in archives.items() if archive not in outside}
    ours = [archive for archive in archives if not archive.path.startswith("external/")]
    foreign = [archive for archive in archives if archive.path.startswith("external/")]
    flags = _unique([flag for linker_input in inputs for flag in linker_input.user_link_flags])
    flags = [flag for flag in flags if flag not in outside_flags]

    # A script of ar's: ADDLIB keeps objects of equal names.
    merged_archive = ctx.actions.declare_file(ctx.label.name + ".a")
    all_archive = ctx.actions.declare_file(ctx.label.name + "_all.a")
    script = ctx.actions.declare_file(ctx.label.name + ".mri")
    ctx.actions.write(script, "".join(
        ["CREATE %s\n" % all_archive.path] +
        ["ADDLIB %s\n" % archive.path for archive in ours] +
        ["SAVE\nEND\n"],
    ))
    ar = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = "c++-link-static-library",
    )
    names = ctx.actions.declare_file(ctx.label.name + ".names")
    ctx.actions.run_shell(
        command = "set -eo pipefail; export LC_ALL=C; %s -M < %s; %s > %s" %
                  (ar, script.path, _map_of_names(cc_toolchain.nm_executable, all_archive.path), names.path),
        inputs = depset(ours + [script], transitive = [cc_toolchain.all_files]),
        outputs = [all_archive, names],
        mnemonic = "MergeLibraries",
        progress_message = "Merging static libraries into %s" % all_archive.short_path,
    )
    ctx.actions.run(
        executable = cc_toolchain.objcopy_executable,
        arguments = ["--redefine-syms=" + names.path, all_archive.path, merged_archive.path],
        inputs = depset([all_archive, names], transitive = [cc_toolchain.all_files]),
        outputs = [merged_archive],
        mnemonic = "RenameSymbols",
        progress_message = "Renaming symbols of other libraries in %s" % merged_archive.short_path,
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
        LinkInfo(archives = foreign, flags = flags, merged = ours),
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
        "beside": attr.label_list(providers = [LinkInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
