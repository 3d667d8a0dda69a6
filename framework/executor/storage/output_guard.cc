#include "framework/executor/storage/output_guard.h"

#include <algorithm>
#include <stdexcept>

#include "framework/base/error.h"
#include "framework/executor/storage/guarded_memory.h"
#include "framework/executor/storage/storage.h"
#include "framework/tensor/tensor_array.h"

namespace skiff {
namespace {

// Lets the tensor end at a guard.
void MoveToGuard(const Plan& plan, Tensor* tensor) {
  const int64_t alignment = AlignmentOf(plan, tensor->dtype(), tensor->layout());
  Tensor moved(tensor->shape(), tensor->dtype(),
               GuardedBlock(tensor->byte_count(), alignment, MemoryTag::kArena), 0,
               tensor->layout());
  CopyTensor(*tensor, &moved);
  moved.ShareLoD(tensor->shared_lod());
  *tensor = std::move(moved);
}

// Skips elements that have been moved before.
void MoveElements(const Plan& plan, TensorArray* array) {
  for (int64_t i = 0; i < array->size(); ++i) {
    if (array->Find(i) == nullptr) continue;
    Tensor& element = array->At(i);
    const bool is_whole = element.buffer()->bytes() == element.byte_count();
    const auto* end = static_cast<const char*>(element.raw_data()) + element.byte_count();
    if (is_whole && EndsWithPage(end)) continue;
    MoveToGuard(plan, &element);
  }
}

}  // namespace

template <typename... Texts>
void OutputGuard::Expect(bool condition, const PlanValue& value, const Texts&... texts) const {
  if (condition) return;
  throw std::logic_error(
      StrCat(DescribeOp(*instruction_.op, instruction_.block, instruction_.position),
             ": the kernel has left \"", value.name, "\" ", texts...));
}

void OutputGuard::BeforeRun() {
  before_.clear();
  for (const Tensor* output : outputs_) {
    Before& before = before_.emplace_back();
    if (output == nullptr || output->array() != nullptr) continue;
    before = {.data = output->raw_data(), .shape = output->shape(), .lod = output->shared_lod()};
  }
}

void OutputGuard::AfterRun() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Tensor* output = outputs_[i];
    if (output == nullptr) continue;
    const PlanValue& value = plan_[instruction_.outputs[i]];
    if (output->array() != nullptr) {
      MoveElements(plan_, output->array());
    } else if (value.storage == Storage::kKernelOwned) {
      CheckMade(value, *output);
      MoveToGuard(plan_, output);
    } else {
      Check(i);
    }
  }
}

void OutputGuard::CheckMade(const PlanValue& value, const Tensor& tensor) const {
  Expect(tensor.has_data(), value, "without data");
  Expect(tensor.dtype() == value.meta.dtype, value, "as ", tensor.dtype(), ", planned as ",
         value.meta.dtype);
  bool fits = tensor.shape().rank() == value.meta.shape.rank();
  for (int i = 0; fits && i < tensor.shape().rank(); ++i) {
    fits = value.meta.shape[i] < 0 || tensor.shape()[i] == value.meta.shape[i];
  }
  Expect(fits, value, "with the shape ", tensor.shape(), ", planned as ", value.meta.shape);
  CheckLoDOf(value, tensor);
}

void OutputGuard::Check(size_t output) const {
  const PlanValue& value = plan_[instruction_.outputs[output]];
  const Tensor& tensor = *outputs_[output];
  const auto& [data, shape, lod] = before_[output];
  Expect(tensor.dtype() == value.meta.dtype && tensor.layout() == value.meta.layout, value, "as ",
         tensor.dtype(), " ", tensor.layout(), ", planned as ", value.meta.dtype, " ",
         value.meta.layout);
  Expect(tensor.raw_data() == data, value, "in other memory than the plan's");
  if (!instruction_.sets_rows) {
    Expect(tensor.shape() == shape, value, "with the shape ", tensor.shape(), ", it had ", shape);
    // A rank table has the LoD of the value that it ranks.
    if (value.meta.shape_lod != nullptr) return;
    const bool knows_lod = value.meta.lod_level == 0 || value.meta.lod != nullptr;
    Expect(!knows_lod || tensor.shared_lod() == lod, value, "with another LoD");
    return CheckLoDOf(value, tensor);
  }
  Shape rows_of_plan = tensor.shape();
  if (rows_of_plan.rank() > 0 && value.meta.shape.rank() > 0) rows_of_plan[0] = value.meta.shape[0];
  const bool has_room = tensor.shape().rank() == 0 || tensor.shape()[0] <= value.meta.shape[0];
  Expect(rows_of_plan == value.meta.shape && has_room, value, "with the shape ", tensor.shape(),
         ", planned as ", value.meta.shape);
  CheckLoDOf(value, tensor);
}

void OutputGuard::CheckLoDOf(const PlanValue& value, const Tensor& tensor) const {
  // Once all beams have ended, beam_search leaves levels without sequences, which no feed may have.
  const auto has_none = [](const auto& offsets) { return offsets.size() == 1 && offsets[0] == 0; };
  if (tensor.lod().empty() || std::ranges::any_of(tensor.lod(), has_none)) return;
  Expect(tensor.shape().rank() > 0, value, "with a LoD, but without rows");
  try {
    CheckLoD(tensor.lod(), tensor.shape()[0]);
  } catch (const Error& error) {
    Expect(false, value, "with a wrong LoD: ", error.what());
  }
}

}  // namespace skiff
