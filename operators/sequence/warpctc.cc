// warpctc: the loss of connectionist temporal classification (CTC).
//
//   Loss[i] = -log of the sum, over all paths whose labels are those of sequence i, of the product
//             of the probabilities softmax(Logits[t])[class of the path at step t]
//
// kernels/ctc_lattice.h says what a path's labels are, and how the sum is computed. Sequences are
// ragged, or padded with lengths: Logits [steps, sequences, classes], Label [sequences, labels]. A
// sequence that no path of its length can have (more labels than steps, no room for a blank between
// equal labels) has the loss 0 and no gradient, as in Fluid and in PyTorch with zero_infinity. So
// has a sequence without steps and labels, whose loss is infinite in Fluid. A sequence whose paths
// all have the probability 0, which takes logits of minus infinity, has an infinite loss and no
// gradient.
// Source: Fluid's warpctc (A. Graves et al., ICML 2006), which takes int32 labels and
// doesn't check them.
//
// WarpCTCGrad[t, i, c] = softmax(Logits[t])[c] - the share of paths with class c at step t; 0 for
// padding. Gradient: Logits@GRAD = WarpCTCGrad * Loss@GRAD[i], with norm_by_times divided by the
// steps of sequence i.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/softmax_tiles.h"
#include "operators/common/first_bad_index.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/ctc_batch.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

int64_t LongestOf(const LoD& lod) {
  const SequenceRows sequences(lod.back());
  int64_t longest = 0;
  for (int64_t i = 0; i < sequences.size(); ++i) longest = std::max(longest, sequences[i].count());
  return longest;
}

// Return [steps, sequences, classes], and check Logits and the lengths.
Shape RaggedBatch(const OpContext& context) {
  const Shape& logits = context.Input("Logits").shape;
  SKIFF_ENFORCE(logits.rank() == 2, kInvalidArgument, context.op().type, ": Logits is of shape ",
                logits, ", expected [rows, classes] if there are no lengths");
  const int64_t sequences = OneLevelSequenceCount(context, "Logits");
  const LoD* lod = context.InputLoD("Logits");
  return {lod == nullptr ? -1 : LongestOf(*lod), sequences, logits[1]};
}
Shape PaddedBatch(const OpContext& context) {
  const Shape& logits = context.Input("Logits").shape;
  SKIFF_ENFORCE(logits.rank() == 3, kInvalidArgument, context.op().type, ": Logits is of shape ",
                logits, ", expected [steps, sequences, classes] with LogitsLength");
  CheckInputLike(context, "LogitsLength", {logits[1]}, DType::kInt64);
  return logits;
}
Shape BatchShape(const OpContext& context) {
  return context.HasInput("LogitsLength") ? PaddedBatch(context) : RaggedBatch(context);
}

// Returns the number of sequences that Label has.
int64_t CheckedLabels(const OpContext& context) {
  const TensorMeta& label = context.Input("Label");
  SKIFF_ENFORCE(label.dtype == DType::kInt32 || label.dtype == DType::kInt64, kInvalidArgument,
                "warpctc: Label is ", label.dtype, ", expected int32 or int64");
  if (!context.HasInput("LogitsLength")) {
    SKIFF_ENFORCE(label.shape.rank() == 2 && (label.shape[1] == 1 || label.shape[1] < 0),
                  kInvalidArgument, "warpctc: Label is of shape ", label.shape,
                  ", expected [rows, 1] if there are no lengths");
    return OneLevelSequenceCount(context, "Label");
  }
  SKIFF_ENFORCE(label.shape.rank() == 2, kInvalidArgument, "warpctc: Label is of shape ",
                label.shape, ", expected [sequences, labels] with LabelLength");
  CheckInputLike(context, "LabelLength", {label.shape[0]}, DType::kInt64);
  return label.shape[0];
}

// The steps of a ragged batch are the rows of its longest sequence.
void SetBatchOutput(OpContext& context, std::string_view slot, const Shape& batch) {
  context.SetOutput(slot, batch, context.Input("Logits").dtype);
  if (context.HasInput("LogitsLength")) return;
  context.DependOnLoD(slot, {"Logits"}, [](std::span<const LoD* const> parents, LoD* lod) {
    lod->resize(1);
    lod->front().assign({0, static_cast<uint64_t>(LongestOf(*parents[0]))});
  });
}

void Infer(OpContext& context) {
  SKIFF_ENFORCE(
      context.HasInput("LogitsLength") == context.HasInput("LabelLength"), kInvalidArgument,
      "warpctc: only one of LogitsLength and LabelLength is there, expected both or none");
  Shape batch = BatchShape(context);
  batch[1] = MergeDims(batch[1], CheckedLabels(context), "warpctc: sequences of Logits and Label");
  const int64_t blank = context.IntAttr("blank");
  SKIFF_ENFORCE(blank >= 0 && (batch[2] < 0 || blank < batch[2]), kOutOfRange,
                "warpctc: blank = ", blank, ", expected a class in [0, ", batch[2], ")");
  SetBatchOutput(context, "WarpCTCGrad", batch);
  context.SetOutput("Loss", {batch[1], 1}, context.Input("Logits").dtype);
}

void InferGrad(OpContext& context) {
  const DType dtype = context.Input("Logits").dtype;
  const Shape batch = BatchShape(context);
  CheckInputLike(context, "WarpCTCGrad", batch, dtype);
  CheckInputLike(context, "Loss@GRAD", {batch[1], 1}, dtype);
  context.SetOutputLike("Logits@GRAD", "Logits");
}

// Sets the gradient of a step to the probabilities of the classes.
template <typename T>
void SetProbabilities(const CtcLattice<T>& lattice, int64_t t) {
  const SoftmaxTile row = {
      .items = 1, .classes = lattice.classes, .item_stride = lattice.classes, .class_stride = 1};
  T* const to = lattice.GradientAt(t);
  T max{};
  T sum{};
  TileMax(row, lattice.LogitsAt(t), &max);
  TileExp(row, lattice.LogitsAt(t), &max, to, &sum);
  lattice.log_sums[t] = static_cast<double>(max) + std::log(static_cast<double>(sum));
  sum = 1 / sum;
  TileScale(row, to, &sum, to);
}

// Writes `forward` and returns the logarithm of the sum over all paths.
template <typename T>
double GoForward(const CtcLattice<T>& lattice) {
  for (int64_t t = 0; t < lattice.steps; ++t) {
    SetProbabilities(lattice, t);
    for (int64_t state = 0; state < lattice.states(); ++state) {
      lattice.ForwardAt(t)[state] = lattice.Forward(t, state);
    }
  }
  return lattice.LogOfAll();
}

// Makes shares of the states of `forward`, and subtracts them.
template <typename T>
void GoBackward(const CtcLattice<T>& lattice, double log_of_all) {
  for (int64_t t = lattice.steps - 1; t >= 0; --t) {
    for (int64_t state = 0; state < lattice.states(); ++state) {
      const double backward = lattice.Backward(t, state);
      lattice.BackwardAt(t)[state] = backward;
      double& forward = lattice.ForwardAt(t)[state];
      forward = std::exp(forward + backward - log_of_all);
    }
    for (int64_t place = -1; place < lattice.label_count; ++place) lattice.SubtractShare(t, place);
  }
}

template <typename T>
void ZeroGradient(const CtcLattice<T>& lattice, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) std::fill_n(lattice.GradientAt(t), lattice.classes, T{0});
}

// Returns the loss, and writes the gradient of `steps` steps.
template <typename T>
T LossOf(const CtcLattice<T>& lattice, int64_t steps) {
  ZeroGradient(lattice, lattice.steps, steps);
  const bool has_paths = lattice.HasPaths();
  const double log_of_all = has_paths ? GoForward(lattice) : 0;
  if (has_paths && log_of_all != kLogOfZero) {
    GoBackward(lattice, log_of_all);
  } else {
    ZeroGradient(lattice, 0, lattice.steps);
  }
  return static_cast<T>(0 - log_of_all);
}

template <typename T>
void SetPlaces(const CtcLattice<T>& lattice, int64_t first_position, FirstBadIndex* bad) {
  for (int64_t i = 0; i < lattice.label_count; ++i) {
    if (!lattice.IsLabel(lattice.labels[i])) bad->Record(first_position + i);
    lattice.places[i] = lattice.PlaceOf(i);
  }
}

// Returns the element at a position of what is refused.
template <typename T>
int64_t ElementAt(const CtcBatch<T>& batch, int64_t position) {
  if (position >= batch.PositionOf(0)) return batch.labels[position - batch.PositionOf(0)];
  if (position < batch.sequences) return batch.logits_lengths[position];
  return batch.label_lengths[position - batch.sequences];
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([arguments = CtcArguments<T>(context)](const KernelContext& run) {
    const CtcBatch<T> batch = arguments.Batch(run);
    FirstBadIndex bad;
    const auto refuse = [&](int64_t position, int64_t) { bad.Record(position); };
    const auto lattice_of = [&](int64_t i) {
      if (!batch.is_ragged)
        return batch.LatticeOf(i, batch.PaddedLogits(i, refuse), batch.PaddedLabels(i, refuse));
      return batch.LatticeOf(i, SequenceRows(arguments.logits(run))[i],
                             SequenceRows(arguments.label(run))[i]);
    };
    ParallelFor(batch.sequences, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const CtcLattice<T> lattice = lattice_of(i);
        SetPlaces(lattice, batch.PositionOf(lattice.places - batch.places), &bad);
        batch.losses[i] = LossOf(lattice, batch.steps);
      }
    });
    const auto found = bad.Find();
    if (found) ThrowCtcFault(batch, *found, ElementAt(batch, *found));
  });
}

// One run of the gradient op.
template <typename T>
struct Gradient {
  // The gradient of the row of a step of sequence i.
  void OfRow(const T* from, int64_t i, int64_t steps, T* to) const {
    T factor = loss_gradient[i];
    if (norm_by_times && steps > 0) factor /= static_cast<T>(steps);
    for (int64_t c = 0; c < classes; ++c) to[c] = from[c] * factor;
  }

  const T* loss_gradient;
  bool norm_by_times;
  int64_t classes;
};

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  return MakeRowsKernel(
      [norm_by_times = context.Attr<bool>("norm_by_times"), logits = In<>(context, "Logits"),
       length = In<int64_t>(context, "LogitsLength"), saved = In<T>(context, "WarpCTCGrad"),
       loss_gradient = In<T>(context, "Loss@GRAD"),
       logits_gradient = Out<T>(context, "Logits@GRAD")](const KernelContext& run) {
        const Shape& batch = saved.shape(run);
        const int64_t sequences = batch[1];
        const Gradient<T> gradient{loss_gradient(run), norm_by_times, batch[2]};
        const T* from = saved(run);
        T* to = logits_gradient(run);
        const auto of_sequence = [&](int64_t i) {
          const RowRange rows =
              length.is_there() ? RowRange{0, batch[0]} : SequenceRows(logits.tensor(run))[i];
          const int64_t steps = length.is_there() ? length(run)[i] : rows.count();
          for (int64_t t = 0; t < rows.count(); ++t) {
            const int64_t row = t * sequences + i;
            const int64_t to_row = length.is_there() ? row : rows.begin + t;
            gradient.OfRow(from + row * batch[2], i, steps, to + to_row * batch[2]);
          }
        };
        const int64_t grain = SequenceGrain(sequences, logits_gradient.count(run));
        ParallelFor(sequences, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) of_sequence(i);
        });
      });
}

}  // namespace

void RegisterWarpctc(OpRegistry& registry) {
  OpDef def;
  def.type = "warpctc";
  def.doc =
      "Loss = -log of the probability that the steps of a sequence have its labels (CTC), for "
      "Logits before the softmax. 0 for labels that no path through the steps can have. Fluid's "
      "warpctc.";
  def.inputs = {{.name = "Logits",
                 .doc = "Ragged, [rows, classes]; with lengths [steps, sequences, classes]."},
                {.name = "Label",
                 .doc = "Classes but the blank, int32 or int64. Ragged, [rows, 1]; with lengths "
                        "[sequences, labels].",
                 .checks_data = true},
                {.name = "LogitsLength",
                 .doc = "[sequences], int64: the steps of each.",
                 .dispensable = true,
                 .checks_data = true},
                {.name = "LabelLength",
                 .doc = "[sequences], int64: the labels of each.",
                 .dispensable = true,
                 .checks_data = true}};
  def.outputs = {{.name = "WarpCTCGrad",
                  .doc = "[steps, sequences, classes]: the gradient of Loss by Logits.",
                  .intermediate = true},
                 {.name = "Loss", .doc = "[sequences, 1]."}};
  def.attrs = {{.name = "blank",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "The class that is no label."},
               {.name = "norm_by_times",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Divides the gradient of a sequence, not the loss, by its steps."}};
  def.infer = Infer;
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {ForShape("Logits"), "WarpCTCGrad", "LogitsLength", "Loss@GRAD"},
                          {"Logits@GRAD"});
  grad.doc = "WarpCTCGrad * Loss@GRAD, with norm_by_times divided by the steps of each sequence.";
  grad.infer = InferGrad;
  // A length is no more than a divisor here.
  for (SlotDef& slot : grad.inputs) slot.checks_data = false;
  grad.data_checked_by = {};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "warpctc", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "warpctc_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
