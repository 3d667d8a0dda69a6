"""`skiff convert`: a saved model becomes a file of ONNX, and that a saved model again."""
import json
import os
import subprocess
import tempfile
import unittest

SKIFF = os.path.abspath("tools/skiff/skiff")
TRAIN = os.path.abspath("models/lenet/train")


def run(*arguments):
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def convert(*arguments):
    return run(SKIFF, "convert", *arguments)


def parameters(directory):
    return json.loads(run(SKIFF, "summary", "--json", os.path.join(directory, "__model__")).stdout)["parameters"]


class ConvertCommand(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def refusal(self, *arguments):
        result = convert(*arguments)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        return result.stderr

    def test_writes_and_reads_onnx(self):
        trained = run(TRAIN, "--epochs=1", "--limit_samples=64", "--output_dir=" + self.path("run"))
        self.assertEqual(trained.returncode, 0, trained.stderr)
        model, file, again = self.path("run/model"), self.path("lenet.onnx"), self.path("again")
        written = convert(model, "--to=onnx", "--output=" + file)
        self.assertEqual((written.returncode, written.stderr), (0, ""))
        self.assertEqual(written.stdout, f"wrote {file}\n")
        read = convert(file, "--from=onnx", "--output=" + again)
        self.assertEqual((read.returncode, read.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(again)), ["__model__", "__params__"])
        self.assertGreater(parameters(model), 0)
        self.assertEqual(parameters(again), parameters(model))
        fixed = convert(file, "--from=onnx", "--feed_dims=image=8,1,28,28", "--output=" + self.path("of_eight"))
        self.assertEqual((fixed.returncode, fixed.stderr), (0, ""))
        for dims, found in (("image", 'found "image", expected NAME='), ("image=8,x", 'found "x" in "image=8,x"'),
                            ("image=8,1,28,29", "to be [8, 1, 28, 29]"), ("picture=1", 'no input "picture"')):
            with self.subTest(dims):
                self.assertIn(found, self.refusal(file, "--from=onnx", "--feed_dims=" + dims, "--output=" + again))

    def test_says_what_is_wrong(self):
        nothing = self.path("nothing.onnx")
        self.assertIn("--output is missing", self.refusal(nothing, "--from=onnx"))
        output = "--output=" + self.path("out")
        self.assertIn("expected one of them", self.refusal(nothing, output))
        self.assertIn("expected one of them", self.refusal(nothing, "--from=onnx", "--to=onnx", output))
        self.assertIn('there is no format "torch" to read, expected one of hf-bert, ', self.refusal(nothing, "--from=torch", output))
        self.assertIn(nothing, self.refusal(nothing, "--from=onnx", output))
        self.assertIn("opset", self.refusal(nothing, "--from=onnx", "--opset=17", output))
        self.assertFalse(os.path.exists(self.path("out")))


if __name__ == "__main__":
    unittest.main()
