"""Tests what check_prose.py considers a sentence, and which sentences it refuses."""
import unittest

from tests.prose.check_prose import check, has_chain, sentences_of, shares


class SentencesOf(unittest.TestCase):
    def test_joins_the_lines_of_a_comment(self):
        text = "#pragma once\n\n// Returns the\n// sum. Throws an\n// Error.\nint Sum();\n"
        self.assertEqual(sentences_of(text), [(3, "Returns the sum."), (4, "Throws an Error.")])

    def test_ends_a_sentence_at_punctuation_before_a_space(self):
        text = "// Like std::max(1.5, x): fast; see a.h! Why? So.\n"
        self.assertEqual([sentence for _, sentence in sentences_of(text)],
                         ["Like std::max(1.5, x):", "fast;", "see a.h!", "Why?", "So."])

    def test_an_empty_line_or_code_ends_a_comment(self):
        text = "// first\n//\n// second\nint a;\n// third\n\n// fourth\n"
        self.assertEqual([sentence for _, sentence in sentences_of(text)], ["first", "second", "third", "fourth"])

    def test_comments_behind_code_belong_to_their_lines(self):
        text = "int a;  // the first\n        // value\nint b;  // second\n// third\nint c;\n"
        self.assertEqual(sentences_of(text), [(1, "the first value"), (3, "second"), (4, "third")])

    def test_reads_comments_in_blocks(self):
        self.assertEqual(sentences_of("/* One\n * comment. */\nf(/*name=*/1);\n"), [(1, "One comment."), (3, "name=")])

    def test_strings_and_numbers_begin_no_comment(self):
        text = 'auto a = "http://x"; auto b = R"(// no "comment")"; char c = \'"\'; int d = 1\'000;  // it\'s d\n'
        self.assertEqual(sentences_of(text), [(1, "it's d")])


class Check(unittest.TestCase):
    def expect_one(self, sources, *parts):
        mistakes = check(sources)
        self.assertEqual(len(mistakes), 1, mistakes)
        for part in parts:
            self.assertIn(part, mistakes[0])

    def test_accepts_sentences_with_nouns(self):
        text = "// The values that the body reads, and the values it writes: those two.\n// What it keeps, one slot each.\n"
        self.assertEqual(check({"a.h": text}), [])

    def test_refuses_three_pointing_words_in_one_sentence(self):
        text = "#pragma once\n// Plain. Those of a loop\n// are what others need.\n"
        self.expect_one({"a.h": text}, "a.h:2", '"Those of a loop are what others need."', "those, what, others",
                        "say the noun")

    def test_refuses_vague_phrases_across_lines(self):
        self.expect_one({"a.cuh": "\n// the rows of the\n// moment\n"}, "a.cuh:2", "of the moment", "current")
        self.expect_one({"a.h": "// The very rows.\n"}, "the very", "exact")
        self.expect_one({"a.h": "// all, but for the last\n"}, "but for", "except")

    def test_looks_at_headers_alone(self):
        self.assertEqual(check({"a.cc": "// the very rows\n", "a.py": "// the very rows\n"}), [])
        self.expect_one({"a.h": '// fine\nf("the very");  // the very\n'}, "a.h:2")


class Shares(unittest.TestCase):
    def test_a_chain_is_two_pronouns_within_five_words(self):
        self.assertTrue(has_chain("the values it needs of others"))
        self.assertFalse(has_chain("the values it needs of all the others"))

    def test_that_is_a_pronoun_unless_a_clause_begins(self):
        self.assertTrue(has_chain("its size and that of the arena"))
        self.assertTrue(has_chain("That makes it large."))
        self.assertFalse(has_chain("the values that it writes"))

    def test_counts_sentences_by_package(self):
        sources = {
            "framework/op/deep/a.h": "// It copies what others need.\n// Returns the number of rows.\n// it its them\n",
            "memory/b.h": "// Allocates the memory of the arena.\n",
            "memory/b.cc": "// It copies what others need.\n",
        }
        self.assertEqual(shares(sources), [("framework/op", 1, 2), ("memory", 0, 1)])


if __name__ == "__main__":
    unittest.main()
