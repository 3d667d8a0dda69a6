"""The comments of the headers of the source tree say nouns: see check_prose.py."""
import os
import unittest

from tests.layers.check_layers import read_tree
from tests.prose.check_prose import HEADERS, check, sentences_of

# In the runfiles layers.txt is a link to the one of the source tree.
ROOT = os.path.dirname(os.path.realpath("layers.txt"))


class ProseOfTheTree(unittest.TestCase):
    def test_sentences_of_headers_say_nouns(self):
        headers = {path: text for path, text in read_tree(ROOT).items()
                   if path.endswith(HEADERS)}
        # The check relies on the form of comments; make sure that it still finds sentences.
        self.assertGreater(sum(len(sentences_of(text)) for text in headers.values()), 5000)
        mistakes = check(headers)
        if mistakes:
            self.fail("%d mistakes\n%s" % (len(mistakes), "\n".join(mistakes)))


if __name__ == "__main__":
    unittest.main()
