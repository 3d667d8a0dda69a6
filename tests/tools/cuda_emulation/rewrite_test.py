"""tools/cuda/emulation/rewrite.py: what g++ reads of CUDA's syntax."""
import os
import subprocess
import sys
import unittest

REWRITE = os.path.join("tools", "cuda", "emulation", "rewrite.py")


def rewrite(text):
    return subprocess.run([sys.executable, REWRITE], input=text, capture_output=True, text=True)


class RewriteTest(unittest.TestCase):
    def check(self, text, *parts):
        result = rewrite(text)
        self.assertEqual(result.stderr, "")
        for part in parts:
            self.assertIn(part, result.stdout)
        self.assertEqual(result.stdout.count("\n"), text.count("\n"))

    def test_launches(self):
        self.check("f<<<1, n>>>(a, g(b));", 'Launch("f", ', "LaunchShape(1, n)",
                   "{ f(of_launch...); }, a, g(b));")
        self.check("ns::f<T, 1>\n<<<1, n, 0, s>>>();", "ns::f<T, 1>", "(of_launch...); } );")

    def test_strings_stay(self):
        self.check('const char* x = "a<<<b>>>(c)";', '"a<<<b>>>(c)"')

    def test_shared_variables(self):
        self.check("__shared__ T x[kN / 2][4];", "using x_type = T[kN / 2][4];", "auto& x = ")
        self.check("__shared__ std::array<int, 3> x;", "using x_type = std::array<int, 3>;")
        self.check("extern __shared__ float x[];", "static_cast<float(*)[]>(")

    def test_errors_name_the_line(self):
        for text in ("__shared__ int a, b;", "f<<<1, 2>>>;"):
            result = rewrite('# 7 "x.cu"\n\n' + text)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("x.cu:8: ", result.stderr)


if __name__ == "__main__":
    unittest.main()
