#include "tests/operators/detection/multiclass_nms_cases.h"

namespace skiff::harness {
namespace {

Arrays CountedNmsInputs(const std::vector<double>& counts, DType dtype) {
  Arrays inputs = RaggedNmsInputs(12, 33);
  inputs.at("BBoxes")[0].lod.clear();
  inputs["RoisNum"] = {Values({std::ssize(counts)}, counts, dtype)};
  return inputs;
}

}  // namespace

void AddMulticlassNms3Cases(CaseList& cases) {
  AddNmsCases("multiclass_nms3", cases);
  const MulticlassNmsSpec spec = {.type = "multiclass_nms3", .background_label = -1};
  cases.push_back(MulticlassNmsCase("counts", CountedNmsInputs({5, 0, 7}, DType::kInt32), spec));
  cases.push_back(MulticlassNmsCase("long_counts", CountedNmsInputs({12}, DType::kInt64), spec));
  cases.push_back(MulticlassNmsCase("no_images", NmsInputs(0, 4, 35), spec));
}

}  // namespace skiff::harness
