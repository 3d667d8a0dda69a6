"""What a program gets from skiff/skiff.h, skiff/ranks.h and skiff/data.h: which names, which headers, with which compilers."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from tests.skiff.public_names import Declarations, declarations, names

# In the runfiles layers.txt is a link to the one of the source tree.
ROOT = os.path.dirname(os.path.realpath("layers.txt"))
LISTS = {"skiff.h": "tests/skiff/public_names.txt", "ranks.h": "tests/skiff/public_ranks_names.txt",
         "data.h": "tests/skiff/public_data_names.txt"}
STRICT = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I" + ROOT]
# Clang 14 and before have no std::source_location.
CLANGS = range(15, 20)


def compile_text(text):
    """What g++ says of a file."""
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
        file.write(text)
        file.flush()
        return subprocess.run(["g++", *STRICT, file.name], stderr=subprocess.PIPE, text=True).stderr


class Names(unittest.TestCase):
    maxDiff = None

    def test_are_those_of_the_list(self):
        for header, path in LISTS.items():
            with open(path, encoding="utf-8") as f:
                expected = set(f.read().splitlines())
            found = names(ROOT, header)
            with self.subTest(header):
                self.assertEqual({"new": sorted(found - expected), "gone": sorted(expected - found)},
                                 {"new": [], "gone": []}, f"""
{header} gives users other names than {path} has. A name that users don't need belongs into a header that {header}
doesn't include. Is the change wanted? Then: python3 tests/skiff/public_names.py {header} > {path}""")

    def test_of_text_are_in_its_namespace(self):
        self.assertEqual([name for name in names(ROOT, "data.h") if not name.startswith("skiff::text::")], [])

    def test_all_kinds_of_declarations_count(self):
        declared = Declarations("""
            # 1 "/usr/include/c++/12/vector" 1 3
            namespace std { template <class T> class vector; }
            # 2 "skiff.h" 2
            namespace skiff {
            class Forward;
            template <typename T> requires std::is_same_v<T, int> struct Defined final : Base<T> { int member; };
            enum class Kind : int { kOne = 1 };
            using Alias = std::vector<int>;
            using ir::Pulled;
            using namespace ir;
            inline constexpr const char* kConstant = "}";
            [[noreturn]] void Function(const std::vector<int>& x, int y = 3);
            template <typename T> inline T Template(T x) { return x < 3 ? x : T{}; }
            template <typename T> T Defined<T>::Member() const { return {}; }
            std::ostream& operator<<(std::ostream& stream, Kind kind);
            namespace layers { Variable Fc(int size); }
            }  // namespace skiff
            int global();""")
        self.assertEqual(sorted(declared.names), [
            "skiff::Alias", "skiff::Defined", "skiff::Forward", "skiff::Function", "skiff::Kind", "skiff::Pulled",
            "skiff::Template", "skiff::kConstant", "skiff::layers::Fc", "skiff::namespace ir"])


class Headers(unittest.TestCase):
    def included(self):
        text = subprocess.run(["g++", "-std=c++20", "-M", "-I" + ROOT, *(f"{ROOT}/skiff/{header}" for header in LISTS)],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
        return [path for path in text.replace("\\\n", " ").split() if not path.endswith(":")]

    def test_no_header_of_another_library_is_included(self):
        of_others = [path for path in self.included()
                     if not path.startswith(ROOT + "/") and not re.search(r"/(gcc|c\+\+|bits|sys|asm|linux|gnu)/", path)
                     and os.path.dirname(path) not in ("/usr/include", "/usr/include/asm-generic")]
        self.assertEqual(of_others, [])

    def test_no_slow_header_is_included(self):
        slow = {"chrono", "condition_variable", "filesystem", "fstream", "future", "iostream", "mutex", "omp.h",
                "random", "regex", "sstream", "thread"}
        self.assertEqual([path for path in self.included() if os.path.basename(path) in slow], [])

    def test_no_header_of_operators_is_included(self):
        inside = re.compile(re.escape(ROOT) + "/(operators|framework/(analysis/(?!model_summary)|op/(kernel|op_def|registry)))")
        self.assertEqual([path for path in self.included() if inside.match(path)], [])


class Structs(unittest.TestCase):
    def test_any_member_can_be_initialized_alone(self):
        structs = {struct.name: struct for header in LISTS for struct in declarations(ROOT, header).structs}
        self.assertLessEqual({"skiff::training::TrainerOptions", "skiff::text::MaskingOptions"}, structs.keys())
        text = "".join(f'#include "skiff/{header}"\n' for header in LISTS) + "template <class T> T Any();\n"
        for i, struct in enumerate(structs.values()):
            # One initializer leaves out all other members: with the first, and with the last, that is each member.
            for j, member in enumerate(struct.members[:1] + struct.members[1:][-1:]):
                text += (f"[[maybe_unused]] const {struct.name} x{i}_{j}"
                         f"{{.{member} = Any<decltype({struct.name}::{member})>()}};\n")
        self.assertEqual(compile_text(text), "")

    def test_the_bias_of_a_layer(self):
        self.assertEqual(compile_text("""
            #include "skiff/skiff.h"
            using namespace skiff;
            const layers::FcOptions with{.bias_attr = {}};
            const layers::FcOptions named{.bias_attr = ParamAttr{.name = "b"}};
            const layers::FcOptions without{.bias_attr = false};
            const layers::FcOptions without_too{.bias_attr = std::nullopt};
            const layers::LayerNormOptions no_scale{.param_attr = false};"""), "")
        self.assertIn("error", compile_text("""
            #include "skiff/skiff.h"
            const skiff::layers::FcOptions pointer{.bias_attr = nullptr};"""))


class Compilers(unittest.TestCase):
    def compile(self, compiler):
        result = subprocess.run([compiler, *STRICT, ROOT + "/tests/skiff/user_program.cc"],
                                stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.returncode, 0)

    def test_gcc(self):
        self.compile("g++")

    def test_clang(self):
        compiler = shutil.which("clang++")
        if compiler is None:
            self.skipTest("no clang++ is installed")
        version = int(re.search(r"clang version (\d+)", subprocess.check_output([compiler, "--version"], text=True))[1])
        if version < CLANGS.start:
            self.skipTest(f"clang++ is {version}, which has no std::source_location")
        self.compile(compiler)


def _test_of_clang(version):
    def test(self):
        compiler = shutil.which(f"clang++-{version}")
        if compiler is None:
            self.skipTest(f"no clang++-{version} is installed")
        self.compile(compiler)

    return test


for _version in CLANGS:
    setattr(Compilers, f"test_clang_{_version}", _test_of_clang(_version))


if __name__ == "__main__":
    unittest.main()
