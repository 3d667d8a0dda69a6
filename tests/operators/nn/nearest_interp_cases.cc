#include "tests/operators/nn/interpolation_reference.h"

namespace skiff::harness {

void AddNearestInterpCases(CaseList& cases) {
  AddInterpolationCases("nearest", "_interp", SpecsByOneScale(), &cases);
}

}  // namespace skiff::harness
