// masked_select: Y = the elements of X where Mask is true, in order.
//
// Source: Fluid's masked_select. Gradient: X@GRAD = Y@GRAD at these elements, 0 elsewhere.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/common/input_checks.h"
#include "operators/tensor/kernels/selected_positions.h"

namespace skiff {
namespace {

struct IsTrueIn {
  const bool* mask;
  bool operator()(int64_t i) const { return mask[i]; }
};

using TruePositions = SelectedPositions<IsTrueIn>;

int RequestCounts(PrepareContext& context) {
  const int64_t count = context.Input("Mask").shape.element_count();
  return context.RequestWorkspace(TruePositions::WorkspaceBytes(count));
}

TruePositions PositionsOf(const Tensor& mask, void* workspace) {
  return {mask.element_count(), IsTrueIn{mask.data<bool>()}, workspace};
}

template <typename T>
std::unique_ptr<Kernel> PrepareMaskedSelect(PrepareContext& context) {
  return MakeRowsKernel([counts = RequestCounts(context), x = In<T>(context, "X"),
                         mask = In<>(context, "Mask"),
                         y = Out<>(context, "Y")](const KernelContext& run) {
    const TruePositions positions = PositionsOf(mask.tensor(run), run.workspace(counts));
    Tensor selected(Shape{positions.size()}, kDTypeOf<T>);
    const T* from = x(run);
    T* to = selected.data<T>();
    positions.ForEach([=](int64_t position, int64_t number) { to[number] = from[position]; });
    y.tensor(run) = std::move(selected);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareMaskedSelectGrad(PrepareContext& context) {
  return MakeRowsKernel([counts = RequestCounts(context), mask = In<>(context, "Mask"),
                         y_grad = In<T>(context, "Y@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    const TruePositions positions = PositionsOf(mask.tensor(run), run.workspace(counts));
    SKIFF_ENFORCE(y_grad.count(run) == positions.size(), kInvalidArgument,
                  "masked_select_grad: Y@GRAD has ", y_grad.count(run),
                  " elements, expected one for each that Mask selects, ", positions.size());
    const T* from = y_grad(run);
    T* to = x_grad(run);
    std::fill_n(to, x_grad.count(run), T{0});
    positions.ForEach([=](int64_t position, int64_t number) { to[position] = from[number]; });
  });
}

}  // namespace

void RegisterMaskedSelect(OpRegistry& registry) {
  OpDef def;
  def.type = "masked_select";
  def.doc = "Y = the elements of X where Mask is true, in order.";
  def.inputs = {{.name = "X", .doc = "Any tensor."}, {.name = "Mask", .doc = "Bool, like X."}};
  def.outputs = {{.name = "Y", .doc = "A vector."}};
  def.infer = [](OpContext& context) {
    const TensorMeta& x = context.Input("X");
    CheckInputLike(context, "Mask", x.shape, DType::kBool);
    context.SetOutput("Y", {-1}, x.dtype);
  };
  def.precision = Precision::kFollow;
  def.data_dependent_shape = true;
  OpDef grad = GradientOf(&def, {ForShape("X"), Checked("Mask"), "Y@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Y@GRAD where Mask is true, else 0.";
  // Nothing ties the elements of Y@GRAD to the elements that masked_select found.
  grad.data_checked_by = {};
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "masked_select",
      []<typename T>(PrepareContext& context) { return PrepareMaskedSelect<T>(context); });
  registry.Add(std::move(grad));
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      "masked_select_grad",
      []<typename T>(PrepareContext& context) { return PrepareMaskedSelectGrad<T>(context); });
}

}  // namespace skiff
