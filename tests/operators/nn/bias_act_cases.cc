#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct BiasSpec {
  std::string name;
  Shape x;  // N, C, … or N, …, C
  bool channels_last = false;
  bool benchmark_only = false;
};

Arrays BiasActReference(const BiasSpec& spec, const Arrays& inputs) {
  Array out = inputs.at("X")[0];
  const std::vector<double>& bias = inputs.at("Bias")[0].values;
  const size_t pixels =
      spec.channels_last ? 1 : static_cast<size_t>(spec.x.element_count(2, spec.x.rank()));
  for (size_t i = 0; i < out.values.size(); ++i) {
    const double sum = out.values[i] + bias[i / pixels % bias.size()];
    out.values[i] = sum < 0 ? 0 : sum;
  }
  return {{"Out", {std::move(out)}}};
}

OpCase BiasCase(const BiasSpec& spec) {
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = "bias_act";
  op_case.inputs = {{"X", {Uniform(spec.x, 1)}},
                    {"Bias", {Uniform({spec.x[spec.channels_last ? spec.x.rank() - 1 : 1]}, 2)}}};
  if (spec.channels_last) op_case.attrs["data_layout"] = std::string("NHWC");
  op_case.reference = [spec](const Arrays& inputs) { return BiasActReference(spec, inputs); };
  op_case.outputs = {{"Out", 1}};
  op_case.gradients = {"X", "Bias"};
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

}  // namespace

void AddBiasActCases(CaseList& cases) {
  const std::vector<BiasSpec> specs = {
      {.name = "images", .x = {2, 3, 5, 4}},
      {.name = "one_channel", .x = {3, 1, 4, 4}},
      {.name = "one_value_a_channel", .x = {1, 17, 1, 1}},
      {.name = "whole_blocks", .x = {3, 16, 5, 6}},
      {.name = "part_of_a_block", .x = {2, 17, 5, 5}},
      {.name = "more_images_than_parts", .x = {70, 3, 4, 4}},
      {.name = "vectors", .x = {7, 5}},
      {.name = "vectors_of_several_tiles", .x = {300, 150}},
      {.name = "volumes", .x = {2, 3, 3, 4, 5}},
      {.name = "channels_last", .x = {2, 4, 5, 3}, .channels_last = true},
      {.name = "channels_last_of_several_tiles", .x = {3, 7, 9, 83}, .channels_last = true},
      {.name = "empty_batch", .x = {0, 3, 4, 4}},
      {.name = "images_64_at_56", .x = {8, 64, 56, 56}, .benchmark_only = true},
      {.name = "vectors_4096x1024", .x = {4096, 1024}, .benchmark_only = true},
  };
  for (const BiasSpec& spec : specs) cases.push_back(BiasCase(spec));

  // In every lane of a vector, and after the last whole group of vectors.
  const Shape many = {1, 2, 9, 17};
  OpCase special = BiasCase({.name = "infinite_and_not_a_number", .x = many});
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values = Uniform(many, 1).values;
  for (size_t i = 0; i < values.size(); i += 5) values[i] = infinity;
  for (size_t i = 1; i < values.size(); i += 5) values[i] = -infinity;
  for (size_t i = 2; i < values.size(); i += 5) values[i] = nan;
  special.inputs["X"] = {Values(many, values)};
  special.gradients = {};
  cases.push_back(std::move(special));
}

}  // namespace skiff::harness
