#include <string>
#include <utility>

#include "tests/operators/nn/unfolding_reference.h"

namespace skiff::harness {

void AddUnfoldCases(CaseList& cases) {
  const auto add = [&](const UnfoldingSpec& spec) {
    OpCase made{.name = spec.name,
                .type = "unfold",
                .inputs = {{"X", {Uniform(spec.image, 1)}}},
                .attrs = spec.attrs(),
                .outputs = {{"Y", 1}},
                .gradients = {"X"}};
    made.reference = [spec](const Arrays& inputs) {
      Array columns = ZerosOf(spec.columns());
      spec.ForEach(
          [&](size_t to, size_t from) { columns.values[to] = inputs.at("X")[0].values[from]; });
      return Arrays{{"Y", {std::move(columns)}}};
    };
    // Differences of so many elements would take too long.
    if (spec.name == "large") made.gradients = {};
    cases.push_back(std::move(made));
  };
  for (const UnfoldingSpec& spec : UnfoldingSpecs()) add(spec);
  // Nothing but the padding.
  add({"images_without_rows", {2, 3, 0, 5}, {2, 2}, {1, 1}, {1, 0, 1, 0}});
  add(LargeUnfolding());
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
