// sequence_concat: sequence i of Out is sequence i of X[0], then that of X[1], …
//
// Source: Fluid's sequence_concat. Gradient: X[j]@GRAD has the rows of Out@GRAD that came from
// X[j].
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

void CheckCount(const std::string& op, size_t argument, size_t found, size_t expected) {
  SKIFF_ENFORCE(found == expected, kInvalidArgument, op, ": X[", argument, "] has ", found - 1,
                " sequences, expected ", expected - 1, " as X[0]");
}

// Checks X and returns the shape of Out.
Shape JoinedShape(const OpContext& context) {
  const std::string& op = context.op().type;
  const TensorMeta& first = context.Input("X");
  RowWidth(context, "X");
  Shape out = first.shape;
  int64_t rows = 0;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    const TensorMeta& x = context.Input("X", i);
    SKIFF_ENFORCE(x.shape.rank() == out.rank() && x.dtype == first.dtype && x.lod_level == 1,
                  kInvalidArgument, op, ": X[", i, "] is ", x.dtype, " ", x.shape, " and has ",
                  x.lod_level, " LoD levels, expected 1 level and the rank and dtype of X[0], ",
                  first.dtype, " ", first.shape);
    for (int axis = 1; axis < out.rank(); ++axis) {
      out[axis] = MergeDims(out[axis], x.shape[axis],
                            StrCat(op, ": dim ", axis, " of X[", i, "] and of the inputs before"));
    }
    const LoD* lod = context.InputLoD("X", 1, i);
    const LoD* first_lod = context.InputLoD("X");
    if (lod != nullptr && first_lod != nullptr)
      CheckCount(op, i, lod->front().size(), first_lod->front().size());
    rows = rows < 0 || x.shape[0] < 0 ? -1 : rows + x.shape[0];
  }
  return WithRows(out, rows);
}

// Writes the LoD of Out, given those of X.
void JoinedLoD(const std::string& op, std::span<const LoD* const> parents, LoD* lod) {
  lod->assign(1, parents[0]->front());
  std::vector<uint64_t>& sums = lod->front();
  for (size_t i = 1; i < parents.size(); ++i) {
    const std::vector<uint64_t>& offsets = parents[i]->front();
    CheckCount(op, i, offsets.size(), sums.size());
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += offsets[k];
  }
}

void Infer(OpContext& context) {
  context.SetOutput("Out", JoinedShape(context), context.Input("X").dtype);
  context.DeriveLoD("Out", {"X"}, 1,
                    [op = context.op().type](std::span<const LoD* const> parents, LoD* lod) {
                      JoinedLoD(op, parents, lod);
                    });
}

void InferGrad(OpContext& context) {
  CheckInputLike(context, "Out@GRAD", JoinedShape(context), context.Input("X").dtype);
  for (size_t i = 0; i < context.InputCount("X"); ++i) context.SetOutputLike("X@GRAD", "X", i);
}

template <typename T>
std::vector<In<T>> Inputs(const OpContext& context) {
  std::vector<In<T>> inputs;
  for (size_t i = 0; i < context.InputCount("X"); ++i) inputs.emplace_back(context, "X", i);
  return inputs;
}

// Calls copy(i, rows of X[i], first row of Out that they become) for each sequence of each input.
// `elements` is their number in Out.
template <typename T, typename Copy>
void ForEachPart(const KernelContext& run, const std::vector<In<T>>& inputs, int64_t elements,
                 const Copy& copy) {
  const auto sequences_of = [&](size_t i) { return SequenceRows(inputs[i].tensor(run)); };
  const int64_t count = sequences_of(0).size();
  ParallelFor(count, SequenceGrain(count, elements), [&](int64_t begin, int64_t end) {
    int64_t to = 0;
    for (size_t i = 0; i < inputs.size(); ++i) to += sequences_of(i)[begin].begin;
    for (int64_t sequence = begin; sequence < end; ++sequence) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        const RowRange rows = sequences_of(i)[sequence];
        copy(i, rows, to);
        to += rows.count();
      }
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([width = RowWidth(context, "X"), inputs = Inputs<T>(context),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    const auto copy = [&, to = out(run)](size_t i, const RowRange& rows, int64_t first) {
      const T* from = inputs[i](run);
      std::copy_n(from + rows.begin * width, rows.count() * width, to + first * width);
    };
    ForEachPart(run, inputs, out.count(run), copy);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  std::vector<Out<T>> gradients;
  for (size_t i = 0; i < context.InputCount("X"); ++i) gradients.emplace_back(context, "X@GRAD", i);
  return MakeRowsKernel([width = RowWidth(context, "X"), inputs = Inputs<T>(context),
                         out_grad = In<T>(context, "Out@GRAD"),
                         gradients = std::move(gradients)](const KernelContext& run) {
    const auto copy = [&, from = out_grad(run)](size_t i, const RowRange& rows, int64_t first) {
      if (!gradients[i].is_there()) return;
      T* to = gradients[i](run);
      std::copy_n(from + first * width, rows.count() * width, to + rows.begin * width);
    };
    ForEachPart(run, inputs, out_grad.count(run), copy);
  });
}

}  // namespace

void RegisterSequenceConcat(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_concat";
  def.doc = "Each sequence of X[0] with those of the other inputs that have its number after it.";
  def.inputs = {{.name = "X",
                 .doc = "One or more, ragged, one level, of as many sequences and equal rows.",
                 .duplicable = true}};
  def.outputs = {{.name = "Out", .doc = "Ragged, one level."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "The rows of Out@GRAD that came from each input.";
  grad.outputs[0].dispensable = true;
  grad.infer = InferGrad;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "sequence_concat", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "sequence_concat_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
