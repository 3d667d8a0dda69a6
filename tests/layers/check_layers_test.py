"""Tests the checker of the layers."""
import unittest

from tests.layers.check_layers import Layers, check

TABLE = """
# a comment
0    framework/base
1    framework/ir
1    memory
2    operators/common
3    operators/*
11   tests/*
external hwy/
"""

LEGAL = {
    "framework/base/error.h": "#include <string>\n",
    "framework/base/error.cc": '#include "framework/base/error.h"\n',
    "framework/ir/program.h": '#include "framework/base/error.h"\n',
    "operators/common/loop.h": '#include "hwy/highway.h"\n#include "framework/ir/program.h"\n',
    "operators/math/deep/scale.cc": '#include "operators/common/loop.h"\n#include "operators/math/scale.h"\n',
    "operators/math/scale.h": "#pragma once\n",
}


class CheckLayers(unittest.TestCase):
    def mistakes(self, **changed):
        return self.mistakes_of({path.replace("__", "/") + ".h": text for path, text in changed.items()})

    def mistakes_of(self, changed):
        return check(Layers(TABLE), dict(LEGAL, **changed))

    def expect_one(self, mistakes, *parts):
        self.assertEqual(len(mistakes), 1, mistakes)
        for part in parts:
            self.assertIn(part, mistakes[0])

    def test_accepts_legal_includes(self):
        self.assertEqual(self.mistakes(), [])

    def test_rejects_upward_include(self):
        found = self.mistakes(framework__base__bad='\n#include "framework/ir/program.h"\n')
        self.expect_one(found, "framework/base/bad.h:2", "framework/ir/program.h", "rank 1")

    def test_rejects_equal_rank_include(self):
        found = self.mistakes(memory__bad='#include "framework/ir/program.h"\n')
        self.expect_one(found, "memory/bad.h:1", "rank 1")

    def test_rejects_include_of_another_family(self):
        found = self.mistakes(operators__nn__bad='#  include "operators/math/scale.h"\n')
        self.expect_one(found, "operators/nn/bad.h:1", "operators/math has rank 3")

    def test_shared_kernels_do_not_include_a_family(self):
        found = self.mistakes(operators__common__bad='#include "operators/math/scale.h"\n')
        self.expect_one(found, "operators/common/bad.h:1")

    def test_rejects_unknown_package(self):
        found = self.mistakes(framework__base__bad='#include "framework/secret/thing.h"\n')
        self.expect_one(found, "framework/secret/thing.h", "no package")
        self.expect_one(self.mistakes(elsewhere__thing=""), "elsewhere/thing.h", "no package")

    def test_rejects_include_that_is_not_from_the_root(self):
        self.expect_one(self.mistakes(framework__base__bad='#include "error.h"\n'), "from the root")

    def test_rejects_cycle_of_files(self):
        found = self.mistakes(framework__base__a='#include "framework/base/b.h"\n',
                              framework__base__b='#include "framework/base/c.h"\n',
                              framework__base__c='#include "framework/base/a.h"\n')
        self.expect_one(found, "include cycle", "a.h -> framework/base/b.h -> framework/base/c.h")

    def test_rejects_file_that_includes_itself(self):
        self.expect_one(self.mistakes(framework__base__a='#include "framework/base/a.h"\n'), "include cycle")

    def test_rejects_cycle_of_pairs(self):
        found = self.mistakes_of({
            "memory/a.h": "",
            "memory/a.cc": '#include "memory/a.h"\n#include "memory/b.h"\n',
            "memory/b.h": '#include "memory/c.h"\n',
            "memory/c.h": "",
            "memory/c.cu": '#include "memory/c.h"\n#include "memory/a.h"\n',
        })
        self.expect_one(found, "cycle of pairs: memory/a.cc -> memory/b.h, memory/b.h -> memory/c.h, "
                               "memory/c.cu -> memory/a.h")

    def test_a_source_that_includes_a_header_of_another_pair_is_no_cycle(self):
        self.assertEqual(self.mistakes_of({
            "memory/a.h": "",
            "memory/a.cc": '#include "memory/a.h"\n#include "memory/b.h"\n',
            "memory/a_test.cc": '#include "memory/b.h"\n#include "memory/a.h"\n',
            "memory/b.h": '#include "memory/c.h"\n',
            "memory/c.h": "",
        }), [])

    def test_a_cycle_of_files_is_reported_once(self):
        found = self.mistakes(memory__a='#include "memory/b.h"\n', memory__b='#include "memory/a.h"\n')
        self.expect_one(found, "include cycle: memory/a.h -> memory/b.h -> memory/a.h")

    def test_rejects_a_malformed_table(self):
        self.assertRaises(ValueError, Layers, "1 a b\n")
        self.assertRaises(ValueError, Layers, "1 a\n2 a\n")

    def test_rejects_a_rank_that_is_no_whole_number(self):
        for rank in ("3.5", "-1", "high"):
            self.assertRaisesRegex(ValueError, "whole number", Layers, rank + " a\n")
