"""Models that are built in Python train to the weights and states that they have in C++, bit for bit."""
import subprocess
import unittest

from tests.python_stub.models import MODELS, train

REFERENCE = "tests/python_stub/train_reference"


def reference(model, steps):
    return subprocess.run([REFERENCE, model, str(steps)], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class TrainedModels(unittest.TestCase):
    def test_are_those_of_cpp(self):
        for model in MODELS:
            with self.subTest(model):
                self.assertEqual(train(model, 3), reference(model, 3))

    def test_depend_on_the_steps(self):
        self.assertNotEqual(train("mlp", 2), train("mlp", 3))


if __name__ == "__main__":
    unittest.main()
