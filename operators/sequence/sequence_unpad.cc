// sequence_unpad: the first Length[i] rows of X[i], as sequences.
//
//   row t of sequence i of Out = X[i, t], t < Length[i]
//
// The rows of Out depend on data. Source: Fluid's sequence_unpad.
//
// Gradient: X@GRAD[i, t] = row t of sequence i of Out@GRAD, 0 beyond its end. Fluid's gradient op
// takes the lengths from the LoD of Out@GRAD; ours from Length, which is always there, and from
// that LoD only in programs that Fluid wrote.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/sequence_lengths.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// Checks X and returns the shape of Out.
Shape UnpaddedShape(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(x.rank() >= 2 && x[0] != 0, kInvalidArgument, context.op().type, ": X has shape ",
                x, ", expected [sequences, length, …] with at least one sequence");
  Shape out = {-1};
  for (int axis = 2; axis < x.rank(); ++axis) out.Append(x[axis]);
  if (x.rank() == 2) out.Append(1);
  return out;
}

void CheckLengthShape(const OpContext& context) {
  CheckInputLike(context, "Length", {context.Input("X").shape[0]}, DType::kInt64);
}

void Infer(OpContext& context) {
  context.SetOutput("Out", UnpaddedShape(context), context.Input("X").dtype);
  CheckLengthShape(context);
  DeclareLoDLevel(context, "Out", 1);
}

void InferGrad(OpContext& context) {
  CheckInputLike(context, "Out@GRAD", UnpaddedShape(context), context.Input("X").dtype);
  if (context.HasInput("Length")) {
    CheckLengthShape(context);
  } else {
    MergeDims(context.Input("X").shape[0], OneLevelSequenceCount(context, "Out@GRAD"),
              context.op().type + ": dim 0 of X and the sequences of Out@GRAD");
  }
  context.SetOutputLike("X@GRAD", "X");
}

// The elements of one row of X[i].
int64_t WidthOf(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  return x.element_count(2, x.rank());
}

void CheckLengths(const std::string& op, std::span<const int64_t> lengths, int64_t padded) {
  for (size_t i = 0; i < lengths.size(); ++i)
    CheckPaddedLength(op, static_cast<int64_t>(i), lengths[i], padded);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([op = context.op().type, shape = context.Output("Out").shape,
                         width = WidthOf(context), padded = context.Input("X").shape[1],
                         x = In<T>(context, "X"), length = In<>(context, "Length"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const std::span<const int64_t> lengths = length.tensor(run).values<int64_t>();
    CheckLengths(op, lengths, padded);
    Tensor sequences = MakeRagged(shape, kDTypeOf<T>, lengths);
    const T* from = x(run);
    T* to = sequences.data<T>();
    const auto count = static_cast<int64_t>(lengths.size());
    const int64_t grain = SequenceGrain(count, sequences.element_count());
    ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
      ForEachSequence(lengths, begin, end, [&](int64_t i, const RowRange& rows) {
        std::copy_n(from + i * padded * width, rows.count() * width, to + rows.begin * width);
      });
    });
    out.tensor(run) = std::move(sequences);
  });
}

// Copies `rows` of the gradient to those of sequence i of X, and zeros behind them.
template <typename T>
void PadGradient(const T* gradient, const RowRange& rows, int64_t i, int64_t padded, int64_t width,
                 T* x_gradient) {
  T* rest = std::copy_n(gradient + rows.begin * width, rows.count() * width,
                        x_gradient + i * padded * width);
  std::fill_n(rest, (padded - rows.count()) * width, T{0});
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([op = context.op().type, width = WidthOf(context),
                         padded = context.Input("X").shape[1], length = In<>(context, "Length"),
                         out_grad = In<>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    const Tensor& gradient = out_grad.tensor(run);
    const T* from = gradient.data<T>();
    T* to = x_grad(run);
    const int64_t count = x_grad.shape(run)[0];
    const int64_t grain = SequenceGrain(count, x_grad.count(run));
    if (!length.is_there()) {
      const SequenceRows sequences(gradient);
      for (int64_t i = 0; i < count; ++i) CheckPaddedLength(op, i, sequences[i].count(), padded);
      ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) PadGradient(from, sequences[i], i, padded, width, to);
      });
      return;
    }
    const std::span<const int64_t> lengths = length.tensor(run).values<int64_t>();
    CheckLengths(op, lengths, padded);
    CheckGradientRows(op, gradient, lengths);
    ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
      ForEachSequence(lengths, begin, end, [&](int64_t i, const RowRange& rows) {
        PadGradient(from, rows, i, padded, width, to);
      });
    });
  });
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef grad = GradientOf(forward, {ForShape("X"), Optional("Length"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "Out@GRAD with zeros behind each sequence, in X's shape.";
  // If Length is absent, Out@GRAD is ragged.
  grad.infer = InferGrad;
  // Nothing ties the rows of Out@GRAD to the lengths that sequence_unpad had.
  grad.data_checked_by = {};
  registry.Add(std::move(grad));
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      "sequence_unpad_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace

void RegisterSequenceUnpad(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_unpad";
  def.doc = "The first Length[i] rows of each X[i], as sequences.";
  def.inputs = {{.name = "X", .doc = "[sequences, length, …]: padded sequences."},
                {.name = "Length",
                 .doc = "[sequences], int64: the rows of each without padding.",
                 .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "Ragged, [rows, …]; [rows, 1] if X is a matrix."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.data_dependent_shape = true;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "sequence_unpad", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
