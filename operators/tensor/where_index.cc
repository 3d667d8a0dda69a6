// where_index: the coordinates of the elements of Condition that aren't 0, in order.
//
//   Out[k] = the coordinates of the k-th of them
//
// A NaN isn't 0. Source: Fluid's where_index.
#include <utility>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/tensor/kernels/selected_positions.h"

namespace skiff {
namespace {

void InferWhereIndex(OpContext& context) {
  const Shape& condition = context.Input("Condition").shape;
  context.SetOutput("Out", {-1, condition.rank()}, DType::kInt64);
}

void WriteCoordinates(const Shape& shape, int64_t position, int64_t* to) {
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    to[axis] = position % shape[axis];
    position /= shape[axis];
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareWhereIndex(PrepareContext& context) {
  const auto selects_in = [](const T* data) {
    return [data](int64_t i) { return static_cast<WideType<T>>(data[i]) != 0; };
  };
  using Positions = SelectedPositions<decltype(selects_in(nullptr))>;
  const int64_t count = context.Input("Condition").shape.element_count();
  const int scratch = context.RequestWorkspace(Positions::WorkspaceBytes(count));
  return MakeRowsKernel([=, condition = In<T>(context, "Condition"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const Positions positions(condition.count(run), selects_in(condition(run)),
                              run.workspace(scratch));
    const Shape shape = condition.shape(run);
    Tensor coordinates(Shape{positions.size(), shape.rank()}, DType::kInt64);
    int64_t* to = coordinates.data<int64_t>();
    positions.ForEach([&](int64_t position, int64_t number) {
      WriteCoordinates(shape, position, to + number * shape.rank());
    });
    out.tensor(run) = std::move(coordinates);
  });
}

}  // namespace

void RegisterWhereIndex(OpRegistry& registry) {
  OpDef def;
  def.type = "where_index";
  def.doc = "The coordinates of the elements of Condition that aren't 0.";
  def.inputs = {{.name = "Condition", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "[n, the rank of Condition], int64, in ascending order."}};
  def.infer = InferWhereIndex;
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "places don't change with numbers";
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<bool, Float16, BFloat16, float, double, int32_t, int64_t>(
      "where_index",
      []<typename T>(PrepareContext& context) { return PrepareWhereIndex<T>(context); });
}

}  // namespace skiff
