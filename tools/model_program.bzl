"""model_program: a program that trains or runs a model."""

def model_program(name, deps, src = None):
    """A cc_binary of NAME.cc.

    Args:
      name: of the program.
      deps: the parts of the model, and what else the source includes, besides
        flags, training and operators.
      src: the source, if it isn't NAME.cc.
    """
    native.cc_binary(
        name = name,
        srcs = [src or name + ".cc"],
        deps = deps + [
            "//framework/command_line",
            "//models/common:train_main",
            "//operators:default_registry",
            "@com_github_gflags_gflags//:gflags",
        ],
    )
