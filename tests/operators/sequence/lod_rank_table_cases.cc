#include "tests/operators/sequence/rank_table_reference.h"

namespace skiff::harness {

void AddLodRankTableCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return OpCase{.name = "",
                  .type = "lod_rank_table",
                  .inputs = {{"X", {Ragged(Uniform({lengths.rows(), 2}, 1), lengths.each)}}},
                  .attrs = {},
                  .reference =
                      [each = lengths.each](const Arrays&) {
                        return Arrays{{"Out", {RankTableOf(each)}}};
                      },
                  .outputs = {{"Out", 1}}};
  });
  cases.push_back({.name = "of_the_lower_level",
                   .type = "lod_rank_table",
                   .inputs = {{"X", {Ragged(Uniform({6, 2}, 1), {2, 1}, {1, 3, 2})}}},
                   .attrs = {{"level", 1}},
                   .reference =
                       [](const Arrays&) {
                         return Arrays{{"Out", {RankTableOf({1, 3, 2})}}};
                       },
                   .outputs = {{"Out", 1}}});
}

}  // namespace skiff::harness
