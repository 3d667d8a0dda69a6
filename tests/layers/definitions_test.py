"""No type of the source tree is defined twice."""
import os
import unittest

from tests.layers.check_definitions import check, types_of
from tests.layers.check_layers import read_tree

# In the runfiles layers.txt is a link to the one of the source tree.
ROOT = os.path.dirname(os.path.realpath("layers.txt"))


class DefinitionsOfTheTree(unittest.TestCase):
    def test_every_type_is_defined_once(self):
        sources = read_tree(ROOT)
        # The check relies on the layout of the source tree; make sure that it still finds definitions.
        self.assertGreater(sum(len(types_of(text)) for text in sources.values()), 300)
        mistakes = check(sources)
        if mistakes:
            self.fail("\n".join(mistakes))


if __name__ == "__main__":
    unittest.main()
