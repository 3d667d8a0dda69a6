#include "tests/operators/detection/multiclass_nms_cases.h"

namespace skiff::harness {

void AddMulticlassNmsCases(CaseList& cases) { AddNmsCases("multiclass_nms", cases); }

}  // namespace skiff::harness
