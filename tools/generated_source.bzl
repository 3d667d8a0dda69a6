"""The common part of the rules that generate lists of functions from file names."""

def camel_case(name):
    return "".join([word.capitalize() for word in name.split("_")])

def _generated_source_impl(ctx):
    out = ctx.outputs.out
    if not ctx.attr.definitions:
        ctx.actions.write(out, ctx.attr.content)
        return
    content = ctx.actions.declare_file(out.basename + ".unchecked")
    ctx.actions.write(content, ctx.attr.content)
    arguments = [ctx.file._check.path, content.path, out.path, ctx.attr.doc]
    sources = []
    for target, function in ctx.attr.definitions.items():
        source = target.files.to_list()[0]
        sources.append(source)
        arguments += [source.path, function]
    ctx.actions.run(
        executable = "/usr/bin/python3",
        arguments = arguments,
        inputs = [ctx.file._check, content] + sources,
        outputs = [out],
        mnemonic = "CheckDefinitions",
        progress_message = "Checking what the sources of %s define" % ctx.label,
    )

# Writes `content` to the file `out`.
generated_source = rule(
    implementation = _generated_source_impl,
    attrs = {
        "content": attr.string(mandatory = True),
        # source -> the function that it must define, or
        # <function>:<topic of the comment that it must begin with>. The build fails
        # otherwise.
        "definitions": attr.label_keyed_string_dict(allow_files = True),
        # The page that explains these functions; for messages.
        "doc": attr.string(),
        "out": attr.output(mandatory = True),
        "_check": attr.label(
            default = "//tools:definitions.py",
            allow_single_file = True,
        ),
    },
)
