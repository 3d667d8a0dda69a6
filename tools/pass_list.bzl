"""pass_list, pass_tests: the registry of passes and their tests, made from file names.

The pipelines file lists the passes in the order in which they run, in lines
`program <name>` or `plan <name>`; a line `program -<name>` names a pass that is
not in the default pipeline. For each, the package has a <name>_pass.h with a
class <Name>Pass, derived from ProgramPass or PlanPass.
"""

load("//tools:test_rules.bzl", "skiff_py_test", "skiff_test")

def pass_list(name, pipelines):
    """The registry's source, <name>.cc.

    Args:
      name: of the rule.
      pipelines: the file that lists the passes.
    """
    native.genrule(
        name = name,
        srcs = [pipelines] + native.glob(["*_pass.h"]),
        outs = [name + ".cc"],
        cmd = "/usr/bin/python3 $(location //tools:pass_list.py) $(location %s) $@ $(SRCS)" % pipelines,
        tools = ["//tools:pass_list.py"],
    )

def pass_tests(name, pipelines, exclude = []):
    """A test for each *_pass_test.cc and *_pass_network_test.cc here, and one that checks that every pass has tests.

    A *_pass_test.cc runs the tiny ops of //tests/framework/executor; a *_pass_network_test.cc runs real
    ops, in networks that the package's :bound_network binds.

    Args:
      name: of the test that checks that every pass has tests.
      pipelines: the file that lists the passes.
      exclude: sources whose tests the BUILD file itself declares.
    """
    for source in native.glob(["*_pass_test.cc", "*_pass_network_test.cc"], exclude = exclude):
        on_network = source.endswith("_network_test.cc")
        skiff_test(
            name = source[:-len(".cc")],
            srcs = [source],
            deps = [
                "//framework/executor",
                "//framework/transpiler",
                "//tests/harness:emulated_device",
                "//tests/harness:error_text",
                "//tests/harness:temp_directory",
                "//tests/harness:thread_count",
            ] + ([
                ":bound_network",
                "//framework/builder",
                "//tests/harness:sgd_training",
                "//tests/harness:thread_ranks",
            ] if on_network else ["//tests/framework/executor:tiny_ops"]),
        )
    skiff_py_test(
        name = name,
        src = name + ".py",
        data = [pipelines, "//tools:pass_list.py"] + native.glob(["*_test.cc"]),
    )
