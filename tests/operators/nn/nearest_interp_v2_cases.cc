#include "tests/operators/nn/interpolation_reference.h"

namespace skiff::harness {
namespace {

std::vector<double> Nearest(const InterpolationSpec& spec, double ratio, int64_t place,
                            int64_t inputs) {
  // Fluid adds 0.5 in float64 to a float32 position. Half way between two pixels, rounding errors
  // decide which one it takes.
  const float position = static_cast<float>(ratio) * static_cast<float>(place);
  const double rounded = std::floor(static_cast<double>(position) + (spec.align_corners ? 0.5 : 0));
  std::vector<double> weights(static_cast<size_t>(inputs), 0.0);
  weights[std::min(static_cast<size_t>(rounded), weights.size() - 1)] = 1;
  return weights;
}

}  // namespace

void AddNearestInterpV2Cases(CaseList& cases) {
  for (const InterpolationSpec& spec : InterpolationSpecs()) {
    cases.push_back(InterpolationCase("nearest", spec, Nearest));
  }
}

}  // namespace skiff::harness
