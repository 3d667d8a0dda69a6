#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct RotarySpec {
  std::string name;
  Shape x;
  int32_t heads = 1;
  float base = 10000.0f;
  bool interleaved = false;
  std::vector<int64_t> positions = {};  // of all tokens; empty: none
  double float64_tolerance = 0;
  bool benchmark_only = false;
};

// As products of complex numbers: pair i of a head, first + j second, times e^(j · angle).
Arrays RotaryReference(const RotarySpec& spec, const Arrays& inputs) {
  Array out = inputs.at("X")[0];
  const int64_t width = spec.x[2] / spec.heads;
  for (int64_t row = 0; row < spec.x[0] * spec.x[1]; ++row) {
    const int64_t position =
        spec.positions.empty() ? row % spec.x[1] : spec.positions[static_cast<size_t>(row)];
    for (int64_t head = 0; head < spec.heads; ++head) {
      for (int64_t i = 0; i < width / 2; ++i) {
        const int64_t begin = row * spec.x[2] + head * width;
        const int64_t first = begin + (spec.interleaved ? 2 * i : i);
        const int64_t second = begin + (spec.interleaved ? 2 * i + 1 : i + width / 2);
        double& a = out.values[static_cast<size_t>(first)];
        double& b = out.values[static_cast<size_t>(second)];
        const double length = std::hypot(a, b);
        const double angle = std::atan2(b, a) + static_cast<double>(position) *
                                                    std::pow(static_cast<double>(spec.base),
                                                             -2.0 * static_cast<double>(i) /
                                                                 static_cast<double>(width));
        a = length * std::cos(angle);
        b = length * std::sin(angle);
      }
    }
  }
  return {{"Out", {out}}};
}

OpCase RotaryCase(const RotarySpec& spec) {
  OpCase op_case{
      .name = spec.name,
      .type = "rotary_embedding",
      .inputs = {{"X", {Uniform(spec.x, 1)}}},
      .attrs = {{"num_heads", spec.heads}, {"base", spec.base}, {"interleaved", spec.interleaved}},
      .reference = [spec](const Arrays& inputs) { return RotaryReference(spec, inputs); },
      .outputs = {{"Out", 1}},
      .gradients = {"X"},
      .accepted_wrong_inputs = {{"Out@GRAD", "other dtype",
                                 "nothing but the gradient tells the dtype of X"}},
      .float64_tolerance = spec.float64_tolerance,
      .benchmark_only = spec.benchmark_only};
  if (!spec.positions.empty()) {
    op_case.inputs["Positions"] = {Values(
        {spec.x[0], spec.x[1]}, {spec.positions.begin(), spec.positions.end()}, DType::kInt64)};
  }
  return op_case;
}

// Positions of `sequences` of `tokens` each, which begin `step` apart.
std::vector<int64_t> PositionsFrom(int64_t sequences, int64_t tokens, int64_t first, int64_t step) {
  std::vector<int64_t> positions;
  for (int64_t n = 0; n < sequences; ++n) {
    for (int64_t i = 0; i < tokens; ++i) positions.push_back(first + n * step + i);
  }
  return positions;
}

}  // namespace

void AddRotaryEmbeddingCases(CaseList& cases) {
  std::vector<RotarySpec> specs;
  for (const bool interleaved : {false, true}) {
    const std::string suffix = interleaved ? "_interleaved" : "_halves";
    for (RotarySpec spec : std::vector<RotarySpec>{
             {.name = "one_head", .x = {2, 3, 8}},
             {.name = "heads", .x = {2, 5, 36}, .heads = 6},
             {.name = "pairs", .x = {2, 3, 6}, .heads = 3},
             {.name = "positions", .x = {2, 3, 8}, .heads = 2, .positions = {7, 8, 9, 0, 1, 2}},
             // Some in both sequences, some negative.
             {.name = "shared_positions",
             .x = {3, 5, 12},
             .positions = {-3, -2, -1, 0, 1, 0, 1, 2, 3, 4, 0, 0, 0, 1, 2}},
             // Far apart: more positions between them than there are tokens.
             {.name = "scattered_positions",
             .x = {3, 2, 20},
             .heads = 2,
             .positions = {5000, 5001, 17, 18, 17, 300}},
             // Across multiples of 16, in an order of their own.
             {.name = "falling_positions",
             .x = {1, 20, 40},
             .positions = {35, 34, 33, 32, 31, 30, 29, 17, 16, 15,
                           14, 3,  2,  1,  0,  5,  16, 48, 47, 20}},
             {.name = "positions_for_several_threads",
             .x = {3, 150, 96},
             .heads = 3,
             .positions = PositionsFrom(3, 150, 5, 70)},
             {.name = "scattered_positions_for_several_threads",
             .x = {3, 150, 96},
             .heads = 3,
             .positions = PositionsFrom(3, 150, 11, 700)},
             {.name = "base", .x = {1, 4, 16}, .base = 100.0f},
             {.name = "several_threads", .x = {3, 150, 96}, .heads = 3}}) {
      spec.name += suffix;
      spec.interleaved = interleaved;
      specs.push_back(spec);
    }
  }
  specs.push_back({.name = "far_positions", .x = {1, 3, 8}, .positions = {100000, -3, 131071}});
  // The last digit of base^(-2i / d), times the position: found 2e-12.
  specs.back().float64_tolerance = 1e-10;
  specs.push_back({.name = "no_tokens", .x = {2, 0, 8}});
  specs.push_back({.name = "no_columns", .x = {2, 3, 0}});
  const RotarySpec layer = {
      .name = "llama_layer", .x = {4, 1024, 2048}, .heads = 32, .benchmark_only = true};
  specs.push_back(layer);
  specs.push_back(layer);
  specs.back().name = "gpt_j_layer";
  specs.back().interleaved = true;
  specs.push_back(layer);
  specs.back().name = "llama_layer_at_positions";
  specs.back().positions = PositionsFrom(4, 1024, 0, 100);
  for (const RotarySpec& spec : specs) cases.push_back(RotaryCase(spec));
}

}  // namespace skiff::harness
