// cast: Out = X in another dtype. Source: Fluid's cast. Floats are truncated to integers; a value
// out of range becomes the nearest integer, and NaN becomes 0. Anything but 0 becomes true. float16
// and bfloat16 convert through float32.
//
// The gradient is a cast back.
#include <type_traits>
#include <utility>

#include "framework/op/grad.h"
#include "operators/common/half.h"
#include "operators/common/half_arrays.h"
#include "operators/common/integer.h"
#include "operators/common/selected_rows.h"
#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

template <typename From, typename To>
To Convert(From value) {
  if constexpr (kIsHalf<From>) {
    return Convert<float, To>(static_cast<float>(value));
  } else if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From>) {
    return FromFloat<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void ConvertArray(const From* x, To* out, int64_t count) {
  if constexpr (std::is_same_v<From, float> && kIsHalf<To>) {
    // The vector loops give the same bits as converting the numbers one by one.
    HalfArraysOf(kDTypeOf<To>).from_floats(x, count, reinterpret_cast<uint16_t*>(out));
  } else if constexpr (kIsHalf<From> && std::is_same_v<To, float>) {
    HalfArraysOf(kDTypeOf<From>).to_floats(reinterpret_cast<const uint16_t*>(x), count, out);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = Convert<From, To>(x[i]);
  }
}

template <typename From, typename To>
std::unique_ptr<Kernel> PrepareCast(PrepareContext& context) {
  const In<From> x(context, "X");
  const Out<To> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    const From* from = x(run);
    To* to = out(run);
    ParallelFor(StorageElements(x.tensor(run)), kVectorGrain, [&](int64_t begin, int64_t end) {
      ConvertArray(from + begin, to + begin, end - begin);
    });
  });
}

template <typename From>
void AddCastKernel(OpRegistry& registry) {
  const auto prepare = [](PrepareContext& context) {
    std::unique_ptr<Kernel> kernel;
    VisitDType<bool, int8_t, uint8_t, int16_t, int32_t, int64_t, Float16, BFloat16, float, double>(
        context.Output("Out").dtype, "cast",
        [&]<typename To>(To) { kernel = PrepareCast<From, To>(context); });
    return kernel;
  };
  AddElementwiseKernel<From>(registry, "cast", {"X", "Out"}, prepare);
  if constexpr (std::is_floating_point_v<From> || kIsHalf<From>) {
    AddValuesKernel<From>(registry, "cast", prepare);
  }
}

std::vector<Op> CastGradient(const GradContext& context) {
  const Op& forward = context.forward();
  Op back("cast");
  back.attrs = forward.attrs;
  back.SetInput("X", context.OutputGrad("Out")).SetOutput("Out", context.InputGrad("X"));
  back.SetAttr("in_dtype", forward.Attr<int32_t>("out_dtype"));
  back.SetAttr("out_dtype", forward.Attr<int32_t>("in_dtype"));
  return {std::move(back)};
}

}  // namespace

void RegisterCast(OpRegistry& registry) {
  const auto is_dtype = [](const Attribute& value) { return IsDType(std::get<int32_t>(value)); };
  OpDef def;
  def.type = "cast";
  def.doc = "Out = X as out_dtype.";
  def.inputs = {{.name = "X", .doc = "Any tensor.", .selected_rows = true}};
  def.outputs = {{.name = "Out",
                  .doc = "The same values as out_dtype, of X's shape; selected rows if X is.",
                  .selected_rows = true}};
  def.attrs = {{.name = "out_dtype",
                .type = AttrType::kInt,
                .default_value = {},
                .doc = "The dtype of Out, as Fluid numbers them.",
                .accepts = is_dtype,
                .expected = "the number of a dtype"},
               {.name = "in_dtype",
                .type = AttrType::kInt,
                .default_value = {},
                .doc = "The dtype of X.",
                .accepts = is_dtype,
                .expected = "the number of a dtype"}};
  def.infer = [](OpContext& context) {
    const TensorMeta& x = context.Input("X");
    const DType in = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("in_dtype")));
    SKIFF_ENFORCE(x.dtype == in, kInvalidArgument, "cast: X is ", x.dtype,
                  ", expected in_dtype = ", in);
    const DType out = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("out_dtype")));
    SKIFF_ENFORCE(!x.is_selected_rows() || (IsFloat(in) && IsFloat(out)), kInvalidArgument,
                  "cast: X is selected rows of ", in, " to cast to ", out, ", expected floats");
    context.SetOutputLike("Out", "X");
    const int index = context.OutputIndex("Out");
    if (index >= 0) context.mutable_outputs()[static_cast<size_t>(index)].dtype = out;
  };
  def.precision = Precision::kNone;
  def.grad = CastGradient;
  def.layout_rule = LayoutRule::kSame;
  def.layout_slots = {"X", "Out"};
  def.zero_preserving = true;
  def.elementwise = true;
  registry.Add(std::move(def));
  AddCastKernel<bool>(registry);
  AddCastKernel<int8_t>(registry);
  AddCastKernel<uint8_t>(registry);
  AddCastKernel<int16_t>(registry);
  AddCastKernel<int32_t>(registry);
  AddCastKernel<int64_t>(registry);
  AddCastKernel<Float16>(registry);
  AddCastKernel<BFloat16>(registry);
  AddCastKernel<float>(registry);
  AddCastKernel<double>(registry);
}

}  // namespace skiff
