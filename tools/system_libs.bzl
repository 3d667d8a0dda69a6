"""System libraries (Debian/Ubuntu packages) as external repositories.

Nothing is downloaded. Each repository is fetched only when a target of it is
needed, so a missing package only stops the targets that use it.
"""

def _find_lib(rctx, cc, name):
    out = rctx.execute([cc, "-print-file-name=" + name]).stdout.strip()
    return out if out.startswith("/") else None

def _system_library_impl(rctx):
    cc = rctx.os.environ.get("CC", "gcc")
    cc = rctx.which(cc) if not cc.startswith("/") else cc
    if not cc:
        fail("no C compiler found (CC=%s)" % rctx.os.environ.get("CC", "gcc"))

    missing = []
    for header in rctx.attr.headers:
        probe = rctx.execute([cc, "-E", "-x", "c++", "-include", header, "/dev/null", "-o", "/dev/null"])
        if probe.return_code != 0:
            missing.append(header)

    build = ["package(default_visibility = [\"//visibility:public\"])", ""]
    for target, spec in rctx.attr.libs.items():
        files = []
        linkopts = []
        deps = []
        for item in spec:
            if item.startswith("-"):
                linkopts.append(item)
            elif item.startswith("@") or item.startswith(":"):
                deps.append(item)
            else:
                # "libfoo.a" (static) or "libfoo.so" (shared): first found wins
                # among alternatives separated by "|".
                found = None
                for alt in item.split("|"):
                    found = _find_lib(rctx, cc, alt)
                    if found:
                        break
                if not found:
                    missing.append(item)
                elif found.endswith(".a"):
                    base = found.rpartition("/")[2]
                    rctx.symlink(found, "lib/" + base)
                    files.append("lib/" + base)
                else:
                    linkopts.append("-l" + found.rpartition("/")[2][len("lib"):-len(".so")])
        imports = []
        for f in files:
            imp = target + "_" + f.rpartition("/")[2][:-len(".a")] + "_import"
            build += [
                "cc_import(",
                "    name = \"%s\"," % imp,
                "    static_library = \"%s\"," % f,
                ")",
                "",
            ]
            imports.append(":" + imp)
        build += [
            "cc_library(",
            "    name = \"%s\"," % target,
            "    defines = %s," % repr(rctx.attr.defines),
            "    linkopts = %s," % repr(linkopts),
            "    deps = %s," % repr(imports + deps),
            ")",
            "",
        ]
    for tool in rctx.attr.tools:
        path = rctx.which(tool)
        if not path:
            missing.append(tool)
        else:
            rctx.symlink(path, "bin/" + tool)
            build += ["alias(name = \"%s\", actual = \"bin/%s\")" % (tool, tool), ""]
    for source in rctx.attr.sources:
        # The compiler names the file that it finds, after those of its own.
        found = rctx.execute([cc, "-M", "-x", "c++", "-include", source, "/dev/null"])
        if found.return_code != 0:
            missing.append(source)
        else:
            base = source.rpartition("/")[2]
            rctx.symlink(found.stdout.strip().rpartition(" ")[2], base)
            build += ["exports_files([\"%s\"])" % base, ""]
    if missing:
        fail("%s: not found: %s. Install it with: apt-get install %s" %
             (rctx.name, ", ".join(missing), rctx.attr.apt))
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name)
    rctx.file("BUILD", "\n".join(build))

system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "apt": attr.string(mandatory = True),
        "defines": attr.string_list(),
        "headers": attr.string_list(),
        "libs": attr.string_list_dict(),
        # Files beside the headers that a build reads, as targets by their base names.
        "sources": attr.string_list(),
        "tools": attr.string_list(),
    },
    environ = ["CC", "PATH"],
    local = True,
    configure = True,
)

def _python_headers_impl(rctx):
    python = "/usr/bin/python3"
    include = rctx.execute([python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"]).stdout.strip()
    cc = rctx.which(rctx.os.environ.get("CC", "gcc"))
    for header in ["Python.h", "pybind11/pybind11.h", "dlpack/dlpack.h"]:
        probe = rctx.execute([cc, "-E", "-x", "c++", "-I", include, "-include", header, "/dev/null", "-o", "/dev/null"])
        if probe.return_code != 0:
            fail("%s: %s not found. Install it with: apt-get install %s" % (rctx.name, header, rctx.attr.apt))
    rctx.symlink(include, "include")
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name)
    rctx.file("BUILD", """package(default_visibility = ["//visibility:public"])

cc_library(
    name = "python",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)
""")

# The headers of Debian's Python and of pybind11, for extension modules.
python_headers = repository_rule(
    implementation = _python_headers_impl,
    attrs = {"apt": attr.string(mandatory = True)},
    environ = ["CC", "PATH"],
    local = True,
    configure = True,
)

def system_libs():
    system_library(
        name = "com_google_protobuf",
        apt = "libprotobuf-dev protobuf-compiler",
        headers = ["google/protobuf/message.h"],
        libs = {
            "protobuf": ["libprotobuf.a|libprotobuf.so", "-lpthread"],
            # For messages with optimize_for = LITE_RUNTIME.
            "protobuf_lite": ["libprotobuf-lite.a|libprotobuf-lite.so", "-lpthread"],
        },
        tools = ["protoc"],
    )
    # Only the schema of its files; nothing links the library.
    system_library(
        name = "onnx",
        apt = "libonnx-dev",
        sources = ["onnx/onnx.proto"],
    )
    system_library(
        name = "com_github_gflags_gflags",
        apt = "libgflags-dev",
        headers = ["gflags/gflags.h"],
        libs = {"gflags": ["libgflags.a|libgflags.so", "-lpthread"]},
    )
    system_library(
        name = "com_github_google_glog",
        apt = "libgoogle-glog-dev",
        headers = ["glog/logging.h"],
        libs = {"glog": [
            "libglog.a|libglog.so",
            "@com_github_gflags_gflags//:gflags",
            # Instead of libunwind; the shim says why.
            "@//tools/glog:unwind_shim",
            "-lpthread",
        ]},
    )
    system_library(
        name = "com_google_googletest",
        apt = "libgtest-dev libgmock-dev",
        headers = ["gtest/gtest.h", "gmock/gmock.h"],
        libs = {
            "gtest": ["libgmock.a", "libgtest.a", "-lpthread"],
            "gtest_main": ["libgtest_main.a", ":gtest"],
        },
    )
    system_library(
        name = "jemalloc",
        apt = "libjemalloc-dev",
        libs = {"jemalloc": ["libjemalloc_pic.a", "-ldl", "-lm", "-lpthread"]},
    )
    system_library(
        name = "dnnl",
        apt = "libdnnl-dev",
        headers = ["dnnl.hpp"],
        libs = {"dnnl": ["libdnnl.so"]},
    )
    system_library(
        name = "highway",
        apt = "libhwy-dev",
        headers = ["hwy/highway.h"],
        libs = {"highway": ["libhwy.a|libhwy.so"]},
        # A file is compiled once for each instruction set: the baseline, AVX2
        # and AVX-512 are worth it. The baseline is SSE2 in newer versions of the
        # library; 1.0 has nothing below SSSE3, so with it (and GCC before 12.3,
        # which miscompiles its emulated vectors) machines without AVX2 run the
        # loops one lane at a time. Left out: SSSE3 (1 << 12), SSE4 (1 << 11) and
        # the refinements of AVX-512 for Ice Lake (1 << 7), Zen 4 (1 << 6) and
        # Sapphire Rapids (1 << 4). As a number, since not every version of the
        # library knows all the names.
        defines = ["HWY_DISABLED_TARGETS=6352"],
    )
    system_library(
        name = "nlohmann_json",
        apt = "nlohmann-json3-dev",
        headers = ["nlohmann/json.hpp"],
        libs = {"json": []},
    )
    system_library(
        name = "protozero",
        apt = "libprotozero-dev",
        headers = ["protozero/pbf_builder.hpp", "protozero/varint.hpp"],
        libs = {"protozero": []},
    )
    system_library(
        name = "zlib",
        apt = "zlib1g-dev",
        headers = ["zlib.h"],
        libs = {"zlib": ["libz.so"]},
    )
    system_library(
        name = "libzip",
        apt = "libzip-dev",
        headers = ["zip.h"],
        libs = {"zip": ["libzip.so"]},
    )
    system_library(
        name = "icu",
        apt = "libicu-dev",
        headers = ["unicode/uchar.h", "unicode/normalizer2.h"],
        libs = {"uc": ["libicuuc.so"]},
    )
    # Its own protobuf clashes with libprotobuf: a program that loads both aborts when it starts.
    system_library(
        name = "sentencepiece",
        apt = "libsentencepiece-dev",
        headers = ["sentencepiece_processor.h", "sentencepiece_trainer.h"],
        libs = {"sentencepiece": ["libsentencepiece_train.so", "libsentencepiece.so"]},
    )
    python_headers(
        name = "python",
        apt = "python3-dev pybind11-dev libdlpack-dev",
    )
