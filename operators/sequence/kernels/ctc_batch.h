// What the kernels of warpctc share on the CPU and on devices: the arguments of a run as lattices,
// their workspaces, and the Error for what is refused.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "operators/sequence/kernels/ctc_lattice.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {

// The sequences of a run, ragged or padded. Positions of refused
// elements count the elements of LogitsLength first, then of LabelLength, then of Label.
template <typename T>
struct CtcBatch {
  // The rows of a padded sequence: its first one, and as many as its length says. Calls
  // refuse(position, length) for a length that doesn't fit; the sequence then has no rows.
  template <class Refuse>
  constexpr RowRange PaddedLogits(int64_t i, const Refuse& refuse) const {
    return PaddedRows(i, i, logits_lengths[i], steps, refuse);
  }
  template <class Refuse>
  constexpr RowRange PaddedLabels(int64_t i, const Refuse& refuse) const {
    return PaddedRows(i * label_width, sequences + i, label_lengths[i], label_width, refuse);
  }
  constexpr int64_t PositionOf(int64_t label) const { return 2 * sequences + label; }

  // Sequence i, whose labels have these rows of Label. Its first row of Logits is
  // logit_rows.begin; the others follow, in a padded batch with the rows of the other sequences
  // between.
  constexpr CtcLattice<T> LatticeOf(int64_t i, RowRange logit_rows, RowRange label_rows) const {
    const int64_t states_before = 2 * label_rows.begin + i;
    return {.logits = logits + logit_rows.begin * classes,
            .logits_step = is_ragged ? classes : sequences * classes,
            .gradient = gradients + i * classes,
            .gradient_step = sequences * classes,
            .steps = logit_rows.end - logit_rows.begin,
            .classes = classes,
            .blank = blank,
            .label_count = label_rows.end - label_rows.begin,
            .labels = labels.From(label_rows.begin),
            .places = places + label_rows.begin,
            .log_sums = log_sums + i * steps,
            .forward = forward + states_before * steps,
            .backward = backward + 2 * states_before};
  }

  const T* logits;
  CtcLabels labels;
  const int64_t* logits_lengths;  // of padded sequences
  const int64_t* label_lengths;
  int64_t label_width;
  bool is_ragged;
  T* losses;
  T* gradients;   // [steps, sequences, classes]
  int64_t steps;  // of the longest sequence
  int64_t sequences;
  int64_t classes;
  int64_t blank;
  CtcPlace* places;
  double* log_sums;
  double* forward;
  double* backward;

 private:
  template <class Refuse>
  static constexpr RowRange PaddedRows(int64_t begin, int64_t position, int64_t length,
                                       int64_t most, const Refuse& refuse) {
    if (length >= 0 && length <= most) return {begin, begin + length};
    refuse(position, length);
    return {begin, begin};
  }
};

// The arguments of the op. The context must have all shapes.
template <typename T>
class CtcArguments {
 public:
  explicit CtcArguments(PrepareContext& context)
      : logits_(context, "Logits"),
        label_(context, "Label"),
        logits_length_(context, "LogitsLength"),
        label_length_(context, "LabelLength"),
        loss_(context, "Loss"),
        gradient_(context, "WarpCTCGrad"),
        blank_(context.IntAttr("blank")) {
    const Shape& padded = context.Output("WarpCTCGrad").shape;
    const int64_t places = context.Input("Label").shape.element_count();
    const int64_t states = 2 * places + padded[1];
    const auto request = [&](int64_t count, int64_t bytes) {
      return context.RequestWorkspace(MultiplyCounts(std::max<int64_t>(count, 1), bytes));
    };
    places_ = request(places, sizeof(CtcPlace));
    log_sums_ = request(padded[0] * padded[1], sizeof(double));
    forward_ = request(MultiplyCounts(padded[0], states), sizeof(double));
    backward_ = request(2 * states, sizeof(double));
  }

  bool is_ragged() const { return !logits_length_.is_there(); }
  const Tensor& logits(const KernelContext& run) const { return logits_.tensor(run); }
  const Tensor& label(const KernelContext& run) const { return label_.tensor(run); }

  CtcBatch<T> Batch(const KernelContext& run) const {
    const Tensor& label = label_.tensor(run);
    const Shape& padded = gradient_.shape(run);
    return {.logits = logits_(run),
            .labels = {label.raw_data(), label.dtype() == DType::kInt64},
            .logits_lengths = logits_length_(run),
            .label_lengths = label_length_(run),
            .label_width = is_ragged() ? 1 : label.shape()[1],
            .is_ragged = is_ragged(),
            .losses = loss_(run),
            .gradients = gradient_(run),
            .steps = padded[0],
            .sequences = padded[1],
            .classes = padded[2],
            .blank = blank_,
            .places = static_cast<CtcPlace*>(run.workspace(places_)),
            .log_sums = static_cast<double*>(run.workspace(log_sums_)),
            .forward = static_cast<double*>(run.workspace(forward_)),
            .backward = static_cast<double*>(run.workspace(backward_))};
  }

 private:
  In<T> logits_;
  In<> label_;
  In<int64_t> logits_length_;
  In<int64_t> label_length_;
  Out<T> loss_;
  Out<T> gradient_;
  int64_t blank_;
  int places_ = -1;
  int log_sums_ = -1;
  int forward_ = -1;
  int backward_ = -1;
};

// Throws the Error (kOutOfRange) for a length or a label that the batch refuses.
template <typename T>
[[noreturn]] void ThrowCtcFault(const CtcBatch<T>& batch, int64_t position, int64_t value) {
  const int64_t i = position % std::max<int64_t>(batch.sequences, 1);
  if (position < batch.sequences) {
    Throw(ErrorCode::kOutOfRange, "warpctc: LogitsLength[", i, "] = ", value,
          ", expected 0 to dim 0 of Logits, ", batch.steps);
  }
  if (position < 2 * batch.sequences) {
    Throw(ErrorCode::kOutOfRange, "warpctc: LabelLength[", i, "] = ", value,
          ", expected 0 to dim 1 of Label, ", batch.label_width);
  }
  Throw(ErrorCode::kOutOfRange, "warpctc: Label[", position - batch.PositionOf(0), "] = ", value,
        ", expected a class in [0, ", batch.classes, ") other than blank = ", batch.blank);
}

}  // namespace skiff
