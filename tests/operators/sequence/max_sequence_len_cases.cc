#include "tests/operators/sequence/rank_table_reference.h"

namespace skiff::harness {

void AddMaxSequenceLenCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    const int64_t longest = *std::ranges::max_element(lengths.each);
    return OpCase{
        .name = "",
        .type = "max_sequence_len",
        .inputs = {{"RankTable", {RankTableOf(lengths.each)}}},
        .attrs = {},
        .reference =
            [longest](const Arrays&) {
              return Arrays{{"Out", {Values({1}, {static_cast<double>(longest)}, DType::kInt64)}}};
            },
        .outputs = {{"Out", 1}}};
  });
}

}  // namespace skiff::harness
