// check_finite_and_unscale: Out = X * (1 / Scale) for each tensor of a list, and FoundInfinite =
// whether an element of an Out is infinite or NaN. Source: Fluid's check_finite_and_unscale.
//
// The loss of a float16 program is multiplied by Scale, so that small gradients don't vanish; this
// op takes the factor out of the gradients. An element of X that isn't finite gives one of Out, so
// FoundInfinite tells of both. (So it is in Fluid's kernel for CUDA. Its CPU kernel looks at X
// alone, and multiplies by 0 from the first tensor on that has such an element.)
//
// The product is computed in float32 for two-byte numbers, and in the dtype of X for others. If
// Scale is a power of two, it is exact, except where Out is subnormal or overflows. Of selected
// rows, the values in use count as they are, without adding up repeated rows.
#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/half_arrays.h"
#include "operators/common/input_checks.h"
#include "operators/common/selected_rows.h"
#include "operators/optimizer/kernels/scaled_gradients.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  SKIFF_ENFORCE(context.InputCount("X") > 0, kInvalidArgument,
                "check_finite_and_unscale: no X, expected at least one");
  InferScaledGradients(context);
  CheckOneElement(context, "Scale", {DType::kFloat32, DType::kFloat64});
  context.SetOutput("FoundInfinite", Shape{1}, DType::kBool);
}

// Returns whether no element is infinite or NaN: whether none has an exponent of all ones. Without
// a branch, the compiler vectorizes the loop.
template <typename Bits, typename T>
bool AreFinite(const T* x, int64_t count, Bits exponent) {
  Bits found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Bits masked = std::bit_cast<Bits>(x[i]) & exponent;
    found = static_cast<Bits>(found | (masked == exponent));
  }
  return found == 0;
}

// Set the elements [begin, end) of `out` to those of `x`, multiplied by 1 / scale. Return whether
// these are finite.
template <typename T, typename Bits>
bool Unscale(const Tensor& x, T scale, Bits exponent, int64_t begin, int64_t end, Tensor* out) {
  T* to = out->data<T>() + begin;
  ScaleArray(x.data<T>() + begin, T{1} / scale, to, end - begin);
  return AreFinite(to, end - begin, exponent);
}

bool UnscaleHalves(const Tensor& x, const HalfArrays& halves, float scale, int64_t begin,
                   int64_t end, Tensor* out) {
  alignas(64) float floats[kListBlock];
  const int64_t count = end - begin;
  auto* to = static_cast<uint16_t*>(out->raw_data()) + begin;
  halves.to_floats(static_cast<const uint16_t*>(x.raw_data()) + begin, count, floats);
  ScaleArray(floats, 1.0f / scale, floats, count);
  halves.from_floats(floats, count, to);
  return AreFinite(to, count,
                   static_cast<uint16_t>(x.dtype() == DType::kFloat16 ? 0x7c00 : 0x7f80));
}

// T: the type of Scale.
template <typename T>
class CheckFiniteAndUnscaleKernel final : public Kernel {
 public:
  explicit CheckFiniteAndUnscaleKernel(const OpContext& context)
      : gradients_(context), scale_(context, "Scale"), found_infinite_(context, "FoundInfinite") {
    for (size_t i = 0; i < context.InputCount("X"); ++i) {
      const DType dtype = context.Input("X", i).dtype;
      halves_.push_back(IsHalf(dtype) ? HalfArraysOf(dtype) : HalfArrays());
    }
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const T scale = *scale_(run);
    std::atomic<bool> is_finite{true};
    gradients_.ForEach(run,
                       [&](const Tensor& x, Tensor& out, size_t i, int64_t begin, int64_t end) {
                         if (!UnscalePart(x, halves_[i], scale, begin, end, &out)) {
                           is_finite.store(false, std::memory_order_relaxed);
                         }
                       });
    *found_infinite_(run) = !is_finite.load();
  }

 private:
  // Return whether the results are finite.
  static bool UnscalePart(const Tensor& x, const HalfArrays& halves, T scale, int64_t begin,
                          int64_t end, Tensor* out) {
    if (!x.is_selected_rows()) return UnscaleElements(x, halves, scale, begin, end, out);
    bool is_finite = true;
    const int64_t width = RowWidth(x.shape());
    while (begin < end) {
      const int64_t row = begin / width;
      const int64_t row_end = std::min(end, (row + 1) * width);
      // The values of an unused row mean nothing: they may be NaN.
      const bool is_in_use = x.rows()[static_cast<size_t>(row)] >= 0;
      if (is_in_use && !UnscaleElements(x, halves, scale, begin, row_end, out)) is_finite = false;
      begin = row_end;
    }
    return is_finite;
  }

  static bool UnscaleElements(const Tensor& x, const HalfArrays& halves, T scale, int64_t begin,
                              int64_t end, Tensor* out) {
    if (x.dtype() == DType::kFloat64) {
      const auto exponent = uint64_t{0x7ff} << 52;
      return Unscale<double>(x, static_cast<double>(scale), exponent, begin, end, out);
    }
    const auto narrow = static_cast<float>(scale);
    if (IsHalf(x.dtype())) return UnscaleHalves(x, halves, narrow, begin, end, out);
    return Unscale<float>(x, narrow, uint32_t{0x7f800000}, begin, end, out);
  }

  ScaledGradients gradients_;
  In<T> scale_;
  Out<bool> found_infinite_;
  std::vector<HalfArrays> halves_;  // by X; of two-byte ones
};

}  // namespace

void RegisterCheckFiniteAndUnscale(OpRegistry& registry) {
  registry.Add(
      {.type = "check_finite_and_unscale",
       .doc = "Out = X * (1 / Scale) for each tensor of a list, and FoundInfinite = whether an "
              "element of an Out is infinite or NaN, as it is where one of X is: the gradients of "
              "a loss that was multiplied by Scale become those of the loss. The product is "
              "computed in float32 for float16 and bfloat16, else in X's dtype. A Scale that is a "
              "power of two changes no digit, unless Out is subnormal or overflows.",
       .inputs = {{.name = "X",
                   .doc = "One tensor or more, of any shapes, each float16, bfloat16, float32 or "
                          "float64: gradients of the scaled loss. Of selected rows, the values "
                          "are unscaled and checked; repeated rows aren't added up.",
                   .duplicable = true,
                   .selected_rows = true},
                  {.name = "Scale",
                   .doc = "One element, float32 or float64: what the loss was multiplied by, a "
                          "number without a unit."}},
       .outputs = {{.name = "Out",
                    .doc = "One tensor for each X, of its shape and dtype; usually X itself.",
                    .duplicable = true,
                    .selected_rows = true},
                   {.name = "FoundInfinite",
                    .doc = "One bool, of shape [1]: whether the step must be skipped."}},
       .infer = Infer,
       .no_gradient_reason = "it is applied to gradients, and second derivatives are not provided",
       .kernel_dtype_slot = "Scale",
       .in_place = {{"X", "Out"}},
       .precision = Precision::kNone});
  const auto prepare = []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
    return std::make_unique<CheckFiniteAndUnscaleKernel<T>>(context);
  };
  registry.AddCpuKernels<float, double>("check_finite_and_unscale", prepare);
  registry.AddSelectedRowsKernels<float, double>("check_finite_and_unscale", prepare);
}

}  // namespace skiff
