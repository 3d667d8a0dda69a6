#include "operators/common/input_checks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/tensor/dims_agree.h"

namespace skiff {

void CheckInputLike(const OpContext& context, std::string_view slot, const Shape& expected,
                    DType dtype) {
  const TensorMeta& found = context.Input(slot);
  const Shape shape = found.dense_shape();
  SKIFF_ENFORCE(DimsAgree(shape.dims(), expected.dims()) && found.dtype == dtype, kInvalidArgument,
                context.op().type, ": ", slot, " is ", found.dtype, " ", shape, ", expected ",
                dtype, " ", expected);
}

void CheckOneElement(const OpContext& context, std::string_view slot) {
  if (!context.HasInput(slot)) return;
  const Shape& shape = context.Input(slot).shape;
  SKIFF_ENFORCE(!shape.is_known() || shape.element_count() == 1, kInvalidArgument,
                context.op().type, ": ", slot, " has shape ", shape, ", expected one element");
}

void CheckOneElement(const OpContext& context, std::string_view slot,
                     std::initializer_list<DType> dtypes) {
  if (!context.HasInput(slot)) return;
  CheckOneElement(context, slot);
  const DType found = context.Input(slot).dtype;
  if (std::ranges::count(dtypes, found) > 0) return;
  std::vector<std::string> expected;
  for (const DType dtype : dtypes) expected.push_back(StrCat(dtype));
  Throw(ErrorCode::kInvalidArgument, context.op().type, ": ", slot, " is ", found, ", expected ",
        Join(expected, " or "));
}

}  // namespace skiff
