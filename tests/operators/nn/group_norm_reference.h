// Cases of group and instance normalization with a naive float64 reference.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/nn/normalization_case.h"

namespace skiff::harness {

struct GroupNormSpec {
  std::string name;
  Shape x;  // N, C, … or N, …, C
  int64_t groups = 1;
  bool channels_last = false;
  bool scale = true;
  bool bias = true;
  double offset = 0;  // of X
  float epsilon = 1e-5f;
  double float32_tolerance = 0;
  double gradient_tolerance = 0;
  bool benchmark_only = false;
};

struct GroupNormResult {
  Array y;
  std::vector<double> means;
  std::vector<double> variances;
};

inline GroupNormResult GroupNormReference(const GroupNormSpec& spec, const Arrays& inputs) {
  GroupNormResult result{.y = inputs.at("X")[0], .means = {}, .variances = {}};
  const auto batch = static_cast<size_t>(spec.x[0]);
  const auto channels = static_cast<size_t>(spec.x[spec.channels_last ? spec.x.rank() - 1 : 1]);
  const auto groups = static_cast<size_t>(spec.groups);
  size_t image = 1;
  for (int axis = 1; axis < spec.x.rank(); ++axis) image *= static_cast<size_t>(spec.x[axis]);
  const size_t pixels = channels == 0 ? 0 : image / channels;
  const auto channel_of = [&](size_t i) {
    return spec.channels_last ? i % channels : i / pixels % channels;
  };
  const auto group_of = [&](size_t i) {
    return i / image * groups + channel_of(i) / (channels / groups);
  };
  const auto count = static_cast<double>(groups == 0 ? 1 : image / groups);
  const LazyValues& x = inputs.at("X")[0].values;
  result.means.assign(batch * groups, 0.0);
  result.variances.assign(batch * groups, 0.0);
  for (size_t i = 0; i < x.size(); ++i) result.means[group_of(i)] += x[i] / count;
  for (size_t i = 0; i < x.size(); ++i) {
    result.variances[group_of(i)] += std::pow(x[i] - result.means[group_of(i)], 2) / count;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    double& y = result.y.values[i];
    const double variance = result.variances[group_of(i)] + static_cast<double>(spec.epsilon);
    y = (x[i] - result.means[group_of(i)]) / std::sqrt(variance);
    if (spec.scale) y *= inputs.at("Scale")[0].values[channel_of(i)];
    if (spec.bias) y += inputs.at("Bias")[0].values[channel_of(i)];
  }
  return result;
}

// The case without a reference.
inline OpCase GroupNormCase(const std::string& type, const GroupNormSpec& spec) {
  return NormalizationCase(type, spec, spec.x[spec.channels_last ? spec.x.rank() - 1 : 1]);
}

}  // namespace skiff::harness
