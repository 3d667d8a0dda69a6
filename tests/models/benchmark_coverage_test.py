"""Tests that tools can time and inspect every model: tools/model_workload links it."""
import glob
import os
import unittest

# In the runfiles BUILD is a link to the one of the source tree.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath("tests/models/BUILD"))))


def missing(root, build_file):
    """Returns the folders of models/ with a train program that the BUILD file doesn't link."""
    names = [os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(root, "models/*/train.cc"))]
    return sorted(name for name in names if '"//models/%s"' % name not in build_file)


class BenchmarkCoverage(unittest.TestCase):
    def test_every_model_is_known_to_the_tools(self):
        with open(os.path.join(ROOT, "tools/model_workload/BUILD"), encoding="utf-8") as stream:
            build_file = stream.read()
        self.assertEqual(missing(ROOT, build_file), [],
                         "expected each in the deps of tools/model_workload, and in Models() of model_workload.cc")
        self.assertEqual(missing(ROOT, build_file.replace('"//models/resnet"', "")), ["resnet"])


if __name__ == "__main__":
    unittest.main()
