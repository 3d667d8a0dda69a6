"""What the rules that write lists from file names share."""

def camel_case(name):
    return "".join([word.capitalize() for word in name.split("_")])

def _generated_source_impl(ctx):
    ctx.actions.write(ctx.outputs.out, ctx.attr.content)

# Writes `content` to the file `out`.
generated_source = rule(
    implementation = _generated_source_impl,
    attrs = {
        "content": attr.string(mandatory = True),
        "out": attr.output(mandatory = True),
    },
)
