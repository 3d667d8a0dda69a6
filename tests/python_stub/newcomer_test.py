"""What docs/python.md shows works: the wheel installs, its script trains and saves LeNet, its C++ program runs it."""
import os
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile

from python_stub.make_wheel import make_wheel
from tools.installer.install import NOTICES

PACKAGE = "python_stub/skiff"
SCRIPT = os.path.abspath("tests/python_stub/lenet.py")
PROGRAM = os.path.abspath("tests/python_stub/run_lenet")


def package_files():
    return [os.path.join(PACKAGE, name) for name in os.listdir(PACKAGE) if os.path.isfile(os.path.join(PACKAGE, name))]


class Newcomer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # To pack one takes seconds.
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.wheel = make_wheel(folder.name, package_files())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def output(self, *command):
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def test_trains_in_python_and_infers_in_cpp(self):
        python = os.path.join(self.folder, "venv/bin/python")
        try:
            venv.create(os.path.join(self.folder, "venv"), system_site_packages=True, with_pip=True)
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no venv with pip here (python3-venv): {error}")
        self.output(python, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", "-q", self.wheel)
        where = self.output(python, "-c", "import skiff; print(skiff.__file__)")[0]
        self.assertTrue(where.startswith(os.path.join(os.path.realpath(self.folder), "venv/")), where)
        trained = self.output(python, SCRIPT)
        self.assertRegex(trained[-2], r"^epoch 3: loss 0\.0")
        self.assertEqual(self.output(PROGRAM), trained[-1:])

    def test_the_script_is_short(self):
        with open(SCRIPT, encoding="utf-8") as stream:
            self.assertLessEqual(sum(bool(line.strip()) for line in stream), 20)

    def test_wheels_of_equal_files_are_equal(self):
        with open(make_wheel(self.folder, package_files()), "rb") as one, open(self.wheel, "rb") as other:
            self.assertEqual(one.read(), other.read())
        self.assertRegex(os.path.basename(self.wheel), rf"^skiff-0\.2\.0-cp3{sys.version_info.minor}-")
        with zipfile.ZipFile(self.wheel) as archive:
            self.assertTrue({"skiff/__init__.py", "skiff/_skiff.so", "skiff/layers.pyi", "skiff/py.typed"}
                            <= set(archive.namelist()))

    def test_the_wheel_refuses_a_numpy_that_pybind11_does_not_know(self):
        with zipfile.ZipFile(self.wheel) as archive:
            metadata = archive.read("skiff-0.2.0.dist-info/METADATA").decode().splitlines()
        self.assertIn("Requires-Dist: numpy<2", metadata)
        self.assertIn(f"Requires-Python: =={sys.version_info.major}.{sys.version_info.minor}.*", metadata)

    def test_the_wheel_has_its_licences(self):
        with zipfile.ZipFile(self.wheel) as archive:
            licenses = "skiff-0.2.0.dist-info/licenses/"
            texts = {name[len(licenses):]: archive.read(name).decode()
                     for name in archive.namelist() if name.startswith(licenses)}
            record = archive.read("skiff-0.2.0.dist-info/RECORD").decode()
        self.assertEqual(set(texts), {"LICENSE", "libdlpack-dev.copyright", "pybind11-dev.copyright"}
                         | {f"{package}.copyright" for package in NOTICES})
        for name, text in texts.items():
            self.assertRegex(text, "(?i)copyright|apache license", name)
            self.assertIn(licenses + name, record)


if __name__ == "__main__":
    unittest.main()
