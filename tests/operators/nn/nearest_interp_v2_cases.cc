#include "tests/operators/nn/interpolation_reference.h"

namespace skiff::harness {
namespace {

std::vector<double> Nearest(const InterpolationSpec& spec, double ratio, int64_t place,
                            int64_t inputs) {
  const double position = ratio * static_cast<double>(place);
  // Away from the rounding errors of the ratio.
  const double rounded = std::floor(position + (spec.align_corners ? 0.5 : 0) + 1e-9);
  std::vector<double> weights(static_cast<size_t>(inputs), 0.0);
  weights[std::min(static_cast<size_t>(rounded), weights.size() - 1)] = 1;
  return weights;
}

}  // namespace

void AddNearestInterpV2Cases(CaseList& cases) {
  for (const InterpolationSpec& spec : InterpolationSpecs()) {
    cases.push_back(InterpolationCase("nearest_interp_v2", spec, Nearest));
  }
}

}  // namespace skiff::harness
