#include "operators/tensor/kernels/take.h"

#include <utility>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/op/grad.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/index_rows.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

int AxisOf(const TakeFacts& facts, const OpContext& context) {
  const int64_t axis = context.IntAttr(facts.axis_attr);
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(facts.negative_axis || axis >= 0, kOutOfRange, context.op().type, ": ",
                facts.axis_attr, " = ", axis, " is outside [0, ", x.rank(), ") for X of shape ", x);
  return NormalizeAxis(axis, x.rank(), StrCat(context.op().type, ": ", facts.axis_attr));
}

Shape TakenShape(const TakeFacts& facts, const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const int64_t count = CountOfIndexVector(context, "Index");
  const bool drops_axis = context.Input("Index").shape.rank() == 0;
  SKIFF_ENFORCE(facts.scalar_index || !drops_axis, kInvalidArgument, context.op().type,
                ": Index is a scalar, expected shape [m] or [m, 1]");
  if (!context.Knows(facts.axis_attr)) return UnknownDims(x.rank() - (drops_axis ? 1 : 0));
  const int axis = AxisOf(facts, context);
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) out.Append(x[i]);
    if (i == axis && !drops_axis) out.Append(count);
  }
  return out;
}

std::unique_ptr<Kernel> PrepareTake(const TakeFacts& facts, PrepareContext& context) {
  return MakeRowsKernel([type = facts.type, axis_index = AxisOf(facts, context),
                         bytes = SizeOf(context.Input("X").dtype), x = In<>(context, "X"),
                         index = In<>(context, "Index"),
                         room = RequestRoomForIndices(context, "Index"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const AxisExtents axis = ExtentsOfAxis(x.shape(run), axis_index);
    // Before the threaded loop, whose body must not throw.
    const int64_t* indices =
        ReadIndices(index.tensor(run), axis.length, type, "Index", run.workspace(room));
    TakeRows(axis, x(run), indices, index.count(run), bytes, out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareTakeGrad(const TakeFacts& facts, PrepareContext& context) {
  return MakeRowsKernel([type = context.op().type, axis_index = AxisOf(facts, context),
                         index = In<>(context, "Index"), grad = In<T>(context, "Out@GRAD"),
                         room = RequestRoomForIndices(context, "Index"),
                         out = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    Tensor& x_grad = out.tensor(run);
    const AxisExtents axis = ExtentsOfAxis(x_grad.shape(), axis_index);
    const int64_t* indices =
        ReadIndices(index.tensor(run), axis.length, type, "Index", run.workspace(room));
    ZeroBytes(x_grad.raw_data(), x_grad.byte_count());
    AddRows(axis, grad(run), indices, index.count(run), out(run));
  });
}

OpDef TakeDef(const TakeFacts& facts) {
  OpDef def;
  def.type = facts.type;
  def.doc = facts.doc;
  def.inputs = {{.name = "X", .doc = "Of rank 1 or more."},
                {.name = "Index",
                 .doc = facts.scalar_index ? "int32 or int64, [m], [m, 1] or a scalar."
                                           : "int32 or int64, [m] or [m, 1].",
                 .checks_data = true}};
  if (facts.axis_slot) def.inputs.push_back(AttributeSlot("Axis", facts.axis_attr));
  def.outputs = {{.name = "Out", .doc = "X with m in place of the extent of the axis."}};
  def.attrs = {{.name = facts.axis_attr,
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = facts.negative_axis
                           ? "The axis of X that is indexed, negative from the back."
                           : "The axis of X that is indexed, not negative."}};
  def.infer = [facts](OpContext& context) {
    context.SetOutput("Out", TakenShape(facts, context), context.Input("X").dtype);
    SetLodLevel(context,
                /*same_rows=*/context.Knows(facts.axis_attr) && AxisOf(facts, context) != 0);
  };
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "X";
  return def;
}

}  // namespace

void AddTakeOps(OpRegistry& registry, const TakeFacts& facts) {
  OpDef def = TakeDef(facts);
  std::vector<GradientRead> reads = {ForShape("X"), "Index"};
  if (facts.axis_slot) reads.emplace_back("Axis");
  reads.emplace_back("Out@GRAD");
  OpDef grad = GradientOf(&def, std::move(reads), {"X@GRAD"});
  grad.doc =
      "X@GRAD[..., r, ...] = the sum of Out@GRAD[..., i, ...] over all i with Index[i] == r, in "
      "the order of i.";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, facts.type,
                         [facts](PrepareContext& context) { return PrepareTake(facts, context); });
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      StrCat(facts.type, "_grad"),
      [facts]<typename T>(PrepareContext& context) { return PrepareTakeGrad<T>(facts, context); });
}

}  // namespace skiff
