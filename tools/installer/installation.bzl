"""installation: the list of what tools/installer/install.py installs."""

load("//tools/installer:merged_library.bzl", "LinkInfo")
load("//tools/installer:version.bzl", "ABI_VERSION", "VERSION")

def _headers(deps):
    """The headers of this repository that the deps may include."""
    contexts = [dep[CcInfo].compilation_context for dep in deps]
    headers = depset(transitive = [context.headers for context in contexts]).to_list()
    return [h for h in headers if h.is_source and not h.path.startswith("external/")]

def _installation_impl(ctx):
    headers = _headers(ctx.attr.public)
    public = [h for dep in ctx.attr.public for h in dep[CcInfo].compilation_context.direct_public_headers]
    programs = {name: target.files.to_list()[0] for target, name in ctx.attr.programs.items()}
    archives = [archive for library in ctx.attr.libraries for archive in library[LinkInfo].archives]
    libraries = [struct(
        name = static.label.name,
        shared = shared.short_path,
        static = static.files.to_list()[0].short_path,
        link_flags = static[LinkInfo].flags,
        archives = [a.short_path for a in static[LinkInfo].archives],
    ) for static, shared in zip(ctx.attr.libraries, ctx.files.shared_libraries)]
    content = json.encode_indent(struct(
        version = VERSION,
        abi_version = ABI_VERSION,
        compilation_mode = ctx.var["COMPILATION_MODE"],
        public_headers = [h.short_path for h in public],
        headers = [h.short_path for h in headers],
        libraries = libraries,
        plugins = [plugin.short_path for plugin in ctx.files.plugins],
        programs = {name: program.short_path for name, program in programs.items()},
        license = ctx.file.license.short_path,
        templates = {t.basename: t.short_path for t in ctx.files.templates},
    ))
    out = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(out, content)
    files = headers + programs.values() + archives + ctx.files.templates + ctx.files.libraries + \
            ctx.files.shared_libraries + ctx.files.plugins + [out, ctx.file.license]
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles(files = files))]

installation = rule(
    implementation = _installation_impl,
    attrs = {
        "public": attr.label_list(providers = [CcInfo]),
        # Each library as a merged one, and in the same order as a shared one.
        "libraries": attr.label_list(providers = [LinkInfo]),
        "shared_libraries": attr.label_list(allow_files = True),
        # Shared libraries that programs load while they run.
        "plugins": attr.label_list(allow_files = True),
        # program -> the name that it gets
        "programs": attr.label_keyed_string_dict(),
        "license": attr.label(allow_single_file = True),
        "templates": attr.label_list(allow_files = True),
    },
)
