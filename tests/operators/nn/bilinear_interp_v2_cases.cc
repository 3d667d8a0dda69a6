#include "tests/operators/nn/interpolation_reference.h"

namespace skiff::harness {

void AddBilinearInterpV2Cases(CaseList& cases) {
  AddInterpolationCases("bilinear", "_interp_v2", SpecsByScale(), &cases);
}

}  // namespace skiff::harness
