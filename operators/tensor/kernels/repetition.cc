// Along a repeated axis, Out is seen as two axes, [times, dim]. In the copy, the first one has
// stride 0 in X; in the gradient, it is an axis to sum over. So both are calls of general loops,
// StridedCopy and AxisReduction.
#include "operators/tensor/kernels/repetition.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "operators/common/cpu/reduce.h"
#include "operators/common/input_checks.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

// Returns the repetition for a shape rule; nothing if the numbers aren't known.
std::optional<Repetition> RepetitionOf(const RepeatFacts& facts, const OpContext& context) {
  if (!context.Knows(facts.attr)) return std::nullopt;
  return facts.repetition(context, context.Input("X").shape, context.IntsAttr(facts.attr));
}

Shape OutOf(const RepeatFacts& facts, const OpContext& context) {
  if (const auto repetition = RepetitionOf(facts, context)) return repetition->out;
  return UnknownDims(
      std::max<int64_t>(context.Input("X").shape.rank(), context.CountOfInts(facts.attr)));
}

// Returns the repetition that makes a tensor of the one shape out of the other. Both have elements.
Repetition RepetitionBetween(const Shape& x, const Shape& out) {
  Repetition repetition{.dims = WithLeadingOnes(x, out.rank()), .times = out, .out = out};
  for (int axis = 0; axis < out.rank(); ++axis) repetition.times[axis] /= repetition.dims[axis];
  return repetition;
}

// Axis i of Out is seen as the axes [times[i], dims[i]], of which the first has stride 0 in X.
StridedCopy RepeatCopy(const Repetition& repetition, DType dtype) {
  const int rank = repetition.dims.rank();
  const auto x_strides = RowMajorStrides(repetition.dims);
  const auto out_strides = RowMajorStrides(repetition.out);
  std::array<int64_t, StridedCopy::kMaxAxes> dims{};
  std::array<int64_t, StridedCopy::kMaxAxes> from{};
  std::array<int64_t, StridedCopy::kMaxAxes> to{};
  for (int axis = 0; axis < rank; ++axis) {
    const size_t i = 2 * static_cast<size_t>(axis);
    dims[i] = repetition.times[axis];
    dims[i + 1] = repetition.dims[axis];
    from[i + 1] = x_strides[axis];
    to[i] = out_strides[axis] * repetition.dims[axis];
    to[i + 1] = out_strides[axis];
  }
  const size_t count = 2 * static_cast<size_t>(rank);
  return StridedCopy(std::span(dims).first(count), std::span(from).first(count),
                     std::span(to).first(count), SizeOf(dtype));
}

// The axes of Out as RepeatCopy sees them, with neighbours of one kind merged.
struct FoldedAxes {
  std::vector<int64_t> dims;
  std::vector<bool> is_repeat;

  void Append(int64_t dim, bool repeat) {
    if (dim == 1) return;
    if (!dims.empty() && is_repeat.back() == repeat) {
      dims.back() = MultiplyCounts(dims.back(), dim);
    } else {
      dims.push_back(dim);
      is_repeat.push_back(repeat);
    }
  }
};

// Sums over all copies of each element. If there are more axes than a Shape can hold, it takes
// several reductions one after the other, from the outer axes.
class RepeatSum {
 public:
  RepeatSum(const Repetition& repetition, DType dtype, PrepareContext& context) {
    FoldedAxes axes;
    for (int axis = 0; axis < repetition.dims.rank(); ++axis) {
      axes.Append(repetition.times[axis], /*repeat=*/true);
      axes.Append(repetition.dims[axis], /*repeat=*/false);
    }
    while (axes.dims.size() > Shape::kMaxRank) {
      axes = Fold(axes);
      workspaces_.push_back(
          context.RequestWorkspace(ByteCount(stages_.back().output_count(), dtype)));
    }
    AddStage(axes);
  }

  template <typename T>
  void Run(const KernelContext& run, const T* copies, T* sums) const {
    for (size_t i = 0; i < stages_.size(); ++i) {
      const bool last = i + 1 == stages_.size();
      T* to = last ? sums : static_cast<T*>(run.workspace(workspaces_[i]));
      stages_[i].Sum(copies, to);
      copies = to;
    }
  }

 private:
  // Adds a stage that sums over the repeats among the first axes. Returns the remaining axes.
  FoldedAxes Fold(const FoldedAxes& axes) {
    constexpr size_t kOuter = Shape::kMaxRank - 1;
    FoldedAxes stage;
    FoldedAxes left;
    int64_t inner = 1;
    for (size_t i = 0; i < axes.dims.size(); ++i) {
      const bool outer = i < kOuter;
      if (outer) stage.Append(axes.dims[i], axes.is_repeat[i]);
      if (!outer) inner = MultiplyCounts(inner, axes.dims[i]);
      if (!outer || !axes.is_repeat[i]) left.Append(axes.dims[i], axes.is_repeat[i]);
    }
    // The axes beyond the first ones are one axis to this stage.
    stage.Append(inner, /*repeat=*/false);
    AddStage(stage);
    return left;
  }

  void AddStage(const FoldedAxes& axes) {
    AxisFlags is_reduced{};
    std::ranges::copy(axes.is_repeat, is_reduced.begin());
    stages_.emplace_back(Shape(std::span<const int64_t>(axes.dims)), is_reduced);
  }

  std::vector<AxisReduction> stages_;
  std::vector<int> workspaces_;  // of all stages but the last
};

std::unique_ptr<Kernel> PrepareRepeat(PrepareContext& context) {
  const Repetition repetition =
      RepetitionBetween(context.Input("X").shape, context.Output("Out").shape);
  return MakeKernel([copy = RepeatCopy(repetition, context.Input("X").dtype),
                     from = In<>(context, "X"),
                     to = Out<>(context, "Out")](const KernelContext& run) {
    MoverOf(run).Copy(run, copy, from(run), to(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareRepeatGrad(PrepareContext& context) {
  const Repetition repetition =
      RepetitionBetween(context.Output("X@GRAD").shape, context.Input("Out@GRAD").shape);
  return MakeKernel([sum = RepeatSum(repetition, kDTypeOf<T>, context),
                     from = In<T>(context, "Out@GRAD"), to = Out<T>(context, "X@GRAD")](
                        const KernelContext& run) { sum.Run(run, from(run), to(run)); });
}

OpDef RepeatDef(const RepeatFacts& facts) {
  OpDef def;
  def.type = facts.type;
  def.doc = facts.doc;
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  if (!facts.tensor_slot.empty()) {
    def.inputs.push_back(AttributeListSlot(facts.tensor_list_slot, facts.attr, /*for_shape=*/true));
    def.inputs.push_back(AttributeSlot(facts.tensor_slot, facts.attr, /*for_shape=*/true));
  }
  if (!facts.shape_slot.name.empty()) def.inputs.push_back(facts.shape_slot);
  def.outputs = {{.name = "Out", .doc = "X repeated."}};
  def.attrs = {{.name = facts.attr,
                .type = AttrType::kInts,
                .default_value = std::vector<int32_t>{},
                .doc = facts.attr_doc}};
  def.infer = [facts](OpContext& context) {
    const Shape& x = context.Input("X").shape;
    context.SetOutput("Out", OutOf(facts, context), context.Input("X").dtype);
    const auto repetition = RepetitionOf(facts, context);
    SetLodLevel(context, repetition && x.rank() > 0 && repetition->times.rank() == x.rank() &&
                             repetition->times[0] == 1);
  };
  def.precision = Precision::kFollow;
  return def;
}

}  // namespace

Shape WithLeadingOnes(const Shape& x, int rank) {
  Shape shape;
  for (int axis = x.rank(); axis < rank; ++axis) shape.Append(1);
  for (const int64_t dim : x) shape.Append(dim);
  return shape;
}

void AddRepeatOps(OpRegistry& registry, const RepeatFacts& facts) {
  OpDef def = RepeatDef(facts);
  std::vector<GradientRead> reads = {ForShape("X"), "Out@GRAD"};
  if (!facts.tensor_slot.empty()) {
    reads.push_back({facts.tensor_list_slot, /*shape_only=*/false});
    reads.push_back({facts.tensor_slot, /*shape_only=*/false});
  }
  OpDef grad = GradientOf(&def, std::move(reads), {"X@GRAD"});
  if (!facts.shape_slot.name.empty()) {
    grad.infer = [facts](OpContext& context) {
      const TensorMeta& x = context.Input("X");
      const std::vector<int64_t> values = context.IntsAttr(facts.attr);
      CheckInputLike(context, "Out@GRAD", facts.repetition(context, x.shape, values).out, x.dtype);
      context.SetOutputLike("X@GRAD", "X");
    };
  }
  grad.doc = "X@GRAD = the sum of Out@GRAD over all copies of an element.";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, facts.type, PrepareRepeat);
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      StrCat(facts.type, "_grad"),
      []<typename T>(PrepareContext& context) { return PrepareRepeatGrad<T>(context); });
}

}  // namespace skiff
