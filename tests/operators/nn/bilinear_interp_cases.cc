#include "tests/operators/nn/interpolation_reference.h"

namespace skiff::harness {

void AddBilinearInterpCases(CaseList& cases) {
  AddInterpolationCases("bilinear", "_interp", SpecsByOneScale(), &cases);
}

}  // namespace skiff::harness
