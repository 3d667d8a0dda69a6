// sequence_slice: the rows Offset[i] to Offset[i] + Length[i] - 1 of each sequence i of X.
//
// The rows of Out depend on data. Source: Fluid's sequence_slice.
//
// Gradient: Out@GRAD in these rows of X@GRAD, 0 in the others.
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

void CheckArguments(const OpContext& context) {
  RowWidth(context, "X");
  const Shape expected = {OneLevelSequenceCount(context, "X"), 1};
  CheckInputLike(context, "Offset", expected, DType::kInt64);
  CheckInputLike(context, "Length", expected, DType::kInt64);
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  CheckArguments(context);
  context.SetOutput("Out", WithRows(x.shape, -1), x.dtype);
  DeclareLoDLevel(context, "Out", 1);
}

void InferGrad(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  CheckArguments(context);
  CheckInputLike(context, "Out@GRAD", WithRows(x.shape, -1), x.dtype);
  context.SetOutputLike("X@GRAD", "X");
}

// The rows of X that Out has.
class Slices {
 public:
  Slices(const std::string& op, const Tensor& x, const Tensor& offset, const Tensor& length)
      : sequences_(x), offsets_(offset.values<int64_t>()), lengths_(length.values<int64_t>()) {
    for (int64_t i = 0; i < size(); ++i) CheckSlice(op, i);
  }

  int64_t size() const { return sequences_.size(); }
  std::span<const int64_t> lengths() const { return lengths_; }
  const SequenceRows& sequences() const { return sequences_; }
  // The first row of slice i.
  int64_t RowOf(int64_t i) const { return sequences_[i].begin + offsets_[static_cast<size_t>(i)]; }

 private:
  void CheckSlice(const std::string& op, int64_t i) const {
    const int64_t offset = offsets_[static_cast<size_t>(i)];
    const int64_t length = lengths_[static_cast<size_t>(i)];
    const int64_t rows = sequences_[i].count();
    SKIFF_ENFORCE(offset >= 0 && offset <= rows && length >= 0 && length <= rows - offset,
                  kOutOfRange, op, ": Offset[", i, "] is ", offset, " and Length[", i, "] ", length,
                  ", expected rows of sequence ", i, ", which has ", rows);
  }

  SequenceRows sequences_;
  std::span<const int64_t> offsets_;
  std::span<const int64_t> lengths_;
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([op = context.op().type, shape = context.Output("Out").shape,
                         width = RowWidth(context, "X"), x = In<T>(context, "X"),
                         offset = In<>(context, "Offset"), length = In<>(context, "Length"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const Slices slices(op, x.tensor(run), offset.tensor(run), length.tensor(run));
    Tensor result = MakeRagged(shape, kDTypeOf<T>, slices.lengths());
    const T* from = x(run);
    T* to = result.data<T>();
    const int64_t grain = SequenceGrain(slices.size(), result.element_count());
    ParallelFor(slices.size(), grain, [&](int64_t begin, int64_t end) {
      ForEachSequence(slices.lengths(), begin, end, [&](int64_t i, const RowRange& rows) {
        std::copy_n(from + slices.RowOf(i) * width, rows.count() * width, to + rows.begin * width);
      });
    });
    out.tensor(run) = std::move(result);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([op = context.op().type, width = RowWidth(context, "X"),
                         x = In<>(context, "X"), offset = In<>(context, "Offset"),
                         length = In<>(context, "Length"), out_grad = In<T>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    const Slices slices(op, x.tensor(run), offset.tensor(run), length.tensor(run));
    CheckGradientRows(op, out_grad.tensor(run), slices.lengths());
    const T* from = out_grad(run);
    T* to = x_grad(run);
    const int64_t grain = SequenceGrain(slices.size(), x_grad.count(run));
    ParallelFor(slices.size(), grain, [&](int64_t begin, int64_t end) {
      ForEachSequence(slices.lengths(), begin, end, [&](int64_t i, const RowRange& rows) {
        const RowRange sequence = slices.sequences()[i];
        const int64_t first = slices.RowOf(i);
        std::fill(to + sequence.begin * width, to + first * width, T{0});
        T* rest = std::copy_n(from + rows.begin * width, rows.count() * width, to + first * width);
        std::fill(rest, to + sequence.end * width, T{0});
      });
    });
  });
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef grad = GradientOf(forward, {ForShape("X"), "Offset", "Length", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "Out@GRAD in the rows that the slices took, 0 in the others.";
  grad.infer = InferGrad;
  // Nothing ties the rows of Out@GRAD to the lengths that sequence_slice had.
  grad.data_checked_by = {};
  registry.Add(std::move(grad));
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      "sequence_slice_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace

void RegisterSequenceSlice(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_slice";
  def.doc = "Length[i] rows of each sequence i of X, from its row Offset[i] on.";
  def.inputs = {{.name = "X", .doc = "Ragged, one level."},
                {.name = "Offset",
                 .doc = "[sequences, 1], int64: the first row, counted from the sequence's own.",
                 .checks_data = true},
                {.name = "Length",
                 .doc = "[sequences, 1], int64: how many rows, which the sequence must have.",
                 .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "Ragged, one level."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.data_dependent_shape = true;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double, int32_t, int64_t>(
      "sequence_slice", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
