#include "tests/operators/detection/multiclass_nms_cases.h"

namespace skiff::harness {

void AddMulticlassNms2Cases(CaseList& cases) { AddNmsCases("multiclass_nms2", cases); }

}  // namespace skiff::harness
