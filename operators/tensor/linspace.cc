// linspace: Num equidistant numbers from Start to Stop, both included.
//
// Source: Fluid's linspace. Start and Stop are cast to `dtype` first. The first half is computed
// from Start and the second from Stop, in float64, so both ends are exact and rounding is
// symmetric. Integers are truncated towards 0. A single number is Start.
#include <limits>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/tensor/kernels/fill.h"

namespace skiff {
namespace {

template <typename Visitor>
void VisitLinspaceDType(DType dtype, const Visitor& visitor) {
  VisitDType<int32_t, int64_t, float, double>(dtype, "linspace: dtype", visitor);
}

DType DTypeOf(const OpContext& context) {
  return DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
}

void InferLinspace(OpContext& context) {
  for (const char* slot : {"Start", "Stop", "Num"}) CheckOneElement(context, slot);
  const DType num = context.Input("Num").dtype;
  SKIFF_ENFORCE(num == DType::kInt32 || num == DType::kInt64, kInvalidArgument, "linspace: Num is ",
                num, ", expected int32 or int64");
  VisitLinspaceDType(DTypeOf(context), [](auto) {});
  context.SetOutput("Out", {-1}, DTypeOf(context));
}

// The element of a tensor of one element, cast to T.
template <typename T>
T ValueOf(const Tensor& tensor, const char* what) {
  const FillValue value = FillValueFromTensor(tensor, what);
  CheckFillValue(value, kDTypeOf<T>, what);
  return value.is_integer ? static_cast<T>(value.integer) : static_cast<T>(value.real);
}

// Truncates a number that is between two values of T. The largest int64 has no float64; the one
// that it rounds to is 2^63, which the cast can't take.
template <typename T>
T CutTo(double value) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (value >= 0x1.0p63) return std::numeric_limits<int64_t>::max();
  }
  return static_cast<T>(value);
}

template <typename T>
Tensor Linspace(T start, T stop, int64_t count) {
  Tensor values(Shape{count}, kDTypeOf<T>);
  T* data = values.data<T>();
  const double from = static_cast<double>(start);
  const double to = static_cast<double>(stop);
  const double step = count > 1 ? (to - from) / static_cast<double>(count - 1) : 0.0;
  ParallelFor(count, 16384, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool from_start = i < count / 2 || count == 1;
      data[i] = CutTo<T>(from_start ? from + step * static_cast<double>(i)
                                    : to - step * static_cast<double>(count - 1 - i));
    }
  });
  // Not through float64, which would round large int64 values.
  data[0] = start;
  if (count > 1) data[count - 1] = stop;
  return values;
}

std::unique_ptr<Kernel> PrepareLinspace(PrepareContext& context) {
  return MakeKernel([dtype = DTypeOf(context), start = In<>(context, "Start"),
                     stop = In<>(context, "Stop"), num = In<>(context, "Num"),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    const int64_t count = ValueOf<int64_t>(num.tensor(run), "linspace: Num");
    SKIFF_ENFORCE(count > 0, kOutOfRange, "linspace: Num = ", count,
                  ", expected a positive number");
    VisitLinspaceDType(dtype, [&]<typename T>(T) {
      out.tensor(run) = Linspace(ValueOf<T>(start.tensor(run), "linspace: Start"),
                                 ValueOf<T>(stop.tensor(run), "linspace: Stop"), count);
    });
  });
}

}  // namespace

void RegisterLinspace(OpRegistry& registry) {
  OpDef def;
  def.type = "linspace";
  def.doc = "Num equidistant numbers from Start to Stop, both included.";
  def.inputs = {
      {.name = "Start", .doc = "One element: the first number.", .checks_data = true},
      {.name = "Stop", .doc = "One element: the last number.", .checks_data = true},
      {.name = "Num", .doc = "One int32 or int64: how many, 1 or more.", .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "[Num]."}};
  def.attrs = {{.name = "dtype",
                .type = AttrType::kInt,
                .doc = "The element type of Out, as Fluid's enumerator: float or integer."}};
  def.infer = InferLinspace;
  // Out has the dtype of the attribute.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "Fluid's linspace has none";
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64}) {
    registry.AddKernel("linspace",
                       KernelDef{.dtype = dtype, .prepare = PrepareLinspace, .accepts = {}});
  }
}

}  // namespace skiff
