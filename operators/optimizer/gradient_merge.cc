// gradient_merge: AccumulatedOut = Accumulated + Grad, or Grad in the first run of a round, for
// each parameter of a list. With `mean`, the last run multiplies by 1 / the number of runs. So the
// gradients of several small batches add up to that of a large one, which an update reads in place.
//
// Source: Fluid's GradientMergeOptimizer, which adds, divides with one op per parameter, and clears
// the sums after the update. Here the first run of a round overwrites them: that takes no separate
// pass over memory, and a NaN of the last round disappears. For selected rows, see
// gradient_merge_rows. Sums of float32 also accept gradients of float16 and bfloat16.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "framework/tensor/dims_agree.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/half_arrays.h"
#include "operators/optimizer/kernels/gradient_merge_definition.h"
#include "operators/optimizer/kernels/list_walk.h"
#include "operators/optimizer/kernels/update_arguments.h"
#include "operators/optimizer/kernels/update_op.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const size_t count = context.InputCount("Accumulated");
  SKIFF_ENFORCE(count > 0 && context.InputCount("Grad") == count, kInvalidArgument,
                "gradient_merge: ", count, " Accumulated and ", context.InputCount("Grad"),
                " Grad, expected as many of both, and at least one");
  const DType dtype = context.Input("Accumulated").dtype;
  const bool by_halves = dtype == DType::kFloat32 && IsHalf(context.Input("Grad").dtype);
  const DType grad_dtype = by_halves ? context.Input("Grad").dtype : dtype;
  for (size_t i = 0; i < count; ++i) {
    const TensorMeta& sum = context.Input("Accumulated", i);
    const TensorMeta& grad = context.Input("Grad", i);
    SKIFF_ENFORCE(DimsAgree(grad.shape.dims(), sum.shape.dims()) && grad.dtype == grad_dtype &&
                      sum.dtype == dtype,
                  kInvalidArgument, "gradient_merge: Grad[", i, "] is ", grad.dtype, " ",
                  grad.shape, ", Accumulated[", i, "] ", sum.dtype, " ", sum.shape,
                  ", expected one shape, ", dtype, " as Accumulated[0]",
                  by_halves ? StrCat(", and ", grad_dtype, " as Grad[0]") : "");
    SKIFF_ENFORCE(context.OutputIndex("AccumulatedOut", i) >= 0, kInvalidArgument,
                  "gradient_merge: output \"AccumulatedOut\" has no argument ", i,
                  ", expected one for each Accumulated");
    context.SetOutputLike("AccumulatedOut", "Accumulated", i);
  }
  CheckRound(context);
}

template <typename T>
class GradientMerge final : public Kernel {
 public:
  explicit GradientMerge(const OpContext& context)
      : sums_(PairsOf(context, "Accumulated", "AccumulatedOut")),
        grads_(InputIndices(context, "Grad")),
        round_(context) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      begins_.push_back(begins_.back() + context.Input("Accumulated", i).shape.element_count());
    }
    const DType dtype = context.Input("Grad").dtype;
    if (IsHalf(dtype)) halves_ = HalfArraysOf(dtype);
  }

  void Run(const KernelContext& run) override {
    const RoundPosition position = round_.Position(run);
    ForEachBlock(begins_.back(), [&](int64_t begin, int64_t end) {
      ForEachArray(begins_, begin, end, [&](size_t i, int64_t first, int64_t last) {
        Merge(run, position, i, first, last);
      });
    });
  }

 private:
  // Updates elements [begin, end) of sum i, at most a block of them, while they are in the first
  // cache: so scaling and conversion cost no traffic.
  void Merge(const KernelContext& run, const RoundPosition& position, size_t i, int64_t begin,
             int64_t end) const {
    alignas(64) T widened[kListBlock];
    const T* added = Added(run, i, begin, end, widened);
    T* out = run.output(sums_[i].out).template data<T>() + begin;
    if (position.is_first) {
      std::copy_n(added, end - begin, out);
    } else {
      AddArrays(run.input(sums_[i].in).template data<T>() + begin, added, out, end - begin);
    }
    if (position.factor != 1) {
      ScaleArray(out, static_cast<T>(position.factor), out, end - begin);
    }
  }

  // Returns the gradient of elements [begin, end): in place, or converted to floats in `widened` if
  // it has two bytes.
  const T* Added(const KernelContext& run, size_t i, int64_t begin, int64_t end, T* widened) const {
    const Tensor& grad = run.input(grads_[i]);
    if (halves_.to_floats == nullptr) return grad.data<T>() + begin;
    if constexpr (std::is_same_v<T, float>) {
      const auto* values = static_cast<const uint16_t*>(grad.raw_data());
      halves_.to_floats(values + begin, end - begin, widened);
    }
    return widened;
  }

  std::vector<UpdateArguments::Pair> sums_;
  std::vector<int> grads_;
  std::vector<int64_t> begins_ = {0};  // the elements before each sum, and at the end all of them
  HalfArrays halves_;                  // of two-byte gradients
  Round round_;
};

}  // namespace

void RegisterGradientMerge(OpRegistry& registry) {
  std::vector<AttrDef> attrs = RoundAttrs();
  attrs.push_back(IsFlatAttr());
  registry.Add(
      {.type = "gradient_merge",
       .doc = "AccumulatedOut = Accumulated + Grad, or Grad if Count is 1, for each parameter "
              "of a list; with `mean`, times 1 / Count once Count is `steps`.",
       .inputs = {{.name = "Accumulated",
                   .doc = "The sums so far, float32 or float64.",
                   .duplicable = true},
                  {.name = "Grad",
                   .doc = "The gradients to add, each of its sum's shape, and of its dtype, or "
                          "all float16 or bfloat16.",
                   .duplicable = true},
                  RoundCountSlot()},
       .outputs = {{.name = "AccumulatedOut",
                    .doc = "The sums; usually Accumulated itself.",
                    .duplicable = true}},
       .attrs = std::move(attrs),
       .infer = Infer,
       .no_gradient_reason = "updates of parameters are not differentiated",
       .kernel_dtype_slot = "Accumulated",
       .in_place = {{"Accumulated", "AccumulatedOut"}},
       .update = UpdateRule{.lists = {"Accumulated", "Grad"}},
       .accumulation =
           AccumulationRule{
               .gradient = "Grad", .count = "Count", .steps = "steps", .sum = "AccumulatedOut"},
       // The sums are float32 while gradients may be half: Infer knows.
       .precision = Precision::kNone});
  registry.AddCpuKernels<float, double>(
      "gradient_merge", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<GradientMerge<T>>(context);
      });
}

}  // namespace skiff
