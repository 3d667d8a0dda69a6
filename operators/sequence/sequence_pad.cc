// sequence_pad: the sequences of X as a batch of equal lengths.
//
//   Out[i, t] = row t of sequence i of X, or PadValue beyond its end;  Length[i] = its rows
//
// Out has padded_length rows for each sequence; -1: as many as the longest one. Source: Fluid's
// sequence_pad.
//
// Gradient: the rows of Out@GRAD that aren't padding.
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

// Returns dim 1 of Out.
int64_t PaddedLength(const std::string& op, int64_t padded_length, const LoD& lod) {
  const SequenceRows sequences(lod[0]);
  int64_t longest = 0;
  for (int64_t i = 0; i < sequences.size(); ++i) longest = std::max(longest, sequences[i].count());
  if (padded_length < 0) return longest;
  SKIFF_ENFORCE(longest <= padded_length, kInvalidArgument, op, ": a sequence has ", longest,
                " rows, expected at most padded_length = ", padded_length);
  return padded_length;
}

// Checks X and returns the shape of Out.
Shape PaddedShape(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  RowWidth(context, "X");
  Shape out = {OneLevelSequenceCount(context, "X"), context.IntAttr("padded_length")};
  const LoD* lod = context.InputLoD("X");
  if (lod != nullptr) out[1] = PaddedLength(context.op().type, out[1], *lod);
  for (int axis = 1; axis < x.rank(); ++axis) out.Append(x[axis]);
  return out;
}

void CheckPadValue(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const Shape& value = context.Input("PadValue").shape;
  const bool may_be_number = value.is_known() ? value.element_count() == 1 : value == Shape{-1};
  const Shape row(x.shape.dims().subspan(1));
  CheckInputLike(context, "PadValue", may_be_number ? value : row, x.dtype);
}

void Infer(OpContext& context) {
  const Shape out = PaddedShape(context);
  CheckPadValue(context);
  context.SetOutput("Out", out, context.Input("X").dtype);
  context.SetOutput("Length", {out[0]}, DType::kInt64);
  context.DependOnLoD("Out", {"X"},
                      [op = context.op().type, wanted = context.IntAttr("padded_length")](
                          std::span<const LoD* const> parents, LoD* lod) {
                        const int64_t length = PaddedLength(op, wanted, *parents[0]);
                        lod->resize(1);
                        lod->front().assign({0, static_cast<uint64_t>(length)});
                      });
}

void InferGrad(OpContext& context) {
  CheckInputLike(context, "Out@GRAD", PaddedShape(context), context.Input("X").dtype);
  context.SetOutputLike("X@GRAD", "X");
}

// Fills `rows` rows with `pad`, which is one number or one row.
template <typename T>
void FillPadding(std::span<const T> pad, int64_t rows, int64_t width, T* to) {
  if (pad.size() == 1) {
    std::fill_n(to, rows * width, pad[0]);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) std::ranges::copy(pad, to + i * width);
}

template <typename T>
void PadSequences(const Tensor& x, std::span<const T> pad, int64_t width, Tensor* out) {
  // Sequences without elements may have any number of rows.
  if (out->element_count() == 0) return;
  const SequenceRows sequences(x);
  const T* from = x.data<T>();
  T* to = out->data<T>();
  const int64_t length = out->shape()[1];
  const int64_t grain = SequenceGrain(sequences.size(), out->element_count());
  ParallelFor(sequences.size(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const RowRange rows = sequences[i];
      T* rest =
          std::copy_n(from + rows.begin * width, rows.count() * width, to + i * length * width);
      FillPadding(pad, length - rows.count(), width, rest);
    }
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([width = RowWidth(context, "X"), x = In<>(context, "X"),
                         pad_value = In<>(context, "PadValue"), out = Out<>(context, "Out"),
                         length = Out<int64_t>(context, "Length")](const KernelContext& run) {
    const SequenceRows sequences(x.tensor(run));
    int64_t* lengths = length(run);
    for (int64_t i = 0; i < sequences.size(); ++i) lengths[i] = sequences[i].count();
    PadSequences(x.tensor(run), pad_value.tensor(run).values<T>(), width, &out.tensor(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel([width = RowWidth(context, "X"), x = In<>(context, "X"),
                         out_grad = In<T>(context, "Out@GRAD"),
                         x_grad = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    const SequenceRows sequences(x.tensor(run));
    const int64_t length = out_grad.shape(run)[1];
    const int64_t grain = SequenceGrain(sequences.size(), x_grad.count(run));
    ParallelFor(sequences.size(), grain,
                [&, from = out_grad(run), to = x_grad(run)](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const RowRange rows = sequences[i];
                    std::copy_n(from + i * length * width, rows.count() * width,
                                to + rows.begin * width);
                  }
                });
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "padded_length",
           .type = AttrType::kInt,
           .default_value = -1,
           .doc = "The rows for each sequence, at least those of the longest one; -1: those.",
           .accepts =
               [](const Attribute& value) {
                 const int32_t length = std::get<int32_t>(value);
                 return length == -1 || length > 0;
               },
           .expected = "-1 or a length above 0"}};
}

}  // namespace

void RegisterSequencePad(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_pad";
  def.doc = "The sequences of X, with PadValue behind each up to a common length.";
  def.inputs = {{.name = "X", .doc = "Ragged, one level."},
                {.name = "PadValue", .doc = "One number, or one row of X's dims from 1 on."}};
  def.outputs = {{.name = "Out", .doc = "[sequences, length] + X's dims from 1 on."},
                 {.name = "Length", .doc = "[sequences], int64: the rows of each in X."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "The rows of Out@GRAD that aren't padding.";
  grad.infer = InferGrad;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "sequence_pad", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "sequence_pad_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
