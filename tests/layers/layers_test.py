"""Every include of the source tree respects layers.txt."""
import os
import unittest

from tests.layers.check_layers import Layers, check, read_tree

# In the runfiles layers.txt is a link to the one of the source tree.
ROOT = os.path.dirname(os.path.realpath("layers.txt"))


class LayersOfTheTree(unittest.TestCase):
    def test_includes_respect_the_ranks(self):
        with open(os.path.join(ROOT, "layers.txt"), encoding="utf-8") as f:
            layers = Layers(f.read())
        sources = read_tree(ROOT)
        self.assertGreater(len(sources), 0, "no sources found under the workspace")
        mistakes = check(layers, sources)
        if mistakes:
            self.fail("%d mistakes\n%s" % (len(mistakes), "\n".join(mistakes)))
