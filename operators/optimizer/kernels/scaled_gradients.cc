#include "operators/optimizer/kernels/scaled_gradients.h"

#include <string>

#include "framework/base/error.h"
#include "operators/common/selected_rows.h"

namespace skiff {

void InferScaledGradients(OpContext& context) {
  const std::string& op = context.op().type;
  const size_t count = context.InputCount("X");
  SKIFF_ENFORCE(context.OutputCount("Out") == count, kInvalidArgument, op, ": output \"Out\" has ",
                context.OutputCount("Out"), " arguments, expected ", count, " as X");
  for (size_t i = 0; i < count; ++i) {
    const DType dtype = context.Input("X", i).dtype;
    SKIFF_ENFORCE(IsFloat(dtype), kInvalidArgument, op, ": X[", i, "] is ", dtype,
                  ", expected float16, bfloat16, float32 or float64");
    SKIFF_ENFORCE(context.OutputIndex("Out", i) >= 0, kInvalidArgument, op,
                  ": output \"Out\" has no argument ", i, ", expected one for each X");
    context.SetOutputLike("Out", "X", i);
  }
}

void ScaledGradients::CopyAllRowNumbers(const KernelContext& run) const {
  for (const UpdateArguments::Pair& pair : pairs_) {
    const Tensor& x = run.input(pair.in);
    if (x.is_selected_rows()) CopyRowNumbers(x, &run.output(pair.out));
  }
}

}  // namespace skiff
