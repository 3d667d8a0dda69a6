#include "tests/operators/nn/interpolation_reference.h"

namespace skiff::harness {
namespace {

// The weight of a pixel is 1 less its distance, or 0 from a distance of 1 on.
std::vector<double> Blend(const InterpolationSpec& spec, double ratio, int64_t place,
                          int64_t inputs) {
  double position = ratio * static_cast<double>(place);
  const bool by_centers = !spec.align_corners && spec.align_mode == 0;
  if (by_centers) position = ratio * (static_cast<double>(place) + 0.5) - 0.5;
  position = std::clamp(position, 0.0, static_cast<double>(inputs - 1));
  std::vector<double> weights;
  for (int64_t i = 0; i < inputs; ++i) {
    weights.push_back(std::max(0.0, 1 - std::abs(position - static_cast<double>(i))));
  }
  return weights;
}

}  // namespace

void AddBilinearInterpV2Cases(CaseList& cases) {
  for (const InterpolationSpec& spec : InterpolationSpecs()) {
    cases.push_back(InterpolationCase("bilinear", spec, Blend));
  }
}

}  // namespace skiff::harness
