"""Makes the package importable as `from tests.python_stub.package import skiff`, from the runfiles of a test."""
import os
import sys

FOLDER = os.path.abspath("python_stub")
sys.path.insert(0, FOLDER)

import skiff  # noqa: E402  pylint: disable=wrong-import-position
