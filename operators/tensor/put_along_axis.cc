// put_along_axis: Result = Input, but Value[i] is put to the element that Index[i] names
// (`assign`), added to it (`add`) or multiplied with it (`mul`, `multiply`): with `assign` for axis
// 1, Result[i, Index[i, j, k], k] = Value[i, j, k].
//
// Source: Fluid's put_along_axis, PyTorch's scatter and scatter_add. As there, Index may be shorter
// than Input along the other axes. If several indices name one element, their values count in the
// order of the positions, and with `assign` the last one remains.
//
// Gradients, with p the element that position i names:
// - assign: Input@GRAD = Result@GRAD, 0 at each p; Value@GRAD[i] = Result@GRAD[p] of the last
//   position that names p, else 0.
// - add: Input@GRAD = Result@GRAD; Value@GRAD[i] = Result@GRAD[p].
// - mul: Input@GRAD = Result@GRAD * the product of the values of the element; Value@GRAD[i] =
//   Result@GRAD[p] * Input[p] * the product of the other values of p. Nothing is divided, so zeros
//   are as good as other numbers.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/op/grad.h"
#include "operators/common/input_checks.h"
#include "operators/common/integer.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/along_axis.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/index_rows.h"
#include "operators/tensor/kernels/put_reduction.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> PreparePutAlongAxis(PrepareContext& context) {
  return MakeRowsKernel([axis = AxisOfIndex(context, "Input"), reduction = PutReductionOf(context),
                         x = In<>(context, "Input"), index = In<>(context, "Index"),
                         room = RequestRoomForIndices(context, "Index"),
                         value = In<T>(context, "Value"),
                         out = Out<T>(context, "Result")](const KernelContext& run) {
    const AlongAxis named(x.shape(run), index.shape(run), axis);
    auto* places = static_cast<int64_t*>(run.workspace(room));
    // Before anything is written: in place, an Error leaves Input as it was.
    named.Resolve(index.tensor(run), "put_along_axis", places);
    CopyBytes(x(run), out(run), out.tensor(run).byte_count());
    const T* from = value(run);
    T* to = out(run);
    const auto put = [&](const auto& join) {
      ForOwnedPlaces<T>(named.index(), [=](int64_t i) {
        T& element = to[places[i]];
        element = join(element, from[i]);
      });
    };
    switch (reduction) {
      case PutReduction::kAssign:
        return put([](T, T next) { return next; });
      case PutReduction::kAdd:
        return put([](T before, T next) { return WrappingAdd(before, next); });
      case PutReduction::kMultiply:
        return put([](T before, T next) { return WrappingMul(before, next); });
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareAssignGrad(PrepareContext& context) {
  const In<> index(context, "Index");
  const In<T> gradient(context, "Result@GRAD");
  const Out<T> dx(context, "Input@GRAD");
  const Out<T> dvalue(context, "Value@GRAD");
  const int64_t elements = context.Input("Result@GRAD").shape.element_count();
  return MakeRowsKernel([=, axis = AxisOfIndex(context, "Result@GRAD"),
                         room = RequestRoomForIndices(context, "Index"),
                         marks = dvalue.is_there() ? context.RequestWorkspace(elements)
                                                   : -1](const KernelContext& run) {
    const AlongAxis named(gradient.shape(run), index.shape(run), axis);
    auto* places = static_cast<int64_t*>(run.workspace(room));
    named.Resolve(index.tensor(run), "put_along_axis_grad", places);
    const T* from = gradient(run);
    // First, since Input@GRAD may be Result@GRAD.
    if (dvalue.is_there()) {
      TakeLastPlaces(named, places, from, static_cast<char*>(run.workspace(marks)), dvalue(run));
    }
    if (!dx.is_there()) return;
    T* to = dx(run);
    CopyBytes(from, to, dx.tensor(run).byte_count());
    ForOwnedPlaces<T>(named.index(), [=](int64_t i) { to[places[i]] = T{0}; });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareAddGrad(PrepareContext& context) {
  const In<> index(context, "Index");
  const In<T> gradient(context, "Result@GRAD");
  const Out<T> dx(context, "Input@GRAD");
  const Out<T> dvalue(context, "Value@GRAD");
  return MakeRowsKernel([=, axis = AxisOfIndex(context, "Result@GRAD"),
                         room = RequestRoomForIndices(context, "Index")](const KernelContext& run) {
    const AlongAxis named(gradient.shape(run), index.shape(run), axis);
    auto* places = static_cast<int64_t*>(run.workspace(room));
    named.Resolve(index.tensor(run), "put_along_axis_grad", places);
    if (dvalue.is_there()) {
      TakeRows(named.elements(), gradient(run), places, named.count(), sizeof(T), dvalue(run));
    }
    if (dx.is_there()) CopyBytes(gradient(run), dx(run), dx.tensor(run).byte_count());
  });
}

// The product without one value is that of the values before it and of those behind it.
template <typename T>
std::unique_ptr<Kernel> PrepareMultiplyGrad(PrepareContext& context) {
  const In<> index(context, "Index");
  const In<T> x(context, "Input");
  const In<T> value(context, "Value");
  const In<T> gradient(context, "Result@GRAD");
  const Out<T> dx(context, "Input@GRAD");
  const Out<T> dvalue(context, "Value@GRAD");
  const int64_t bytes =
      context.Input("Input").shape.element_count() * static_cast<int64_t>(sizeof(T));
  return MakeRowsKernel([=, axis = AxisOfIndex(context, "Input"),
                         room = RequestRoomForIndices(context, "Index"),
                         before_room = dvalue.is_there() ? context.RequestWorkspace(bytes) : -1,
                         behind_room = context.RequestWorkspace(bytes)](const KernelContext& run) {
    const AlongAxis named(x.shape(run), index.shape(run), axis);
    const int64_t elements = named.tensor_count();
    auto* places = static_cast<int64_t*>(run.workspace(room));
    named.Resolve(index.tensor(run), "put_along_axis_grad", places);
    auto* behind = static_cast<T*>(run.workspace(behind_room));
    const T* from = gradient(run);
    const T* factors = value(run);
    T* to = dvalue(run);
    ParallelFor(elements, 16384,
                [=](int64_t begin, int64_t end) { std::fill(behind + begin, behind + end, T{1}); });
    if (to != nullptr) {
      auto* before = static_cast<T*>(run.workspace(before_room));
      CopyBytes(x(run), before, elements * static_cast<int64_t>(sizeof(T)));
      ForOwnedPlaces<T>(named.index(), [=](int64_t i) {
        to[i] = before[places[i]];
        before[places[i]] *= factors[i];
      });
    }
    ForOwnedPlacesFromTheBack<T>(named.index(), [=](int64_t i) {
      const int64_t place = places[i];
      if (to != nullptr) to[i] = to[i] * behind[place] * from[place];
      behind[place] *= factors[i];
    });
    if (!dx.is_there()) return;
    T* to_x = dx(run);
    ParallelFor(elements, 16384, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to_x[i] = from[i] * behind[i];
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PreparePutAlongAxisGrad(PrepareContext& context) {
  switch (PutReductionOf(context)) {
    case PutReduction::kAssign:
      return PrepareAssignGrad<T>(context);
    case PutReduction::kAdd:
      return PrepareAddGrad<T>(context);
    default:
      return PrepareMultiplyGrad<T>(context);
  }
}

}  // namespace

void RegisterPutAlongAxis(OpRegistry& registry) {
  OpDef def;
  def.type = "put_along_axis";
  def.doc =
      "Result = Input, with Value put to the elements that Index names along the axis, added to "
      "them or multiplied with them.";
  def.inputs = {{.name = "Input", .doc = "Any tensor."},
                {.name = "Index",
                 .doc = "int32 or int64, of Input's rank; no dim but that of the axis is larger "
                        "than Input's.",
                 .checks_data = true},
                {.name = "Value", .doc = "Of the shape of Index and of Input's dtype."}};
  def.outputs = {{.name = "Result", .doc = "Of Input's shape."}};
  def.attrs = {{.name = "Axis",
                .type = AttrType::kInt,
                .default_value = {},
                .doc = "The axis that is indexed, not negative."},
               ChoiceAttr("Reduce", "assign", {"assign", "add", "mul", "multiply"},
                          "What becomes of an element and its values."),
               {.name = "Include_self",
                .type = AttrType::kBool,
                .default_value = true,
                .doc = "The element of Input counts, too.",
                .accepts = [](const Attribute& value) { return std::get<bool>(value); },
                .expected = "true"}};
  def.infer = [](OpContext& context) {
    CheckIndexAlongAxis(context, "Input");
    CheckInputLike(context, "Value", context.Input("Index").shape, context.Input("Input").dtype);
    context.SetOutputLike("Result", "Input");
  };
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "Input";
  def.in_place = {{"Input", "Result"}};
  // Fluid's reads Result, too.
  OpDef grad = GradientOf(&def, {"Input", "Index", "Value", ForShape("Result"), "Result@GRAD"},
                          {"Input@GRAD", "Value@GRAD"});
  grad.doc =
      "Input@GRAD = Result@GRAD, times the values of each element (mul), 0 where there are values "
      "(assign). Value@GRAD = Result@GRAD of the element, times the others (mul), 0 if a later "
      "value replaced it (assign).";
  grad.in_place = {{"Result@GRAD", "Input@GRAD"}};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "put_along_axis",
      []<typename T>(PrepareContext& context) { return PreparePutAlongAxis<T>(context); });
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "put_along_axis_grad",
      []<typename T>(PrepareContext& context) { return PreparePutAlongAxisGrad<T>(context); });
}

}  // namespace skiff
