"""precompiled_header: the headers that most sources read, parsed once.

Half of a compilation is the parsing of headers. Sources that .bazelrc compiles
with `-include tools/pch/<name>.h` start from what GCC stored in the .gch file
beside that header. The header is generated and exists nowhere in the source
tree, so that GCC meets the .gch file first. Sources still include what they
use: a build without these flags (--config=dbg) compiles them as they are.

Functions for an instruction set of their own (Highway's) are compiled with the
optimization options that the .gch file was made with. So these must be those of
the sources that use it: `copts` adds what .bazelrc adds for them, and a source
with other options must not use the file.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps]).compilation_context

    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, "".join(["#include %s\n" % include for include in ctx.attr.includes]))
    precompiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = "c++-compile",
        ),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ) + ["-x", "c++-header", header.path, "-o", precompiled.path],
        inputs = depset([header], transitive = [context.headers, cc_toolchain.all_files]),
        outputs = [precompiled],
        env = {"PATH": "/usr/bin:/bin"},
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling headers for %s" % ctx.label,
    )
    own = cc_common.create_compilation_context(headers = depset([header, precompiled]))
    return [
        DefaultInfo(files = depset([header, precompiled])),
        CcInfo(compilation_context = own),
    ]

precompiled_header = rule(
    implementation = _impl,
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "includes": attr.string_list(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
