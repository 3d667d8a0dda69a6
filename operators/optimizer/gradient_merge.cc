// gradient_merge: AccumulatedOut = Accumulated + Grad, or Grad where Reset is true, for each
// parameter of a list. The gradients of several small batches add up to that of a large one.
//
// Source: Fluid's GradientMergeOptimizer, which adds, and clears the sums behind the update. Here
// the first addition of a round clears them: that takes no pass over memory of its own, and a NaN
// of the last round is gone.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/tensor/dims_agree.h"
#include "operators/common/reduce.h"
#include "operators/common/selected_rows.h"
#include "operators/optimizer/list_walk_shared.h"
#include "operators/optimizer/update_arguments_shared.h"

namespace skiff {
namespace {

constexpr int64_t kGrain = 8192;
constexpr int64_t kBlock = 2048;

void Infer(OpContext& context) {
  const size_t count = context.InputCount("Accumulated");
  SKIFF_ENFORCE(count > 0 && context.InputCount("Grad") == count, kInvalidArgument,
                "gradient_merge: ", count, " Accumulated and ", context.InputCount("Grad"),
                " Grad, expected as many of both, and at least one");
  const DType dtype = context.Input("Accumulated").dtype;
  for (size_t i = 0; i < count; ++i) {
    const TensorMeta& sum = context.Input("Accumulated", i);
    const TensorMeta& grad = context.Input("Grad", i);
    SKIFF_ENFORCE(DimsAgree(grad.dense_shape().dims(), sum.shape.dims()) && grad.dtype == dtype &&
                      sum.dtype == dtype,
                  kInvalidArgument, "gradient_merge: Grad[", i, "] is ", grad.dtype, " ",
                  grad.dense_shape(), ", Accumulated[", i, "] ", sum.dtype, " ", sum.shape,
                  ", expected one shape, and ", dtype, " as Accumulated[0]");
    SKIFF_ENFORCE(count == 1 || !grad.is_selected_rows(), kInvalidArgument, "gradient_merge: Grad[",
                  i, "] is selected rows: expected a dense tensor in a list of ", count);
    SKIFF_ENFORCE(context.OutputIndex("AccumulatedOut", i) >= 0, kInvalidArgument,
                  "gradient_merge: output \"AccumulatedOut\" has no argument ", i,
                  ", expected one for each Accumulated");
    context.SetOutputLike("AccumulatedOut", "Accumulated", i);
  }
  const TensorMeta& reset = context.Input("Reset");
  SKIFF_ENFORCE(
      reset.dtype == DType::kBool && (!reset.shape.is_known() || reset.shape.element_count() == 1),
      kInvalidArgument, "gradient_merge: Reset is ", reset.dtype, " ", reset.shape,
      ", expected one bool");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  std::vector<int64_t> begins = {0};
  std::vector<int> grads;
  for (size_t i = 0; i < context.InputCount("Accumulated"); ++i) {
    begins.push_back(begins.back() + context.Input("Accumulated", i).shape.element_count());
    grads.push_back(context.InputIndex("Grad", i));
  }
  return MakeKernel([sums = PairsOf(context, "Accumulated", "AccumulatedOut"),
                     grads = std::move(grads), begins = std::move(begins),
                     reset = context.InputIndex("Reset")](const KernelContext& run) {
    const bool is_first = run.input(reset).Item<bool>();
    ForEachBlock(begins, kGrain, kBlock, [&](size_t i, int64_t begin, int64_t end) {
      const Tensor& grad = run.input(grads[i]);
      const Tensor& sum = run.input(sums[i].in);
      Tensor& out = run.output(sums[i].out);
      const T* added = grad.data<T>() + begin;
      if (is_first) {
        std::copy_n(added, end - begin, out.data<T>() + begin);
      } else {
        AddArrays(sum.data<T>() + begin, added, out.data<T>() + begin, end - begin);
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSparse(PrepareContext& context) {
  return MakeKernel([sum = context.InputIndex("Accumulated"), grad = context.InputIndex("Grad"),
                     out = context.OutputIndex("AccumulatedOut"),
                     reset = context.InputIndex("Reset")](const KernelContext& run) {
    Tensor& result = run.output(out);
    T* to = result.data<T>();
    if (run.input(reset).Item<bool>()) {
      std::fill_n(to, result.element_count(), T{0});
    } else if (result.raw_data() != run.input(sum).raw_data()) {
      CopyTensor(run.input(sum), &result);
    }
    AddSelectedRows(run.input(grad), to);
  });
}

}  // namespace

void RegisterGradientMerge(OpRegistry& registry) {
  registry.Add(
      {.type = "gradient_merge",
       .doc = "AccumulatedOut = Accumulated + Grad, or Grad where Reset is true, for each "
              "parameter of a list.",
       .inputs = {{.name = "Accumulated",
                   .doc = "The sums so far, float32 or float64.",
                   .duplicable = true},
                  {.name = "Grad",
                   .doc = "The gradients to add, each of its sum's shape; of one "
                          "parameter selected rows, too.",
                   .duplicable = true,
                   .selected_rows = true},
                  {.name = "Reset", .doc = "One bool: whether a round begins."}},
       .outputs = {{.name = "AccumulatedOut",
                    .doc = "The sums; usually Accumulated itself.",
                    .duplicable = true}},
       .infer = Infer,
       .no_gradient_reason = "an update of parameters is no part of what is differentiated",
       .kernel_dtype_slot = "Accumulated",
       .in_place = {{"Accumulated", "AccumulatedOut"}},
       .update = UpdateRule{.lists = {"Accumulated", "Grad"}}});
  registry.AddCpuKernels<float, double>(
      "gradient_merge", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddSelectedRowsKernels<float, double>(
      "gradient_merge",
      []<typename T>(PrepareContext& context) { return PrepareSparse<T>(context); });
}

}  // namespace skiff
