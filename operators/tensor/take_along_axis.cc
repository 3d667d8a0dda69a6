// take_along_axis: Result has the shape of Index. At each position it is the element of Input at
// the coordinates of the position, but along the axis at the index there:
// Result[i, j, k] = Input[i, Index[i, j, k], k] for axis 1.
//
// Source: Fluid's take_along_axis, PyTorch's gather. As there, Index may be shorter than Input
// along the other axes. Gradient: each element of Input@GRAD is the sum of Result@GRAD at the
// positions that name it, in their order.
#include <utility>

#include "framework/op/grad.h"
#include "operators/common/integer.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/along_axis.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/index_rows.h"

namespace skiff {
namespace {

std::unique_ptr<Kernel> PrepareTakeAlongAxis(PrepareContext& context) {
  return MakeRowsKernel([axis = AxisOfIndex(context, "Input"),
                         bytes = SizeOf(context.Input("Input").dtype), x = In<>(context, "Input"),
                         index = In<>(context, "Index"),
                         room = RequestRoomForIndices(context, "Index"),
                         out = Out<>(context, "Result")](const KernelContext& run) {
    const AlongAxis named(x.shape(run), index.shape(run), axis);
    auto* places = static_cast<int64_t*>(run.workspace(room));
    // Before the threaded loop, whose body must not throw.
    named.Resolve(index.tensor(run), "take_along_axis", places);
    TakeRows(named.elements(), x(run), places, named.count(), bytes, out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareTakeAlongAxisGrad(PrepareContext& context) {
  return MakeRowsKernel([axis = AxisOfIndex(context, "Input"), index = In<>(context, "Index"),
                         room = RequestRoomForIndices(context, "Index"),
                         gradient = In<T>(context, "Result@GRAD"),
                         out = Out<T>(context, "Input@GRAD")](const KernelContext& run) {
    Tensor& x_grad = out.tensor(run);
    const AlongAxis named(x_grad.shape(), index.shape(run), axis);
    auto* places = static_cast<int64_t*>(run.workspace(room));
    named.Resolve(index.tensor(run), "take_along_axis_grad", places);
    ZeroBytes(x_grad.raw_data(), x_grad.byte_count());
    ForOwnedPlaces<T>(named.index(), [=, from = gradient(run), to = out(run)](int64_t i) {
      T& sum = to[places[i]];
      sum = WrappingAdd(sum, from[i]);
    });
  });
}

}  // namespace

void RegisterTakeAlongAxis(OpRegistry& registry) {
  OpDef def;
  def.type = "take_along_axis";
  def.doc =
      "Result = the elements of Input at the coordinates of each position, but along the axis at "
      "the index there.";
  def.inputs = {{.name = "Input", .doc = "Any tensor."},
                {.name = "Index",
                 .doc = "int32 or int64, of Input's rank; no dim but that of the axis is larger "
                        "than Input's.",
                 .checks_data = true}};
  def.outputs = {{.name = "Result", .doc = "Of the shape of Index."}};
  def.attrs = {{.name = "Axis",
                .type = AttrType::kInt,
                .default_value = {},
                .doc = "The axis that is indexed, negative from the back."}};
  def.infer = [](OpContext& context) {
    CheckIndexAlongAxis(context, "Input");
    // For its LoD.
    context.SetOutputLike("Result", "Index");
    context.SetOutput("Result", context.Input("Index").shape, context.Input("Input").dtype);
  };
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "Input";
  OpDef grad = GradientOf(&def, {ForShape("Input"), "Index", "Result@GRAD"}, {"Input@GRAD"});
  grad.doc = "Each element of Input@GRAD = the sum of Result@GRAD where Index names it.";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "take_along_axis", PrepareTakeAlongAxis);
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "take_along_axis_grad",
      []<typename T>(PrepareContext& context) { return PrepareTakeAlongAxisGrad<T>(context); });
}

}  // namespace skiff
