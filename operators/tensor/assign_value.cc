// assign_value: Out = the values of an attribute, in the given shape.
//
// Source: Fluid's assign_value; the attribute that holds the values depends on `dtype`. Those of
// half are rounded from fp32_values.
#include <algorithm>
#include <type_traits>

#include "framework/base/error.h"
#include "operators/common/half.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

template <typename T>
std::vector<T> ValuesOf(const OpContext& context) {
  if constexpr (std::is_same_v<T, float>) {
    return context.Attr<std::vector<float>>("fp32_values");
  } else if constexpr (std::is_same_v<T, double>) {
    return context.Attr<std::vector<double>>("fp64_values");
  } else if constexpr (kIsHalf<T>) {
    const auto& values = context.Attr<std::vector<float>>("fp32_values");
    return std::vector<T>(values.begin(), values.end());
  } else {
    // IntsAttr reads ints and longs alike, so bool, int32 and int64 take one path.
    const std::vector<int64_t> values =
        context.IntsAttr(std::is_same_v<T, bool>      ? "bool_values"
                         : std::is_same_v<T, int32_t> ? "int32_values"
                                                      : "int64_values");
    std::vector<T> converted(values.size());
    for (size_t i = 0; i < values.size(); ++i) converted[i] = static_cast<T>(values[i]);
    return converted;
  }
}

void InferAssignValue(OpContext& context) {
  const std::vector<int64_t> dims = context.IntsAttr("shape");
  const Shape shape{std::span<const int64_t>(dims)};
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  VisitDType<bool, int32_t, int64_t, Float16, BFloat16, float, double>(
      dtype, "assign_value", [&]<typename T>(T) {
        const int64_t found = static_cast<int64_t>(ValuesOf<T>(context).size());
        SKIFF_ENFORCE(found == shape.element_count(), kInvalidArgument, "assign_value: ", found,
                      " values of ", dtype, " given, expected ", shape.element_count(),
                      " for shape ", shape);
      });
  context.SetOutput("Out", shape, dtype);
}

}  // namespace

void RegisterAssignValue(OpRegistry& registry) {
  OpDef def;
  def.type = "assign_value";
  def.doc = "Out = the values of the attribute that belongs to `dtype`, row-major in `shape`.";
  def.outputs = {{.name = "Out", .doc = "A tensor of `shape` and `dtype`."}};
  const auto values = [](StaticText name, AttrType type, Attribute empty) {
    return AttrDef{.name = name,
                   .type = type,
                   .default_value = std::move(empty),
                   .doc = "The values of an Out of that dtype."};
  };
  def.attrs = {{.name = "shape", .type = AttrType::kInts, .doc = "The shape of Out."},
               {.name = "dtype",
                .type = AttrType::kInt,
                .doc = "bool, int32, int64 or a float, as Fluid's enumerator."},
               values("bool_values", AttrType::kInts, std::vector<int32_t>{}),
               values("fp32_values", AttrType::kFloats, std::vector<float>{}),
               values("fp64_values", AttrType::kDoubles, std::vector<double>{}),
               values("int32_values", AttrType::kInts, std::vector<int32_t>{}),
               values("int64_values", AttrType::kLongs, std::vector<int64_t>{})};
  def.infer = InferAssignValue;
  // Out has the dtype of the attribute.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is a constant";
  def.kernel_dtype_slot = "Out";
  registry.Add(std::move(def));
  registry.AddCpuKernels<bool, int32_t, int64_t, Float16, BFloat16, float, double>(
      "assign_value", []<typename T>(PrepareContext& context) {
        const Out<T> out(context, "Out");
        return MakeKernel([out, values = ValuesOf<T>(context)](const KernelContext& run) {
          std::copy(values.begin(), values.end(), out(run));
        });
      });
}

}  // namespace skiff
