#include <functional>
#include <string>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {
namespace {

// The position in Alpha that belongs to element i of x.
using SlopeIndex = std::function<size_t(const Shape& x, size_t i)>;

size_t OneSlope(const Shape&, size_t) { return 0; }

SlopeIndex SlopeOfChannel(int axis) {
  return [axis](const Shape& x, size_t i) {
    const int at = axis < 0 ? axis + x.rank() : axis;
    size_t inner = 1;
    for (int k = at + 1; k < x.rank(); ++k) inner *= static_cast<size_t>(x[k]);
    return i / inner % static_cast<size_t>(x[at]);
  };
}

size_t SlopeOfElement(const Shape& x, size_t i) {
  size_t sample = 1;
  for (int k = 1; k < x.rank(); ++k) sample *= static_cast<size_t>(x[k]);
  return i % sample;
}

OpCase PreluCase(const std::string& name, const Shape& x, const Shape& alpha,
                 const std::string& mode, const std::string& data_format, const SlopeIndex& slope) {
  OpCase result{.name = name,
                .type = "prelu",
                .inputs = {{"X", {UniformAwayFrom(x, 20, {0}, 0.01)}},
                           {"Alpha", {Uniform(alpha, 21, -0.5, 0.8)}}},
                .attrs = {{"mode", mode}},
                .reference =
                    [slope](const Arrays& inputs) {
                      Array out = inputs.at("X")[0];
                      for (size_t i = 0; i < out.values.size(); ++i) {
                        if (out.values[i] <= 0)
                          out.values[i] *= inputs.at("Alpha")[0].values[slope(out.shape, i)];
                      }
                      return Arrays{{"Out", {out}}};
                    },
                .outputs = {{"Out", 1}},
                .gradients = {"X", "Alpha"}};
  if (!data_format.empty()) result.attrs["data_format"] = data_format;
  return result;
}

}  // namespace

void AddPreluCases(CaseList& cases) {
  cases.push_back(PreluCase("all", {3, 5, 7}, {1}, "all", "", OneSlope));
  cases.push_back(PreluCase("all_of_rank_0", Shape(), {1}, "all", "", OneSlope));
  cases.push_back(PreluCase("all_with_alpha_of_rank_0", {5, 7}, Shape(), "all", "", OneSlope));
  cases.push_back(PreluCase("all_with_alpha_of_rank_2", {5, 7}, {1, 1}, "all", "NHWC", OneSlope));
  cases.push_back(PreluCase("all_of_no_elements", {0, 7}, {1}, "all", "", OneSlope));
  cases.push_back(PreluCase("all_on_several_threads", {70003}, {1}, "all", "", OneSlope));
  cases.push_back(PreluCase("channel", {2, 3, 5, 7}, {3}, "channel", "NCHW", SlopeOfChannel(1)));
  cases.push_back(
      PreluCase("channel_of_rank_2", {6, 33}, {33}, "channel", "NCHW", SlopeOfChannel(1)));
  cases.push_back(
      PreluCase("channel_of_rank_3", {4, 17, 9}, {1, 17}, "channel", "NCHW", SlopeOfChannel(1)));
  cases.push_back(
      PreluCase("channel_of_one_channel", {2, 1, 5}, {1}, "channel", "NCHW", SlopeOfChannel(1)));
  cases.push_back(PreluCase("channel_on_several_threads", {4, 17, 31, 37}, {17}, "channel", "NCHW",
                            SlopeOfChannel(1)));
  cases.push_back(
      PreluCase("last_channel", {2, 3, 5, 7}, {7}, "channel", "NHWC", SlopeOfChannel(-1)));
  cases.push_back(
      PreluCase("last_channel_of_rank_2", {6, 33}, {33}, "channel", "NHWC", SlopeOfChannel(-1)));
  // Rows of whole vectors.
  cases.push_back(
      PreluCase("channel_of_vectors", {2, 3, 4, 8}, {3}, "channel", "NCHW", SlopeOfChannel(1)));
  cases.push_back(
      PreluCase("last_channel_of_vectors", {5, 8}, {8}, "channel", "NHWC", SlopeOfChannel(-1)));
  cases.push_back(
      PreluCase("channel_of_no_samples", {0, 3, 5}, {3}, "channel", "NCHW", SlopeOfChannel(1)));
  cases.push_back(PreluCase("element", {4, 3, 5, 2}, {1, 3, 5, 2}, "element", "", SlopeOfElement));
  cases.push_back(PreluCase("element_of_rank_1", {5}, {1}, "element", "", SlopeOfElement));
  cases.push_back(
      PreluCase("element_of_one_sample", {1, 19}, {1, 19}, "element", "", SlopeOfElement));
  cases.push_back(
      PreluCase("element_of_no_samples", {0, 3}, {1, 3}, "element", "", SlopeOfElement));
  OpCase large =
      PreluCase("4M_elements", {64, 64, 32, 32}, {64}, "channel", "NCHW", SlopeOfChannel(1));
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
