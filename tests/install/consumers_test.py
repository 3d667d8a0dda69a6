"""Programs of others link an installed Skiff, with the build files and commands that the documents show."""
import os
import re
import shutil
import unittest

from tests.install.installed import PATH, install, read, run, shown_files, temporary_folder, write

PREFIX = install()
# Time for the compiler counts here, not that of the program.
FLAGS = {"CXXFLAGS": "-O0 -Wall -Werror"}


def source_folder(sources, shown=()):
    """A new folder with copies of `sources` and with files of docs/install.md."""
    folder = temporary_folder()
    for source in sources:
        shutil.copy(source, folder)
    for name, text in shown_files(shown).items():
        write(os.path.join(folder, name), text.replace("/opt/skiff", PREFIX))
    return folder


def needed(program):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-d", program]))


class Consumer(unittest.TestCase):
    def assert_trains(self, program):
        losses = [float(loss) for loss in re.findall(r"loss (\S+)", run([program]))]
        self.assertEqual(len(losses), 4)
        self.assertGreater(losses[0], 2)  # ten classes, not yet told apart: log(10) = 2.3
        self.assertLess(losses[-1], 0.5)

    def assert_both_train(self, folder):
        shared, static = (os.path.join(folder, name) for name in ("train", "train_static"))
        self.assertIn("libskiff.so.0.2", needed(shared))
        self.assertNotIn("libskiff.so.0.2", needed(static))
        self.assert_trains(shared)
        self.assert_trains(static)


class CMake(Consumer):
    def configure(self, folder):
        return run(["cmake", "-S", folder, "-B", folder + "/build", "-DCMAKE_PREFIX_PATH=" + PREFIX], environment=FLAGS)

    def test_links_both_libraries(self):
        folder = source_folder(["tests/install/consumer/main.cc"], ["CMakeLists.txt"])
        self.configure(folder)
        run(["cmake", "--build", folder + "/build", "--parallel", "2"])
        self.assert_both_train(folder + "/build")

    def test_finds_compatible_versions(self):
        for version, is_found in (("", True), ("0", True), ("0.2.0", True), ("0.2.1", False), ("0.1", False),
                                  ("0.3", False), ("1", False)):
            folder = temporary_folder()
            write(folder + "/CMakeLists.txt", "cmake_minimum_required(VERSION 3.22)\nproject(consumer CXX)\n"
                  f"find_package(Skiff {version} QUIET)\n"
                  'message("found: ${Skiff_FOUND}")\n')
            with self.subTest(version):
                self.assertIn("found: 1" if is_found else "found: 0", self.configure(folder))


class Make(Consumer):
    def test_links_both_libraries(self):
        folder = source_folder(["tests/install/consumer/main.cc"], ["Makefile"])
        run(["make", "-C", folder], environment={"PKG_CONFIG_PATH": PREFIX + "/lib/pkgconfig", **FLAGS})
        self.assert_both_train(folder)


class Bazel(Consumer):
    def test_links_both_libraries(self):
        bazel = shutil.which("bazel", path=PATH)
        if not bazel:
            self.skipTest(f"no bazel on {PATH}")
        folder = source_folder(["tests/install/consumer/main.cc"], ["WORKSPACE", "BUILD"])
        # Debian's Bazel downloads rules, unless a workspace has local ones.
        os.mkdir(folder + "/tools")
        shutil.copy("tools/offline_rules.bzl", folder + "/tools")
        write(folder + "/tools/BUILD", "")
        write(folder + "/WORKSPACE", read(folder + "/WORKSPACE") +
              'load("//tools:offline_rules.bzl", "offline_rules")\n\noffline_rules()\n')
        output = temporary_folder()
        # A Bazel without a server, since nothing would end that.
        run([bazel, "--batch", "--output_user_root=" + output, "build", "--jobs=2", "--copt=-O0", "//..."],
            cwd=folder, environment={"HOME": output})
        self.assert_both_train(folder + "/bazel-bin")


class Protobuf(unittest.TestCase):
    """A program with a protobuf of its own, static, and generated classes under the names of Fluid's messages."""

    def test_works_beside_skiff(self):
        folder = source_folder(["tests/install/protobuf/main.cc", "tests/install/protobuf/framework.proto"])
        run(["protoc", "--cpp_out=.", "framework.proto"], cwd=folder)
        environment = {"PKG_CONFIG_PATH": PREFIX + "/lib/pkgconfig"}
        flags = run(["pkg-config", "--cflags", "skiff"], environment=environment).split()
        run(["g++", "-std=c++20", "-O0", "-I.", *flags, "-c", "main.cc", "framework.pb.cc"], cwd=folder)
        shared = run(["pkg-config", "--libs", "skiff"], environment=environment).split()
        static = run(["pkg-config", "--libs", "--static", "skiff"], environment=environment).split()
        for name, libraries in (("shared", [*shared, f"-Wl,-rpath,{PREFIX}/lib"]),
                                ("static", [flag.replace("-lskiff", "-l:libskiff.a") for flag in static])):
            with self.subTest(name):
                run(["g++", "-o", name, "main.o", "framework.pb.o", "-l:libprotobuf.a", *libraries], cwd=folder)
                self.assertEqual(run([f"{folder}/{name}"], cwd=folder),
                                 "Skiff computes 3 numbers\nprotobuf reads feed mul elementwise_add relu scale fetch\n")


class Beside(unittest.TestCase):
    """A program that links one of the libraries beside libskiff."""

    # What the programs print.
    PRINTED = {
        "data": r"^the c ##at \[UNK\] \nposition_ids:( 0 1 2 3 4 5 6 7){2}\nlabel: 0 1\nthe cat sat on the mat\n"
                r"the dog sat on the log\nNOT_FOUND\n$",
        "onnx": r"^0.5 0.5\n.*opset 5, expected 13 to 24",
    }

    def assert_runs(self, library, program, is_shared):
        of_skiff = {f"libskiff_{library}.so.0.2", "libskiff.so.0.2"}
        self.assertEqual(of_skiff & set(needed(program)), of_skiff if is_shared else set())
        self.assertRegex(run([program], cwd=os.path.dirname(program)), self.PRINTED[library])

    def test_links_by_pkg_config(self):
        for library in self.PRINTED:
            folder = source_folder([f"tests/install/{library}/main.cc"])
            environment = {"PKG_CONFIG_PATH": PREFIX + "/lib/pkgconfig"}
            package = "skiff_" + library
            flags = run(["pkg-config", "--cflags", package], environment=environment).split()
            run(["g++", "-std=c++20", "-O0", *flags, "-c", "main.cc"], cwd=folder)
            shared = run(["pkg-config", "--libs", package], environment=environment).split()
            static = run(["pkg-config", "--libs", "--static", package], environment=environment).split()
            for name, libraries in (("shared", [*shared, f"-Wl,-rpath,{PREFIX}/lib"]),
                                    ("static", [re.sub("^-l(skiff.*)", r"-l:lib\1.a", flag) for flag in static])):
                with self.subTest(library=library, name=name):
                    run(["g++", "-o", name, "main.o", *libraries], cwd=folder)
                    self.assert_runs(library, f"{folder}/{name}", name == "shared")

    def test_links_by_cmake(self):
        folder = temporary_folder()
        text = "cmake_minimum_required(VERSION 3.22)\nproject(beside CXX)\nfind_package(Skiff 0.2 REQUIRED)\n"
        for library in self.PRINTED:
            shutil.copy(f"tests/install/{library}/main.cc", f"{folder}/{library}.cc")
            text += (f"add_library({library}_main OBJECT {library}.cc)\n"
                     f"target_link_libraries({library}_main Skiff::skiff)\n")
            for name in (library, library + "_static"):
                text += (f"add_executable({name} $<TARGET_OBJECTS:{library}_main>)\n"
                         f"target_link_libraries({name} Skiff::skiff_{name})\n")
        write(folder + "/CMakeLists.txt", text)
        run(["cmake", "-S", folder, "-B", folder + "/build", "-DCMAKE_PREFIX_PATH=" + PREFIX], environment=FLAGS)
        run(["cmake", "--build", folder + "/build", "--parallel", "2"])
        for library in self.PRINTED:
            for name in (library, library + "_static"):
                with self.subTest(name):
                    self.assert_runs(library, f"{folder}/build/{name}", name == library)


class OtherVersions(Consumer):
    """A program with other versions of the libraries whose headers are inside Skiff."""

    def test_keep_their_functions_to_themselves(self):
        folder = source_folder(["tests/install/consumer/main.cc"])
        symbols = run(["nm", "-g", "--defined-only", "--quiet", PREFIX + "/lib/libskiff.a"])
        names = sorted(set(re.findall(r"^[0-9a-f]+ W (\S+)\.skiff$", symbols, re.MULTILINE)))
        self.assertGreater(len(names), 100)
        # Functions of the same names that end the process; hidden, so that no shared library takes them.
        write(folder + "/traps.s", ".text\n" + "".join(f".globl {name}\n.hidden {name}\n{name}:\n" for name in names) +
              "ud2\n"
              '.section .note.GNU-stack,"",@progbits\n')
        environment = {"PKG_CONFIG_PATH": PREFIX + "/lib/pkgconfig"}
        flags = run(["pkg-config", "--cflags", "--libs", "--static", "skiff"], environment=environment).split()
        run(["g++", "-std=c++20", "-O0", "-o", "train", "main.cc", "traps.s",
             *(flag.replace("-lskiff", "-l:libskiff.a") for flag in flags)], cwd=folder)
        self.assert_trains(folder + "/train")


class Newcomer(unittest.TestCase):
    """The programs of docs/python.md. The commands there build the one in C++."""

    def test_trains_in_python_and_infers_in_cpp(self):
        document = read("docs/python.md")
        script = re.search(r"^```python\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)[1]
        commands, program = re.search(r"build `run_lenet.cc`:\n\n((?:    .*\n)+)\n```cpp\n(.*?)^```$", document,
                                      re.MULTILINE | re.DOTALL).groups()
        folder = temporary_folder()
        write(folder + "/lenet.py", script)
        write(folder + "/run_lenet.cc", program)
        trained = run(["/usr/bin/python3", "lenet.py"], cwd=folder,
                      environment={"PYTHONPATH": os.path.abspath("python_stub")})
        run(["bash", "-ec", commands.replace("/opt/skiff", PREFIX)], cwd=folder)
        self.assertIn("libskiff.so.0.2", needed(folder + "/run_lenet"))
        inferred = run([folder + "/run_lenet"], cwd=folder)
        self.assertRegex(inferred, r"^labels:( \d){5}\n$")
        self.assertEqual(inferred, trained.splitlines(keepends=True)[-1])


if __name__ == "__main__":
    unittest.main()
