#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Array InFloat64(Array array) {
  array.fixed_dtype = true;
  array.dtype = DType::kFloat64;
  return array;
}

// Every third channel from `kept` on has a variance of -1; none if that is negative.
OpCase BatchNormStatistics(const std::string& name, const std::vector<int64_t>& channels,
                           int64_t kept) {
  OpCase made{.name = name, .type = "c_batch_norm_statistics"};
  std::vector<float> momentum;
  uint64_t seed = 1;
  for (const int64_t of_layer : channels) {
    made.inputs["Mean"].push_back(Uniform({of_layer}, seed++));
    made.inputs["Variance"].push_back(Uniform({of_layer}, seed++, 0.5, 2.0));
    made.inputs["BatchMean"].push_back(InFloat64(Uniform({of_layer}, seed++)));
    Array variance = InFloat64(Uniform({of_layer}, seed++, 0.5, 2.0));
    for (int64_t c = kept; c >= 0 && c < of_layer; c += 3) {
      variance.values[static_cast<size_t>(c)] = -1;
    }
    made.inputs["BatchVariance"].push_back(std::move(variance));
    momentum.push_back(1 - 0.1f * static_cast<float>(momentum.size() + 1));
  }
  made.attrs = {{"momentum", momentum}};
  made.reference = [momentum](const Arrays& inputs) {
    Arrays outputs;
    for (size_t i = 0; i < momentum.size(); ++i) {
      const Array& batch_variance = inputs.at("BatchVariance")[i];
      for (const std::string of : {"Mean", "Variance"}) {
        Array next = inputs.at(of)[i];
        for (size_t c = 0; c < next.values.size(); ++c) {
          if (batch_variance.values[c] == -1) continue;
          const double keep = momentum[i];
          next.values[c] =
              keep * next.values[c] + (1 - keep) * inputs.at("Batch" + of)[i].values[c];
        }
        outputs[of + "Out"].push_back(std::move(next));
      }
    }
    return outputs;
  };
  const auto layers = static_cast<int>(channels.size());
  made.outputs = {{"MeanOut", layers}, {"VarianceOut", layers}};
  return made;
}

}  // namespace

void AddCBatchNormStatisticsCases(CaseList& cases) {
  cases.push_back(BatchNormStatistics("one", {5}, -1));
  cases.push_back(BatchNormStatistics("layers", {64, 1, 0, 257, 3}, -1));
  cases.push_back(BatchNormStatistics("some_channels_stay", {7, 4}, 1));
  cases.push_back(BatchNormStatistics("all_channels_stay", {1, 1}, 0));
  cases.push_back(BatchNormStatistics("nothing", {0}, -1));
  cases.push_back(BatchNormStatistics("many_channels", {40000}, 5));
}

}  // namespace skiff::harness
