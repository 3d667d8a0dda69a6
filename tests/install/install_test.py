"""What tools/installer/install.py installs: the files, the headers, the symbols of the libraries."""
import concurrent.futures
import fcntl
import fnmatch
import os
import re
import subprocess
import unittest
from unittest import mock

from tests.install.installed import install, installer, read, run, temporary_folder, write
import tools.installer.install as install_program

PREFIX = install()
PUBLIC = ("skiff/skiff.h", "skiff/op.h", "skiff/pass.h", "skiff/ranks.h", "skiff/data.h", "skiff/onnx.h")
MANIFEST = "share/skiff/manifest"
# The shared libraries, without versions, that every program in C++ may need.
OF_CPP = {"ld-linux-x86-64", "libc", "libgcc_s", "libm", "libstdc++"}
# A mangled name in namespace skiff: its members; their typeinfo, vtables and thunks; variables in their functions.
OF_SKIFF = re.compile(r"_Z(T[ISVT]|T[hvc][hv0-9n_]+|GV)?Z?N[KRO]*5skiff")

# The function by which the host launches a kernel: nvcc makes it, with the kernel's mangled name.
LAUNCHES_KERNEL = re.compile(r"_Z\d+__device_stub__ZN5skiff")

# A mangled name that mentions a library whose headers are inside.
OF_OTHERS = re.compile(r"(?<!\d)(4dnnl|3hwy|8nlohmann|9protozero)")


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(parent, name), folder)
                  for parent, folders, names in os.walk(folder)
                  for name in names + [f for f in folders if os.path.islink(os.path.join(parent, f))])


def folders_below(folder):
    """With a slash at the end, as in the manifest."""
    return sorted(os.path.relpath(os.path.join(parent, name), folder) + "/"
                  for parent, folders, _ in os.walk(folder)
                  for name in folders if not os.path.islink(os.path.join(parent, name)))


def manifest(prefix):
    return read(f"{prefix}/{MANIFEST}").splitlines()


def headers():
    return [name for name in files_below(PREFIX + "/include")]


class Files(unittest.TestCase):
    def test_manifest_lists_all(self):
        self.assertEqual(manifest(PREFIX), sorted(files_below(PREFIX) + folders_below(PREFIX)))

    def test_no_file_names_the_prefix(self):
        made = os.path.join(os.path.dirname(PREFIX), "made")
        for name in files_below(PREFIX):
            path = os.path.join(PREFIX, name)
            if os.path.isfile(path):
                with open(path, "rb") as stream:
                    self.assertNotIn(made.encode(), stream.read(), name)

    def test_programs_run(self):
        for name in os.listdir(PREFIX + "/bin"):
            done = subprocess.run([f"{PREFIX}/bin/{name}", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
            self.assertIn("usage", done.stdout.lower(), name)

    def test_notices_are_there(self):
        notices = os.listdir(PREFIX + "/share/doc/skiff")
        self.assertIn("LICENSE", notices)
        for package in ("libdnnl-dev", "libhwy-dev", "libprotozero-dev", "nlohmann-json3-dev", "libgflags-dev",
                        "libicu-dev", "libsentencepiece-dev"):
            self.assertIn(package + ".copyright", notices)

    def test_version_is_that_of_the_python_package(self):
        version = re.search(r'^__version__ = "(.*)"$', read("python_stub/skiff/__init__.py"), re.MULTILINE)[1]
        self.assertIn(f"Version: {version}\n", read(PREFIX + "/lib/pkgconfig/skiff.pc"))
        self.assertTrue(os.path.isfile(f"{PREFIX}/lib/libskiff.so.{version}"))


class Headers(unittest.TestCase):
    def test_are_what_the_public_ones_include(self):
        # As the compiler sees the sources.
        rule = run(["g++", "-std=c++20", "-MM", "-I.", *PUBLIC])
        included = set(re.findall(r"[\w/.-]+\.h", rule))
        self.assertEqual(set(headers()),
                         {name if name.startswith("skiff/") else "skiff/" + name for name in included})

    def test_include_those_of_cpp_and_openmp_only(self):
        for name in headers():
            for include in re.findall(r"#\s*include\s*<(.*)>", read(f"{PREFIX}/include/{name}")):
                self.assertRegex(include, r"^([a-z_]+|omp\.h)$", name)

    def test_change_nothing_for_who_includes_them(self):
        for name in headers():
            text = read(f"{PREFIX}/include/{name}")
            self.assertNotRegex(text, r"(?m)^\s*using namespace", name)
            for macro in re.findall(r"#\s*define\s+(\w+)", text):
                self.assertRegex(macro, "^SKIFF_", name)

    def test_compile_alone(self):
        def compiled(name):
            return subprocess.run(["g++", "-std=c++20", "-fopenmp", "-fsyntax-only", "-Wall", "-Werror",
                                   f"-I{PREFIX}/include", "-include", f"{PREFIX}/include/{name}", "-x", "c++",
                                   "/dev/null"], stderr=subprocess.PIPE, text=True, check=False)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as executor:
            for name, done in zip(headers(), executor.map(compiled, headers())):
                self.assertEqual(done.returncode, 0, f"{name}\n{done.stderr}")


class Libraries(unittest.TestCase):
    SHARED = PREFIX + "/lib/libskiff.so"
    STATIC = PREFIX + "/lib/libskiff.a"
    # The libraries beside libskiff, and what each needs of the distribution that libskiff doesn't need.
    BESIDE = {
        "libskiff_data": {"libicuuc", "libsentencepiece", "libsentencepiece_train"},
        "libskiff_onnx": {"libprotobuf-lite"},
    }

    @staticmethod
    def beside(name):
        return f"{PREFIX}/lib/{name}.so"

    @staticmethod
    def needed(path):
        """The shared libraries that a file names, without versions and those that every program in C++ may need."""
        return set(re.findall(r"\(NEEDED\).*\[(.*)\.so\b.*\]", run(["readelf", "-d", path]))) - OF_CPP

    def test_shared_exports_namespace_skiff_only(self):
        symbols = [line.split()[2] for line in run(["nm", "-D", "--defined-only", self.SHARED]).splitlines()]
        self.assertIn("_ZN5skiff17DefaultOpRegistryEv", symbols)
        self.assertIn("_ZTIN5skiff5ErrorE", symbols)
        self.assertEqual([symbol for symbol in symbols if not OF_SKIFF.match(symbol)], [])

    def test_onnx_exports_its_functions_only(self):
        symbols = run(["nm", "-D", "-C", "--defined-only", self.beside("libskiff_onnx")])
        self.assertEqual(set(re.findall(r" T (.*?)\(", symbols)),
                         {"skiff::ImportOnnx", "skiff::ExportOnnx", "skiff::OnnxBytes"})
        self.assertEqual(len(symbols.splitlines()), symbols.count(" T "))

    def test_data_exports_its_namespace_only(self):
        symbols = run(["nm", "-D", "--defined-only", self.beside("libskiff_data")]).split()[2::3]
        self.assertIn("_ZTIN5skiff4text10PairReaderE", symbols)
        of_text = re.compile(OF_SKIFF.pattern + "4text")
        self.assertEqual([symbol for symbol in symbols if not of_text.match(symbol)], [])

    def test_those_beside_hold_nothing_of_skiff_twice(self):
        of_skiff = set(self.static_symbols("ABCDGRST"))
        self.assertGreater(len(of_skiff), 1000)
        for name in self.BESIDE:
            symbols = set(self.static_symbols("ABCDGRST", f"{PREFIX}/lib/{name}.a"))
            self.assertNotEqual(symbols, set())
            self.assertEqual(of_skiff & symbols, set(), name)

    def static_symbols(self, kinds, library=STATIC):
        symbols = run(["nm", "-g", "--defined-only", "--quiet", library])
        return re.findall(rf"^[0-9a-f]+ [{kinds}] (.*)$", symbols, re.MULTILINE)

    def test_static_defines_namespace_skiff_only(self):
        # Others may be weak: the linker keeps one of all definitions.
        strong = self.static_symbols("ABCDGRST")
        self.assertIn("_ZN5skiff17DefaultOpRegistryEv", strong)
        foreign = [symbol for symbol in strong if not OF_SKIFF.match(symbol) and not LAUNCHES_KERNEL.match(symbol)]
        self.assertEqual(foreign, [])

    def test_static_shares_definitions_with_the_cpp_library_only(self):
        # The linker keeps one of all definitions of a weak symbol. A mangled name gives the length of each part; the
        # C++ library has std, St, and names that begin with an underscore.
        weak = self.static_symbols("WVu")
        renamed = [symbol for symbol in weak if symbol.endswith(".skiff")]
        self.assertTrue(any("8nlohmann" in symbol for symbol in renamed))
        self.assertEqual([symbol for symbol in renamed if OF_SKIFF.match(symbol) or not OF_OTHERS.search(symbol)], [])
        kept = [symbol for symbol in weak if not symbol.endswith(".skiff")]
        self.assertEqual([symbol for symbol in kept if OF_OTHERS.search(symbol) and not OF_SKIFF.match(symbol)], [])
        names = [re.match(r"(?:DW\.ref\.)?_Z(?:T[ISVT]|T[hvc][hv0-9n_]+|GV)?Z?N[KRO]*(\d+)(.*)", symbol)
                 for symbol in kept]
        namespaces = {name[2][:int(name[1])] for name in names if name and not name[2].startswith("_")}
        self.assertEqual(namespaces, {"skiff"})

    def test_functions_of_others_with_types_of_skiff_arent_skiffs(self):
        folder = temporary_folder()
        write(folder + "/foreign.cc", "namespace skiff { struct X {}; void F(X) {} }\n"
              "namespace foreign { void F(skiff::X) {} template <class T> void G() {} template void G<skiff::X>(); }\n")
        run(["g++", "-c", "-o", folder + "/foreign.o", folder + "/foreign.cc"])
        symbols = [line.split()[2] for line in run(["nm", "-g", "--defined-only", folder + "/foreign.o"]).splitlines()]
        self.assertEqual([symbol for symbol in symbols if OF_SKIFF.match(symbol)], ["_ZN5skiff1FENS_1XE"])
        self.assertEqual(len(symbols), 3)

    def test_shared_libraries_that_are_needed_are_documented(self):
        documented = re.findall(r"^\| `(lib[\w-]+)`[^|]* \| (.*?) \|", read("docs/install.md"), re.MULTILINE)

        def users_of(name):
            return {library for library, users in documented if users == "all" or
                    any(fnmatch.fnmatch(name, user) for user in re.findall("`(.*?)`", users))}

        for path in [self.SHARED, *(f"{PREFIX}/bin/{name}" for name in os.listdir(PREFIX + "/bin"))]:
            self.assertEqual(self.needed(path), users_of(os.path.basename(path)), path)
        for name, libraries in self.BESIDE.items():
            self.assertEqual(libraries, users_of(name) - self.needed(self.SHARED), name)

    def test_shared_loads_nothing_that_those_beside_are_for(self):
        # With what the libraries that it names load in turn.
        loaded = set(re.findall(r"(\S+)\.so\b\S* =>", run(["ldd", self.SHARED])))
        self.assertLessEqual({"libdnnl", "libzip"}, loaded)
        for libraries in self.BESIDE.values():
            self.assertEqual(loaded & libraries, set())

    def test_those_beside_need_skiff_and_little_else(self):
        for name, libraries in self.BESIDE.items():
            self.assertEqual(self.needed(self.beside(name)), {"libskiff", "libgomp"} | libraries)
            dynamic = run(["readelf", "-d", self.beside(name)])
            self.assertIn(f"Library soname: [{name}.so.0.2]", dynamic)
            self.assertIn("[$ORIGIN]", dynamic)

    def test_plugin_for_mpi_is_there_if_it_was_built(self):
        plugin = PREFIX + "/lib/skiff/libskiff_mpi.so"
        self.assertEqual(os.path.exists(plugin), os.path.exists("framework/comm/libskiff_mpi.so"))
        if os.path.exists(plugin):
            self.assertTrue(self.needed(plugin) & {"libmpi", "libmpich"})
            self.assertIn(" T SkiffMpiPlugin\n", run(["nm", "-D", "--defined-only", plugin]))

    def test_shared_has_a_soname(self):
        self.assertIn("Library soname: [libskiff.so.0.2]", run(["readelf", "-d", self.SHARED]))

    def test_shared_is_stripped_and_small(self):
        sections = run(["readelf", "-S", "-W", self.SHARED])
        self.assertNotIn(".symtab", sections)
        # With the machine code of CUDA's kernels, if there are any.
        self.assertLess(os.path.getsize(self.SHARED), 140e6 if ".nv_fatbin" in sections else 40e6)


class Installer(unittest.TestCase):
    def assert_refused(self, prefix, message):
        done = installer("--prefix=" + prefix)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^install: " + message + r".*\n$")

    def test_refuses_bad_prefixes(self):
        folder = temporary_folder()
        write(folder + "/file", "")
        self.assert_refused("relative", "--prefix=relative: expected an absolute path")
        self.assert_refused("", "--prefix=: expected an absolute path")
        self.assert_refused(folder + "/file", f"--prefix={folder}/file: {folder}/file isn't a folder")
        self.assert_refused(folder + "/file/below", f"--prefix={folder}/file/below: {folder}/file isn't a folder")
        self.assert_refused("/proc/below", "can't write /proc/below: |--prefix=/proc/below: can't write to /proc")
        self.assertIn("--prefix", installer().stderr)
        self.assertIn("--uninstall", installer("--help").stdout)

    def assert_succeeds(self, *arguments, **options):
        done = installer(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_replaces_and_removes_only_what_it_made(self):
        prefix = temporary_folder()
        library = prefix + "/lib/libskiff.a"
        for folder in ("/lib", "/bin", "/lib64", "/lib64/cmake"):
            os.makedirs(prefix + folder)
        for path in (library, prefix + "/lib/libother.a"):
            write(path, "other")
        self.assertIn("find_package(Skiff 0.2", self.assert_succeeds("--prefix=" + prefix))
        self.assertGreater(os.path.getsize(library), 1000)
        write(prefix + "/share/skiff/notes", "")
        self.assert_succeeds("--prefix=" + prefix)
        self.assert_succeeds("--prefix=" + prefix, "--uninstall")
        self.assertEqual(files_below(prefix), ["lib/libother.a", "share/skiff/notes"])
        self.assertEqual(folders_below(prefix), ["bin/", "lib/", "lib64/", "lib64/cmake/", "share/", "share/skiff/"])
        again = installer("--prefix=" + prefix, "--uninstall")
        self.assertRegex(again.stderr, "doesn't exist: Skiff isn't installed there")

    def test_follows_and_keeps_links_to_folders(self):
        prefix = temporary_folder()
        os.mkdir(prefix + "/lib64")
        os.symlink("lib64", prefix + "/lib")
        self.assert_succeeds("--prefix=" + prefix)
        self.assertTrue(os.path.isfile(prefix + "/lib64/libskiff.a"))
        # A folder that became a link after the installation.
        os.rename(prefix + "/include", prefix + "/headers")
        os.symlink("headers", prefix + "/include")
        self.assert_succeeds("--prefix=" + prefix, "--uninstall")
        self.assertEqual(files_below(prefix), ["include", "lib"])
        self.assertEqual(folders_below(prefix), ["headers/", "lib64/"])

    def test_upgrade_removes_what_is_no_longer_installed(self):
        prefix = temporary_folder()
        os.makedirs(prefix + "/include/skiff/old/empty")
        os.makedirs(prefix + "/include/skiff/used")
        os.makedirs(prefix + "/lib")
        os.makedirs(prefix + "/share/skiff")
        shared = ["lib/libskiff.so.0.0", "lib/libskiff.so.0.0.9", "lib/libskiff.so.0.10"]
        old = ["include/skiff/old/a.h", "include/skiff/used/b.h", "lib/libskiff.so.0.2.99"]
        for name in shared + old + ["include/skiff/used/of_others.h"]:
            write(f"{prefix}/{name}", "")
        folders = ["include/", "include/skiff/", "include/skiff/old/", "include/skiff/old/empty/",
                   "include/skiff/used/"]
        write(f"{prefix}/{MANIFEST}", "\n".join(shared + old + folders))
        self.assert_succeeds("--prefix=" + prefix)
        files = files_below(prefix)
        self.assertEqual(set(old) & set(files), set())
        self.assertEqual(set(shared) - set(files), set())
        files.remove("include/skiff/used/of_others.h")
        self.assertEqual([name for name in manifest(prefix) if not name.endswith("/")], files)
        # Not lib and share, which the installer didn't make.
        self.assertEqual({"include/", "include/skiff/", "include/skiff/used/"} - set(manifest(prefix)), set())
        self.assertEqual({"lib/", "share/", "share/skiff/", "include/skiff/old/"} & set(manifest(prefix)), set())
        self.assert_succeeds("--prefix=" + prefix, "--uninstall")
        self.assertEqual(files_below(prefix), ["include/skiff/used/of_others.h"])
        self.assertEqual(folders_below(prefix), ["include/", "include/skiff/", "include/skiff/used/", "lib/", "share/",
                                                 "share/skiff/"])

    def test_makes_folders_that_everybody_may_read(self):
        prefix = temporary_folder() + "/new/skiff"
        self.assert_succeeds("--prefix=" + prefix, umask=0o077)
        for name in ["..", ".", *folders_below(prefix)]:
            self.assertEqual(os.stat(f"{prefix}/{name}").st_mode & 0o777, 0o755, name)
        for name in files_below(prefix):
            self.assertIn(os.stat(f"{prefix}/{name}").st_mode & 0o777, (0o644, 0o755), name)

    def test_interrupted_leaves_no_temporary_file(self):
        folder = temporary_folder()
        write(folder + "/text", "old")
        with mock.patch.object(os, "replace", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            install_program.write(folder + "/text", "text", "new")
        self.assertEqual(files_below(folder), ["text"])
        self.assertEqual(read(folder + "/text"), "old")

    def test_interrupted_can_be_removed(self):
        prefix = temporary_folder()
        write(prefix + "/include", "a file, where the installation has a folder")
        self.assert_refused(prefix, f"can't write {prefix}/include")
        self.assertIn("bin/skiff", files_below(prefix))
        self.assert_succeeds("--prefix=" + prefix, "--uninstall")
        self.assertEqual(files_below(prefix) + folders_below(prefix), ["include"])

    def test_refuses_to_work_beside_another_installer(self):
        prefix = temporary_folder()
        self.assert_succeeds("--prefix=" + prefix)
        folder = os.open(prefix, os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        files = files_below(prefix)
        self.assert_refused(prefix, f"another installer is at work in {prefix}")
        self.assertIn("another installer is at work", installer("--prefix=" + prefix, "--uninstall").stderr)
        self.assertEqual(files_below(prefix), files)

    def test_refuses_a_manifest_that_leads_out_of_the_prefix(self):
        prefix = temporary_folder()
        os.makedirs(prefix + "/share/skiff")
        write(f"{prefix}/{MANIFEST}", "../other\n")
        self.assertRegex(installer("--prefix=" + prefix, "--uninstall").stderr, "found ../other, expected a path below")


if __name__ == "__main__":
    unittest.main()
