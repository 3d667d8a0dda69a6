#include "tests/operators/nn/interpolation_reference.h"

namespace skiff::harness {

void AddNearestInterpV2Cases(CaseList& cases) {
  AddInterpolationCases("nearest", "_interp_v2", SpecsByScale(), &cases);
}

}  // namespace skiff::harness
