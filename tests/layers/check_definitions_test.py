"""Tests what check_definitions.py considers a definition, and two definitions of one type."""
import unittest

from tests.layers.check_definitions import check, types_of


class TypesOf(unittest.TestCase):
    def test_qualifies_names_with_their_namespaces(self):
        text = "namespace a::b {\nstruct X {\n};\n}  // namespace a::b\nclass Y : public Z {\n"
        self.assertEqual(types_of(text), [(2, "a::b::X"), (5, "Y")])

    def test_takes_every_kind_of_type(self):
        text = "class A final {\nstruct B : C {\nunion D {\nenum class E : int8_t {\nenum F {\nstruct A::Nested {\n"
        self.assertEqual([name for _, name in types_of(text)], ["A", "B", "D", "E", "F", "A::Nested"])

    def test_tells_specializations_apart(self):
        text = "template <>\nstruct Of<int> {\n};\ntemplate <>\nstruct Of<float> {\n};\n"
        self.assertEqual([name for _, name in types_of(text)], ["Of<int>", "Of<float>"])

    def test_leaves_out_declarations_and_anonymous_namespaces(self):
        text = "class A;\nnamespace skiff {\nnamespace {\nstruct Mine {\n};\n}  // namespace\nstruct Ours {\n};\n}  // namespace skiff\n"
        self.assertEqual([name for _, name in types_of(text)], ["skiff::Ours"])


class Check(unittest.TestCase):
    def test_names_both_places(self):
        one = "namespace skiff {\nstruct Block {\n};\n}  // namespace skiff\n"
        other = "\nnamespace skiff {\nclass Block {\n};\n}  // namespace skiff\n"
        self.assertEqual(check({"a.h": one, "b.h": other}),
                         ["skiff::Block is defined in a.h:2 and in b.h:3"])

    def test_the_same_name_in_two_namespaces_is_no_mistake(self):
        self.assertEqual(check({"a.h": "namespace a {\nstruct X {\n}  // namespace a\n",
                                "b.h": "namespace b {\nstruct X {\n}  // namespace b\n"}), [])


if __name__ == "__main__":
    unittest.main()
