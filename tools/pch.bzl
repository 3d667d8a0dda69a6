"""precompiled_header: the headers that most sources read, parsed once.

Parsing headers takes half of the time of a compilation. Sources that .bazelrc
compiles with `-include tools/pch/<name>.h` start from the state that GCC stored
in the .gch file beside that header. The header is generated and has no copy in
the source tree, so that GCC finds the .gch file first. Sources still include
all headers that they use, so a build without these flags (--config=dbg)
compiles them as well. (Of files that are compiled as one, one may do so for
the others.)

GCC compiles functions with a target attribute, such as Highway's, with the
optimization options of the .gch file, not those of the source. So both must be
equal: `copts` adds the options that .bazelrc adds for the sources, and a source
with other options must not use the file.
"""

load("//tools:cc_features.bzl", "cc_features")

def _impl(ctx):
    cc_toolchain, features = cc_features(ctx)
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
        ) + [
            "-x",
            "c++-header",
            header.path,
            "-o",
            precompiled.path,
            # GCC stores the list of headers in the file only if it is asked for one. Sources that
            # are compiled with -fpch-deps depend on them.
            "-MD",
            "-MF",
            "/dev/null",
        ],
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
