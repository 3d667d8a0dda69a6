#include <algorithm>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct WriteToCacheSpec {
  std::string name;
  Shape cache;
  int64_t tokens = 1;
  std::vector<int64_t> first;  // position of each sequence
  bool benchmark_only = false;
};

Arrays WriteToCacheReference(const WriteToCacheSpec& spec, const Arrays& inputs) {
  Array out = inputs.at("Cache")[0];
  const int64_t row = spec.cache.element_count(2, spec.cache.rank());
  for (int64_t n = 0; n < spec.cache[0]; ++n) {
    const int64_t first =
        std::clamp<int64_t>(spec.first[static_cast<size_t>(n)], 0, spec.cache[1] - spec.tokens);
    for (int64_t i = 0; i < spec.tokens * row; ++i) {
      out.values[static_cast<size_t>((n * spec.cache[1] + first) * row + i)] =
          inputs.at("X")[0].values[static_cast<size_t>(n * spec.tokens * row + i)];
    }
  }
  return {{"Out", {out}}};
}

OpCase WriteToCacheCase(const WriteToCacheSpec& spec) {
  Shape x = spec.cache;
  x[1] = spec.tokens;
  std::vector<double> positions;
  for (const int64_t first : spec.first) {
    for (int64_t i = 0; i < spec.tokens; ++i) positions.push_back(static_cast<double>(first + i));
  }
  const Shape places = {spec.cache[0], spec.tokens};
  return {.name = spec.name,
          .type = "write_to_cache",
          .inputs = {{"Cache", {Uniform(spec.cache, 1)}},
                     {"X", {Uniform(x, 2)}},
                     {"Positions", {Values(places, positions, DType::kInt64)}}},
          .reference = [spec](const Arrays& inputs) { return WriteToCacheReference(spec, inputs); },
          .outputs = {{"Out", 1}},
          .benchmark_only = spec.benchmark_only};
}

}  // namespace

void AddWriteToCacheCases(CaseList& cases) {
  for (const WriteToCacheSpec& spec : std::vector<WriteToCacheSpec>{
           {.name = "one_token", .cache = {2, 6, 3}, .first = {0, 5}},
           {.name = "several_tokens", .cache = {3, 9, 4}, .tokens = 4, .first = {5, 0, 2}},
           {.name = "all_of_it", .cache = {2, 4, 3}, .tokens = 4, .first = {0, 0}},
           {.name = "numbers", .cache = {2, 5}, .tokens = 2, .first = {3, 1}},
           {.name = "matrices", .cache = {2, 5, 2, 3}, .tokens = 2, .first = {2, 0}},
           {.name = "clamped", .cache = {3, 5, 2}, .tokens = 2, .first = {-7, 4, 1000}},
           {.name = "no_tokens", .cache = {2, 5, 3}, .tokens = 0, .first = {1, 2}},
           {.name = "no_columns", .cache = {2, 5, 0}, .tokens = 2, .first = {1, 2}},
           {.name = "several_threads",
           .cache = {5, 70, 640},
           .tokens = 33,
           .first = {0, 9, 37, 1, 2}},
           {.name = "gpt2_step",
           .cache = {8, 1024, 768},
           .first = {0, 9, 1, 2, 3, 500, 8, 1023},
           .benchmark_only = true},
       }) {
    cases.push_back(WriteToCacheCase(spec));
  }
}

}  // namespace skiff::harness
