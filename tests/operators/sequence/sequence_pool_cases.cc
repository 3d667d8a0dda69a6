#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays SequencePoolReference(const std::string& type, double pad_value, const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const std::vector<uint64_t>& offsets = x.lod.back();
  const auto width = static_cast<size_t>(x.shape.element_count(1, x.shape.rank()));
  std::vector<double> out, places;
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    const size_t first = offsets[s], last = offsets[s + 1];
    for (size_t i = 0; i < width; ++i) {
      double sum = 0, largest = -std::numeric_limits<double>::infinity();
      double place = -1;
      for (size_t row = first; row < last; ++row) {
        const double value = x.values[row * width + i];
        sum += value;
        if (value > largest) place = static_cast<double>(row);
        largest = std::max(largest, value);
      }
      const auto n = static_cast<double>(last - first);
      double result = pad_value;
      if (n > 0) {
        if (type == "SUM") result = sum;
        if (type == "AVERAGE") result = sum / n;
        if (type == "SQRT") result = sum / std::sqrt(n);
        if (type == "MAX") result = largest;
        if (type == "FIRST") result = x.values[first * width + i];
        if (type == "LAST") result = x.values[(last - 1) * width + i];
      }
      out.push_back(result);
      places.push_back(place);
    }
  }
  Shape shape = x.shape;
  shape[0] = static_cast<int64_t>(offsets.size()) - 1;
  Array pooled = Values(shape, out);
  pooled.lod.assign(x.lod.begin(), x.lod.end() - 1);
  Arrays outputs = {{"Out", {pooled}}};
  if (type == "MAX") outputs["MaxIndex"] = {Values(shape, places, DType::kInt32)};
  return outputs;
}

OpCase SequencePoolCase(const std::string& name, const std::string& type, Array x,
                        float pad_value = 0) {
  OpCase op_case;
  op_case.name = name;
  op_case.type = "sequence_pool";
  op_case.inputs = {{"X", {std::move(x)}}};
  op_case.attrs = {{"pooltype", type}, {"pad_value", pad_value}};
  op_case.reference = [type, pad_value](const Arrays& inputs) {
    return SequencePoolReference(type, static_cast<double>(pad_value), inputs);
  };
  op_case.outputs = {{"Out", 1}, {"MaxIndex", 1}};
  op_case.gradients = {"X"};
  op_case.loss_outputs = {"Out"};
  return op_case;
}

}  // namespace

void AddSequencePoolCases(CaseList& cases) {
  for (const std::string type : {"SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST"}) {
    cases.push_back(SequencePoolCase(type, type, Ragged(Distinct({9, 5}, 1), {4, 1, 2, 2})));
    cases.push_back(SequencePoolCase(type + "_without_rows", type,
                                     Ragged(Distinct({4, 3}, 2), {0, 3, 0, 1, 0}), -0.5f));
    cases.push_back(
        SequencePoolCase(type + "_of_images", type, Ragged(Distinct({5, 2, 3}, 3), {2, 3})));
    cases.push_back(SequencePoolCase(type + "_two_levels", type,
                                     Ragged(Distinct({7, 2}, 4), {1, 0, 2}, {3, 3, 1})));
    cases.push_back(
        SequencePoolCase(type + "_long", type, Ragged(Distinct({150, 33}, 5), {1, 130, 19})));
    cases.push_back(SequencePoolCase(type + "_nothing", type, Ragged(Distinct({0, 3}, 6), {0, 0})));
    cases.push_back(SequencePoolCase(
        type + "_benchmark", type, Ragged(Uniform({8192, 128}, 7), std::vector<int64_t>(256, 32))));
    cases.back().benchmark_only = true;
  }
}

}  // namespace skiff::harness
