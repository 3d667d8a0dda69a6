#include <string>
#include <utility>
#include <vector>

#include "tests/operators/nn/unfolding_reference.h"

namespace skiff::harness {

void AddFoldCases(CaseList& cases) {
  const auto add = [&](const UnfoldingSpec& spec) {
    OpCase made{.name = spec.name,
                .type = "fold",
                .inputs = {{"X", {Uniform(spec.columns(), 1)}}},
                .attrs = spec.attrs(),
                .outputs = {{"Y", 1}},
                .gradients = {"X"}};
    made.attrs["output_sizes"] = std::vector<int32_t>{static_cast<int32_t>(spec.image[2]),
                                                      static_cast<int32_t>(spec.image[3])};
    made.reference = [spec](const Arrays& inputs) {
      Array images = ZerosOf(spec.image);
      spec.ForEach(
          [&](size_t from, size_t to) { images.values[to] += inputs.at("X")[0].values[from]; });
      return Arrays{{"Y", {std::move(images)}}};
    };
    // Differences of so many elements would take too long.
    if (spec.name == "large") made.gradients = {};
    cases.push_back(std::move(made));
  };
  for (const UnfoldingSpec& spec : UnfoldingSpecs()) add(spec);
  add(LargeUnfolding());
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
