#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

// A parameter's counts before the step.
struct Counts {
  int64_t accumulates = 0;
  int64_t old_accumulates = 0;
  int64_t updates = 0;
};

struct AverageAccumulatesCase {
  std::string name;
  std::vector<Shape> shapes = {{5, 7}};
  std::vector<Counts> counts = {{3, 2, 5}};  // one, or one per parameter
  float average_window = 0.5f;
  int64_t min_window = 4;
  int64_t max_window = 8;
  int64_t max_num_accumulates = 16384;
};

// Division of integers: average_window * 2^10 must be one.
int64_t Share(int64_t updates, float average_window) {
  return static_cast<int64_t>(__int128{updates} * static_cast<int64_t>(average_window * 1024) /
                              1024);
}

Arrays Accumulated(const AverageAccumulatesCase& made, const Arrays& inputs) {
  Arrays after;
  for (size_t i = 0; i < made.shapes.size(); ++i) {
    const auto at = [&](const char* slot) { return inputs.at(slot)[i]; };
    const Array param = at("param");
    Array sum_1 = at("in_sum_1"), sum_2 = at("in_sum_2"), sum_3 = at("in_sum_3");
    Array accumulates = at("in_num_accumulates"), old = at("in_old_num_accumulates");
    Array updates = at("in_num_updates");
    const double n = accumulates.values[0] += 1;
    const double all = updates.values[0] += 1;
    const auto longest = static_cast<double>(
        std::min(made.max_window, Share(static_cast<int64_t>(all), made.average_window)));
    const bool is_full = n >= static_cast<double>(made.min_window) && n >= longest;
    const bool is_large = static_cast<int64_t>(all) % made.max_num_accumulates == 0;
    for (size_t j = 0; j < param.values.size(); ++j) {
      double& a = sum_1.values[j];
      double& b = sum_2.values[j];
      a += param.values[j];
      if (is_large) b += std::exchange(a, 0);
      if (is_full) sum_3.values[j] = std::exchange(a, 0) + std::exchange(b, 0);
    }
    if (is_full) old.values[0] = std::exchange(accumulates.values[0], 0);
    const auto add = [&](const char* slot, const Array& array) { after[slot].push_back(array); };
    add("out_sum_1", sum_1);
    add("out_sum_2", sum_2);
    add("out_sum_3", sum_3);
    add("out_num_accumulates", accumulates);
    add("out_old_num_accumulates", old);
    add("out_num_updates", updates);
  }
  return after;
}

OpCase MakeAverageAccumulatesCase(const AverageAccumulatesCase& made) {
  OpCase result{.name = made.name, .type = "average_accumulates"};
  uint64_t seed = 1;
  for (size_t i = 0; i < made.shapes.size(); ++i) {
    for (const char* slot : {"param", "in_sum_1", "in_sum_2", "in_sum_3"}) {
      result.inputs[slot].push_back(Uniform(made.shapes[i], seed++));
    }
    const Counts& counts = made.counts.size() == 1 ? made.counts[0] : made.counts[i];
    const auto add = [&](const char* slot, int64_t count) {
      result.inputs[slot].push_back(Values({1}, {static_cast<double>(count)}, DType::kInt64));
    };
    add("in_num_accumulates", counts.accumulates);
    add("in_old_num_accumulates", counts.old_accumulates);
    add("in_num_updates", counts.updates);
  }
  for (const char* slot : {"out_sum_1", "out_sum_2", "out_sum_3", "out_num_accumulates",
                           "out_old_num_accumulates", "out_num_updates"}) {
    result.outputs.emplace_back(slot, static_cast<int>(made.shapes.size()));
  }
  result.attrs = {{"average_window", made.average_window},
                  {"min_average_window", made.min_window},
                  {"max_average_window", made.max_window}};
  constexpr int64_t kDefault = 16384;
  if (made.max_num_accumulates != kDefault) {
    result.attrs["max_num_accumulates"] = made.max_num_accumulates;
  }
  result.reference = [made](const Arrays& inputs) { return Accumulated(made, inputs); };
  return result;
}

OpCase Skipped(OpCase made, bool skips) {
  made.name += skips ? "_skipped" : "_not_skipped";
  made.inputs["SkipUpdate"] = {Values({1}, {skips ? 1.0 : 0.0}, DType::kBool)};
  if (!skips) return made;
  made.reference = [outputs = made.outputs](const Arrays& inputs) {
    Arrays same;
    for (const auto& [output, count] : outputs) {
      same[output] = inputs.at("in" + output.substr(std::string("out").size()));
    }
    return same;
  };
  return made;
}

}  // namespace

void AddAverageAccumulatesCases(CaseList& cases) {
  const auto add = [&](const AverageAccumulatesCase& made) {
    cases.push_back(MakeAverageAccumulatesCase(made));
  };
  // A window is full at half of all updates, from 4 to 8 of them.
  add({.name = "first", .counts = {{0, 0, 0}}});
  add({.name = "below_the_smallest_window", .counts = {{2, 2, 4}}});
  add({.name = "the_smallest_window", .counts = {{3, 2, 7}}});
  add({.name = "below_the_share", .counts = {{4, 4, 11}}});
  add({.name = "the_share", .counts = {{4, 4, 10}}});
  add({.name = "below_the_largest_window", .counts = {{6, 8, 98}}});
  add({.name = "the_largest_window", .counts = {{7, 8, 99}}});
  add({.name = "sum_1_is_full", .counts = {{2, 2, 16383}}});
  add({.name = "sum_1_and_window_are_full", .counts = {{7, 8, 16383}}});
  add({.name = "window_of_one",
       .counts = {{0, 1, 20}},
       .average_window = 0.0f,
       .min_window = 1,
       .max_window = 1});
  add({.name = "sum_1_is_nearly_full", .counts = {{2, 2, 16382}}});
  // In float32 these updates are 2^25.
  constexpr int64_t kMany = (int64_t{1} << 25) + 1;
  const auto of_many = [&](const char* name, int64_t accumulates) {
    add({.name = name,
         .counts = {{accumulates - 1, 4, kMany - 1}},
         .average_window = 1.0f,
         .max_window = int64_t{1} << 40});
  };
  of_many("one_below_a_share_of_more_than_float32_counts", kMany - 1);
  of_many("a_share_of_more_than_float32_counts", kMany);
  add({.name = "empty", .shapes = {{0, 4}}});
  add({.name = "one_number", .shapes = {Shape()}});
  add({.name = "several_threads", .shapes = {{131, 257}}});
  add({.name = "list",
       .shapes = {{5, 7}, {0}, {16}, {131, 257}, {1}, {3, 3}},
       .counts = {{3, 2, 7}, {0, 0, 0}, {2, 2, 16383}, {7, 8, 99}, {2, 2, 4}, {7, 8, 16383}}});
  add({.name = "list_with_small_sums",
       .shapes = {{5, 7}, {16}, {3, 3}},
       .counts = {{3, 2, 7}, {2, 2, 6}, {7, 8, 97}},
       .max_num_accumulates = 7});
  for (const bool skips : {true, false}) {
    cases.push_back(Skipped(
        MakeAverageAccumulatesCase(
            {.name = "list", .shapes = {{6, 2}, {3}}, .counts = {{3, 2, 7}, {2, 2, 16383}}}),
        skips));
  }
  OpCase large = MakeAverageAccumulatesCase(
      {.name = "4M_elements", .shapes = {{1024, 4096}}, .counts = {{2, 2, 4}}});
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
