// set_value: Out = Input, but with a value at Input[…, start:end:step, …] along each of `axes`, as
// x[1:3, ::-2] = value assigns in Python.
//
// Source: PaddlePaddle's set_value, whose bounds beyond Input aren't those of strided_slice
// (SelectionRule). The value, ValueTensor or `values` in `shape`, broadcasts to the elements that
// are set, without the axes of `decrease_axes`, along which these must be 1, and with a dim of 1
// before each of `none_axes`.
//
// Gradients: Input@GRAD is Out@GRAD, but 0 at these elements. ValueTensor@GRAD is Out@GRAD there,
// summed over the copies of each element.
#include "framework/base/error.h"
#include "operators/tensor/kernels/assigned_region.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

void InferSetValue(OpContext& context) {
  const TensorMeta& input = context.Input("Input");
  const AssignedRegion region(context, input.shape);
  if (context.HasInput("ValueTensor")) {
    const DType dtype = context.Input("ValueTensor").dtype;
    SKIFF_ENFORCE(dtype == input.dtype, kInvalidArgument, context.op().type, ": ValueTensor is ",
                  dtype, ", expected ", input.dtype, " as Input");
  } else {
    BytesOfValues(context, input.dtype);
  }
  context.SetOutputLike("Out", "Input");
}

void InferSetValueGrad(OpContext& context) {
  const TensorMeta& gradient = context.Input("Out@GRAD");
  const AssignedRegion region(context, gradient.shape);
  context.SetOutputLike("Input@GRAD", "Out@GRAD");
  if (!context.HasInput("ValueTensor")) return;
  const TensorMeta& value = context.Input("ValueTensor");
  SKIFF_ENFORCE(value.dtype == gradient.dtype, kInvalidArgument, context.op().type,
                ": ValueTensor is ", value.dtype, ", expected ", gradient.dtype, " as Out@GRAD");
  context.SetOutputLike("ValueTensor@GRAD", "ValueTensor");
}

class RegionSums {
 public:
  RegionSums(const PrepareContext&, const Shape& shape, const AxisFlags& is_summed)
      : reduction_(shape, is_summed) {}

  template <typename T>
  void Run(const KernelContext&, const T* from, T* to) const {
    reduction_.Sum(from, to);
  }

 private:
  AxisReduction reduction_;
};

std::unique_ptr<Kernel> PrepareSetValue(PrepareContext& context) {
  const RegionAssignment assignment(context);
  if (context.HasInput("ValueTensor")) {
    return MakeKernel([assignment, value = In<>(context, "ValueTensor")](const KernelContext& run) {
      assignment.Run(run, value(run));
    });
  }
  return MakeKernel([assignment, values = BytesOfValues(context, context.Input("Input").dtype)](
                        const KernelContext& run) { assignment.Run(run, values.data()); });
}

std::vector<AttrDef> SetValueAttrs() {
  const auto longs = [](StaticText name, StaticText doc) {
    return AttrDef{.name = name,
                   .type = AttrType::kLongs,
                   .default_value = std::vector<int64_t>{},
                   .doc = doc};
  };
  return {{.name = "axes", .type = AttrType::kLongs, .doc = "The axes to slice."},
          longs("starts", "The first index along each of `axes`, negative from the back."),
          longs("ends", "The index that ends the walk along each of `axes`, not included."),
          longs("steps", "The step along each of `axes`; negative walks down."),
          longs("decrease_axes", "Axes along which one element is set, and that a value lacks."),
          longs("none_axes", "Axes before which a value has a dim of 1."),
          {.name = "values",
           .type = AttrType::kDoubles,
           .default_value = std::vector<double>{},
           .doc = "The value if there is no ValueTensor. A list of scalars in PaddlePaddle."},
          longs("shape", "The shape of `values`."),
          {.name = "dtype",
           .type = AttrType::kInt,
           .default_value = static_cast<int32_t>(DType::kFloat32),
           .doc = "PaddlePaddle's note of the dtype; nothing depends on it."}};
}

}  // namespace

void RegisterSetValue(OpRegistry& registry) {
  OpDef def;
  def.type = "set_value";
  def.doc = "Out = Input, but with a value at Input[…, start:end:step, …] along each of `axes`.";
  def.inputs = {{.name = "Input", .doc = "Any tensor."},
                {.name = "ValueTensor",
                 .doc = "The value, of Input's dtype; it broadcasts to the elements that are set.",
                 .dispensable = true},
                AttributeListSlot("StartsTensorList", "starts"),
                AttributeListSlot("EndsTensorList", "ends"),
                AttributeListSlot("StepsTensorList", "steps")};
  def.outputs = {{.name = "Out", .doc = "Input with the value."}};
  def.attrs = SetValueAttrs();
  def.infer = InferSetValue;
  def.precision = Precision::kFollow;
  def.in_place = {{"Input", "Out"}};
  OpDef grad = GradientOf(&def,
                          {ForShape("ValueTensor"), "StartsTensorList", "EndsTensorList",
                           "StepsTensorList", "Out@GRAD"},
                          {"Input@GRAD", "ValueTensor@GRAD"});
  grad.doc =
      "Input@GRAD = Out@GRAD, but 0 at the elements that were set; ValueTensor@GRAD = Out@GRAD "
      "there, summed over the copies of each element.";
  grad.infer = InferSetValueGrad;
  grad.in_place = {{"Out@GRAD", "Input@GRAD"}};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "set_value", PrepareSetValue);
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "set_value_grad", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<RegionGradients<T, RegionSums>>(context);
      });
}

}  // namespace skiff
