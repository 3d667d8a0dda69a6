// range: Out[i] = Start + i * Step, as long as that is before End.
//
// Source: Fluid's range. As there, the number of elements is computed in the dtype of the tensors.
// Elements are computed as products, whereas Fluid's CPU kernel adds Step repeatedly and
// accumulates rounding errors.
#include <cmath>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/common/input_checks.h"

namespace skiff {
namespace {

void InferRange(OpContext& context) {
  for (const char* slot : {"Start", "End", "Step"}) CheckOneElement(context, slot);
  const DType dtype = context.Input("Start").dtype;
  for (const char* slot : {"End", "Step"}) {
    SKIFF_ENFORCE(context.Input(slot).dtype == dtype, kInvalidArgument, "range: ", slot, " is ",
                  context.Input(slot).dtype, ", Start ", dtype, "; expected the same");
  }
  context.SetOutput("Out", {-1}, dtype);
}

template <typename T>
int64_t RangeLength(T start, T end, T step) {
  SKIFF_ENFORCE(step != 0, kInvalidArgument, "range: Step is 0");
  SKIFF_ENFORCE(start == end || (start < end) == (step > 0), kInvalidArgument,
                "range: Step = ", step, " leads away from Start = ", start, " to End = ", end);
  if constexpr (std::is_integral_v<T>) {
    // Unsigned, since the distance of two numbers may exceed the largest signed one.
    const auto distance = [](T from, T to) {
      return from < to ? static_cast<uint64_t>(to) - static_cast<uint64_t>(from)
                       : static_cast<uint64_t>(from) - static_cast<uint64_t>(to);
    };
    const uint64_t stride = distance(0, step);
    const uint64_t length = distance(start, end) / stride + (distance(start, end) % stride != 0);
    return static_cast<int64_t>(length);
  } else {
    const T length = std::ceil(std::abs((end - start) / step));
    SKIFF_ENFORCE(length < static_cast<T>(0x1.0p62), kOutOfRange, "range: from ", start, " to ",
                  end, " by ", step, " there are too many elements");
    return static_cast<int64_t>(length);
  }
}

// Returns start + i * step. Integers are multiplied unsigned, since the product may overflow
// although the sum doesn't.
template <typename T>
T ElementAt(T start, int64_t i, T step) {
  if constexpr (std::is_integral_v<T>) {
    const uint64_t sum =
        static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(step);
    return static_cast<T>(sum);
  } else {
    return start + static_cast<T>(i) * step;
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareRange(PrepareContext& context) {
  return MakeKernel([start_tensor = In<>(context, "Start"), end_tensor = In<>(context, "End"),
                     step_tensor = In<>(context, "Step"),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    const auto item = [&](const In<>& x) {
      return static_cast<WideType<T>>(x.tensor(run).Item<T>());
    };
    const auto start = item(start_tensor);
    const auto step = item(step_tensor);
    const int64_t length = RangeLength(start, item(end_tensor), step);
    Tensor values(Shape{length}, kDTypeOf<T>);
    T* data = values.data<T>();
    ParallelFor(length, 16384, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = static_cast<T>(ElementAt(start, i, step));
    });
    out.tensor(run) = values;
  });
}

}  // namespace

void RegisterRange(OpRegistry& registry) {
  OpDef def;
  def.type = "range";
  def.doc = "Out[i] = Start + i * Step, as long as that is before End.";
  def.inputs = {
      {.name = "Start", .doc = "One element: the first number.", .checks_data = true},
      {.name = "End", .doc = "One element: the bound, not included.", .checks_data = true},
      {.name = "Step", .doc = "One element, not 0.", .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "A vector, of a length that depends on the values."}};
  def.infer = InferRange;
  // Half has few integers: a range of more than 256 numbers would repeat some.
  def.precision = Precision::kHigh;
  def.no_gradient_reason = "Fluid's range has none";
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "range", []<typename T>(PrepareContext& context) { return PrepareRange<T>(context); });
}

}  // namespace skiff
