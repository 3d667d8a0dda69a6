"""skiff_test, cuda_test, skiff_py_test, test_library: tests with this repository's defaults.

JEMALLOC and EMULATED_CUDA: attributes of some.
"""

# The malloc of tests that make plans all the time (docs/build.md). Only in the compilation mode opt:
# sanitizers, which are used without it, bring their own.
JEMALLOC = select({
    "//tools/pch:opt": "@jemalloc",
    "//conditions:default": "@bazel_tools//tools/cpp:malloc",
})

# For target_compatible_with: only where devices are emulated (--config=cuda_emulated).
EMULATED_CUDA = select({
    "//tools/cuda:enabled_emulated": [],
    "//conditions:default": ["//tools/cuda:unavailable"],
})

def skiff_test(name, srcs = None, deps = [], size = "small", **kwargs):
    """A GoogleTest program of NAME.cc: srcs, if it has others, need no main()."""
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        deps = deps + [
            "//tools/pch:test",
            "@com_google_googletest//:gtest_main",
        ],
        **kwargs
    )

def cuda_test(name, deps, tags = [], **kwargs):
    """A skiff_test that calls the CUDA runtime: it sees WITH_CUDA in builds with CUDA.

    tools/cuda_test.sh runs these tests, by their tag, on a machine with a GPU. A test that looks at
    the whole GPU has the tag "exclusive".
    """
    skiff_test(
        name = name,
        tags = ["cuda"] + tags,
        deps = deps + ["//tools/cuda"],
        **kwargs
    )

def test_library(name, **kwargs):
    """A library for tests alone: NAME.h and, if it is there, NAME.cc."""
    native.cc_library(
        name = name,
        testonly = True,
        srcs = native.glob([name + ".cc"], allow_empty = True),
        hdrs = [name + ".h"],
        **kwargs
    )

def skiff_py_test(name, src = None, data = [], size = "small", reads_workspace = False, **kwargs):
    """A Python unittest file, whose cases are counted one by one.

    Not a py_test, whose launcher needs `python` on PATH.

    Args:
      name: of the target.
      src: the file with the unittest.TestCase classes; NAME.py by default.
      data: files that the test imports or reads.
      size: as of any test.
      reads_workspace: True for a test that reads the whole source tree. Such a
        test runs outside the sandbox and is never cached, since Bazel doesn't
        know its inputs.
      **kwargs: passed on to sh_test.
    """
    src = src or name + ".py"
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tools:py_test.sh"],
        args = ["$(location %s)" % src],
        data = [src, "//tools:py_test_main.py"] + data,
        local = reads_workspace,
        tags = kwargs.pop("tags", []) + (["external"] if reads_workspace else []),
        **kwargs
    )
