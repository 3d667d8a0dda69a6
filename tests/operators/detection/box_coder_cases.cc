#include <cmath>
#include <string>

#include "tests/operators/detection/test_boxes.h"

namespace skiff::harness {
namespace {

struct BoxCoderSpec {
  bool encodes = true;
  bool normalized = true;
  int32_t axis = 0;
  std::vector<float> variance = {};
};

std::array<double, 4> BoxCoderVariances(const BoxCoderSpec& spec, const Arrays& inputs,
                                        size_t prior) {
  if (inputs.contains("PriorBoxVar")) return BoxesOf(inputs.at("PriorBoxVar")[0])[prior];
  if (spec.variance.empty()) return {1, 1, 1, 1};
  return {spec.variance[0], spec.variance[1], spec.variance[2], spec.variance[3]};
}

// One axis of an encoded box.
std::array<double, 2> EncodedRange(double begin, double end, double prior_begin, double prior_end,
                                   double offset) {
  const double prior_extent = prior_end - prior_begin + offset;
  const double center = (begin + end) / 2;
  const double prior_center = prior_begin + prior_extent / 2;
  return {(center - prior_center) / prior_extent,
          std::log(std::abs((end - begin + offset) / prior_extent))};
}

// One axis of a decoded box.
std::array<double, 2> DecodedRange(double distance, double log_extent, double prior_begin,
                                   double prior_end, double offset) {
  const double prior_extent = prior_end - prior_begin + offset;
  const double center = distance * prior_extent + prior_begin + prior_extent / 2;
  const double extent = std::exp(log_extent) * prior_extent;
  return {center - extent / 2, center + extent / 2 - offset};
}

Arrays BoxCoderReference(const BoxCoderSpec& spec, const Arrays& inputs) {
  const Array& target = inputs.at("TargetBox")[0];
  const auto priors = BoxesOf(inputs.at("PriorBox")[0]);
  const auto targets = BoxesOf(target);
  const double offset = spec.normalized ? 0 : 1;
  const auto rows = static_cast<size_t>(target.shape[0]);
  const size_t columns = spec.encodes ? priors.size() : static_cast<size_t>(target.shape[1]);
  std::vector<double> out;
  for (size_t i = 0; i < rows * columns; ++i) {
    const size_t prior = spec.axis == 0 ? i % columns : i / columns;
    const auto v = BoxCoderVariances(spec, inputs, prior);
    const auto& p = priors[prior];
    const auto& t = targets[spec.encodes ? i / columns : i];
    std::array<std::array<double, 2>, 2> axes;
    for (size_t k = 0; k < 2; ++k) {
      axes[k] = spec.encodes
                    ? EncodedRange(t[k], t[k + 2], p[k], p[k + 2], offset)
                    : DecodedRange(v[k] * t[k], v[k + 2] * t[k + 2], p[k], p[k + 2], offset);
    }
    for (size_t k = 0; k < 4; ++k) out.push_back(axes[k % 2][k / 2] / (spec.encodes ? v[k] : 1));
  }
  Array boxes = Values({static_cast<int64_t>(rows), static_cast<int64_t>(columns), 4}, out);
  boxes.lod = target.lod;
  return {{"OutputBox", {std::move(boxes)}}};
}

OpCase BoxCoderCase(const std::string& name, Arrays inputs, const BoxCoderSpec& spec) {
  return {.name = name,
          .type = "box_coder",
          .inputs = std::move(inputs),
          .attrs = {{"code_type",
                     std::string(spec.encodes ? "encode_center_size" : "decode_center_size")},
                    {"box_normalized", spec.normalized},
                    {"axis", spec.axis},
                    {"variance", spec.variance}},
          .reference = [=](const Arrays& inputs) { return BoxCoderReference(spec, inputs); },
          .outputs = {{"OutputBox", 1}}};
}

void AddEncodeCases(CaseList& cases) {
  const Array priors = RandomBoxes({5, 4}, 1);
  const Array targets = RandomBoxes({3, 4}, 2);
  const Array variances = Uniform({5, 4}, 3, 0.1, 0.5);
  cases.push_back(BoxCoderCase("encode", {{"PriorBox", {priors}}, {"TargetBox", {targets}}}, {}));
  cases.push_back(BoxCoderCase(
      "encode_variances",
      {{"PriorBox", {priors}}, {"PriorBoxVar", {variances}}, {"TargetBox", {targets}}}, {}));
  cases.push_back(BoxCoderCase("encode_variance",
                               {{"PriorBox", {priors}}, {"TargetBox", {targets}}},
                               {.variance = {0.1f, 0.2f, 0.3f, 0.4f}}));
  cases.push_back(BoxCoderCase(
      "encode_pixels",
      {{"PriorBox", {RandomBoxes({4, 4}, 4, 60)}}, {"TargetBox", {RandomBoxes({3, 4}, 5, 60)}}},
      {.normalized = false}));
  cases.push_back(BoxCoderCase(
      "encode_ragged", {{"PriorBox", {priors}}, {"TargetBox", {Ragged(targets, {1, 0, 2})}}}, {}));
  cases.push_back(BoxCoderCase(
      "encode_none", {{"PriorBox", {priors}}, {"TargetBox", {RandomBoxes({0, 4}, 6)}}}, {}));
  // Without extents, and with corners exchanged.
  cases.push_back(BoxCoderCase("encode_without_extents",
                               {{"PriorBox", {Values({2, 4}, {1, 1, 3, 4, 3, 4, 1, 1})}},
                                {"TargetBox", {Values({2, 4}, {1, 1, 1, 1, 3, 3, 1, 2})}}},
                               {}));
  // 1e-4 of the greatest is lost where a width is the difference of almost equal numbers.
  for (OpCase& each : cases) each.float32_tolerance = 1e-4;
}

void AddDecodeCases(CaseList& cases) {
  const Array priors = RandomBoxes({5, 4}, 11);
  const Array codes = Uniform({3, 5, 4}, 12);
  const Array variances = Uniform({5, 4}, 13, 0.1, 0.5);
  cases.push_back(
      BoxCoderCase("decode", {{"PriorBox", {priors}}, {"TargetBox", {codes}}}, {.encodes = false}));
  cases.push_back(
      BoxCoderCase("decode_variances",
                   {{"PriorBox", {priors}}, {"PriorBoxVar", {variances}}, {"TargetBox", {codes}}},
                   {.encodes = false}));
  cases.push_back(BoxCoderCase("decode_rows",
                               {{"PriorBox", {priors}},
                                {"PriorBoxVar", {variances}},
                                {"TargetBox", {Uniform({5, 2, 4}, 14)}}},
                               {.encodes = false, .axis = 1}));
  cases.push_back(
      BoxCoderCase("decode_variance_of_pixels",
                   {{"PriorBox", {RandomBoxes({5, 4}, 15, 60)}}, {"TargetBox", {codes}}},
                   {.encodes = false, .normalized = false, .variance = {0.1f, 0.2f, 0.3f, 0.4f}}));
  cases.push_back(BoxCoderCase("decode_ragged",
                               {{"PriorBox", {priors}}, {"TargetBox", {Ragged(codes, {2, 0, 1})}}},
                               {.encodes = false}));
  cases.push_back(BoxCoderCase("decode_none",
                               {{"PriorBox", {priors}}, {"TargetBox", {Uniform({0, 5, 4}, 16)}}},
                               {.encodes = false}));
  cases.push_back(BoxCoderCase(
      "decode_many",
      {{"PriorBox", {RandomBoxes({333, 4}, 17)}}, {"TargetBox", {Uniform({8, 333, 4}, 18)}}},
      {.encodes = false}));
  cases.push_back(BoxCoderCase(
      "decode_benchmark",
      {{"PriorBox", {RandomBoxes({8732, 4}, 19)}}, {"TargetBox", {Uniform({8, 8732, 4}, 20)}}},
      {.encodes = false}));
  cases.back().benchmark_only = true;
}

}  // namespace

void AddBoxCoderCases(CaseList& cases) {
  CaseList encoding;
  AddEncodeCases(encoding);
  for (OpCase& each : encoding) cases.push_back(std::move(each));
  AddDecodeCases(cases);
}

}  // namespace skiff::harness
