"""shared_libraries: the distribution's libraries as shared ones, for a shared object of ours.

Programs link the distribution's static libraries where there are any
(tools/system_libs.bzl), but Debian doesn't compile these for shared objects.
shared_libraries(deps) passes on what its deps link, with -lglog in place of
libglog.a, and so on.
"""

def _static_archive(library):
    """The archive of a library of the distribution; CUDA's are compiled for shared objects."""
    archive = library.pic_static_library or library.static_library
    if not archive or not archive.path.startswith("external/") or "local_config_cuda" in archive.path:
        return None
    return archive

def _replaced(linker_input):
    """A linker input without archives of the distribution, and the names of those."""
    libraries = []
    names = []
    for library in linker_input.libraries:
        archive = _static_archive(library)
        if archive:
            names.append(archive.basename[len("lib"):-len(".a")])
        else:
            libraries.append(library)
    return libraries, names

def _shared_libraries_impl(ctx):
    merged = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.deps])
    inputs = []
    for linker_input in merged.linking_context.linker_inputs.to_list():
        libraries, names = _replaced(linker_input)
        inputs.append(cc_common.create_linker_input(
            owner = linker_input.owner,
            libraries = depset(libraries),
            user_link_flags = depset(linker_input.user_link_flags + ["-l" + name for name in names]),
            additional_inputs = depset(linker_input.additional_inputs),
        ))
    return [CcInfo(
        compilation_context = merged.compilation_context,
        linking_context = cc_common.create_linking_context(linker_inputs = depset(inputs, order = "topological")),
    )]

shared_libraries = rule(
    implementation = _shared_libraries_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)
