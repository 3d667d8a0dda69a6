"""Every model is tested with every pass: by FaultsOfEveryPass (tests/harness/pass_check.h)."""
import glob
import os
import unittest

# In the runfiles BUILD is a link to the one of the source tree.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath("tests/models/BUILD"))))


def models(root):
    """The folders of models/ that have a program to train."""
    return sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(root, "models/*/train.cc")))


def unchecked(root, names):
    """Returns the models that have no test which runs every pass."""
    missing = []
    for name in names:
        sources = glob.glob(os.path.join(root, "tests/models", name, "*_test.cc"))
        texts = [open(path, encoding="utf-8").read() for path in sources]
        if not any("FaultsOfEveryPass(" in text for text in texts):
            missing.append(name)
    return missing


class PassCheckCoverage(unittest.TestCase):
    def test_every_model_is_tested_with_every_pass(self):
        names = models(ROOT)
        self.assertIn("resnet", names)
        for name in unchecked(ROOT, names):
            with self.subTest(name):
                self.fail(f"expected a test in tests/models/{name} that FaultsOfEveryPass(ClassifierWorkload(…)), or "
                          "of another workload, is empty")

    def test_finds_a_model_without(self):
        self.assertEqual(unchecked(ROOT, ["resnet", "no_such_model"]), ["no_such_model"])


if __name__ == "__main__":
    unittest.main()
