// linear_chain_crf: the negative log-likelihood of the tags of each sequence, in a linear-chain
// conditional random field.
//
//   LogLikelihood = log(sum over all y of exp(score(y))) - score(Label)
//   score(y) = a[y_0] + sum of Emission_k[y_k] + sum of w[y_(k-1), y_k] + b[y_last]
//
// Rows 0 and 1 of Transition are a and b, the others w. A sequence without rows has 0. Source:
// Fluid's linear_chain_crf, whose output LogLikelihood is negative as well. (Lafferty et al.,
// "Conditional Random Fields", 2001.) Fluid's kernels overflow where a power of a transition does;
// these don't. A row whose tags are all impossible, by transitions or emissions of minus infinity,
// makes NaN.
//
// Gradient: with p the probabilities of the field given the emissions,
//   Emission@GRAD_k[i] = LogLikelihood@GRAD * (p(y_k = i) - [Label_k = i])
// and the same for starts, ends and steps, summed over all rows. The gradient op sums up the
// sequences again, since Alpha, in the dtype of Emission, has lost what is too unlikely.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/crf_chain.h"
#include "operators/sequence/kernels/tag_sequences.h"

namespace skiff {
namespace {

// The sequences are dealt to at most so many parts, each of which a thread computes, so that no sum
// depends on the number of threads.
constexpr int64_t kMostParts = 16;

void Infer(OpContext& context) {
  const std::string& op = context.op().type;
  const TensorMeta& emission = context.Input("Emission");
  const bool is_padded = context.HasInput("Length");
  SKIFF_ENFORCE(emission.shape.rank() == (is_padded ? 3 : 2), kInvalidArgument, op,
                ": Emission has shape ", emission.shape, ", expected ",
                is_padded ? "[sequences, length, tags] as there is Length" : "[rows, tags]");
  CheckTags(context, "Label", emission.shape, is_padded);
  const int64_t sequences = TagSequenceCount(context, "Label", "Length");
  const int64_t tags = emission.shape[emission.shape.rank() - 1];
  SKIFF_ENFORCE(tags != 0, kInvalidArgument, op, ": Emission has shape ", emission.shape,
                ", expected at least one tag");
  const Shape transition = {tags < 0 ? -1 : tags + 2, tags};
  CheckInputLike(context, "Transition", transition, emission.dtype);
  context.SetOutputLike("Alpha", "Emission");
  context.SetOutputLike("EmissionExps", "Emission");
  context.SetOutputLike("TransitionExps", "Transition");
  context.SetOutput("LogLikelihood", {sequences, 1}, emission.dtype);
  if (!is_padded) RequireSameSequences(context, "LogLikelihood", "Label", "Emission");
}

// The sequences of a part.
struct Part {
  int64_t begin;
  int64_t end;
};

int64_t PartsOf(int64_t sequences) { return std::min(kMostParts, sequences); }

Part PartAt(int64_t part, int64_t parts, int64_t sequences) {
  return {part * sequences / parts, (part + 1) * sequences / parts};
}

// Calls body(part, i) for each sequence i.
template <typename Body>
void ForEachOfParts(int64_t sequences, const Body& body) {
  const int64_t parts = PartsOf(sequences);
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const Part of = PartAt(part, parts, sequences);
      for (int64_t i = of.begin; i < of.end; ++i) body(part, i);
    }
  });
}

// The logarithms of the probabilities of the tags of a row, given the rows up to it: in a stack of
// all rows or, if only the last two matter, in two.
struct ForwardRows {
  double* first;
  int64_t tags;
  bool only_two;

  double* operator[](int64_t k) const { return first + (only_two ? k % 2 : k) * tags; }
};

// A sequence: its first row, and the tags of its rows.
template <typename T>
struct TaggedRows {
  const T* emission;
  const int64_t* labels;
  int64_t count;
};

// Sets row k of `forward`. Returns the logarithm that normalizes the row.
template <typename T>
double ForwardRow(const CrfTransitions& transitions, const T* emission, int64_t k,
                  const ForwardRows& forward, CrfTransitions::Sums sums) {
  const int64_t tags = transitions.tags();
  double* now = forward[k];
  sums.logs = now;
  if (k > 0) transitions.SumSteps(forward[k - 1], sums);
  for (int64_t i = 0; i < tags; ++i) {
    now[i] = (k > 0 ? now[i] : transitions.Start(i)) + double{emission[i]};
  }
  const double norm = LogSumExp(tags, [&](int64_t i) { return now[i]; });
  for (int64_t i = 0; i < tags; ++i) now[i] -= norm;
  return norm;
}

// Returns LogLikelihood of a sequence that has rows. Calls visit(k, row k of `forward`).
template <typename T, typename Visit>
double LossOf(const CrfTransitions& transitions, const TaggedRows<T>& rows,
              const ForwardRows& forward, const CrfTransitions::Sums& sums, const Visit& visit) {
  const int64_t tags = transitions.tags();
  double loss = 0;
  for (int64_t k = 0; k < rows.count; ++k) {
    const T* emission = rows.emission + k * tags;
    const int64_t label = rows.labels[k];
    loss += ForwardRow(transitions, emission, k, forward, sums) - double{emission[label]};
    loss -= k > 0 ? transitions.Step(rows.labels[k - 1], label) : transitions.Start(label);
    visit(k, forward[k]);
  }
  const double* last = forward[rows.count - 1];
  loss += LogSumExp(tags, [&](int64_t i) { return last[i] + transitions.Stop(i); });
  return loss - transitions.Stop(rows.labels[rows.count - 1]);
}

// Sets the elements to their powers, by row with the maximum of the row as 1.
template <typename T>
void WriteEmissionPowers(const T* emission, int64_t rows, int64_t tags, T* to) {
  ParallelFor(rows, SequenceGrain(rows, rows * tags), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = emission + row * tags;
      const T largest = *std::max_element(from, from + tags);
      for (int64_t i = 0; i < tags; ++i) to[row * tags + i] = std::exp(from[i] - largest);
    }
  });
}

// What the kernels of the op and of its gradient op have in common.
template <typename T>
class CrfKernel : public Kernel {
 public:
  bool AcceptsFewerRows() const override { return true; }

 protected:
  // `numbers_of_part` float64 numbers are each part's own.
  CrfKernel(PrepareContext& context, int64_t numbers_of_part)
      : op_(context.op().type),
        tags_(context.Input("Transition").shape[1]),
        emission_(context, "Emission"),
        transition_(context, "Transition"),
        label_(context, "Label"),
        sequences_(context, "Label", "Length"),
        numbers_of_part_(numbers_of_part),
        transitions_(Request(context, CrfTransitions::NumbersOf(tags_))),
        parts_(Request(context, MultiplyCounts(kMostParts, numbers_of_part))) {}

  static int Request(PrepareContext& context, int64_t numbers) {
    return context.RequestWorkspace(MultiplyCounts(numbers, sizeof(double)));
  }

  TagSequences Sequences(const KernelContext& run) const {
    const TagSequences sequences = sequences_(run);
    CheckTagsOfRows(op_, "Label", sequences, label_(run), tags_);
    return sequences;
  }
  CrfTransitions Transitions(const KernelContext& run) const {
    return {transition_(run), tags_, static_cast<double*>(run.workspace(transitions_))};
  }
  double* NumbersOfPart(const KernelContext& run, int64_t part) const {
    return static_cast<double*>(run.workspace(parts_)) + part * numbers_of_part_;
  }
  TaggedRows<T> RowsOf(const KernelContext& run, const RowRange& rows) const {
    return {emission_(run) + rows.begin * tags_, label_(run) + rows.begin, rows.count()};
  }

  std::string op_;
  int64_t tags_;
  In<T> emission_;
  In<T> transition_;

 private:
  In<int64_t> label_;
  TagSequenceInput sequences_;
  int64_t numbers_of_part_;
  int transitions_;
  int parts_;
};

int64_t TagsOf(const OpContext& context) { return context.Input("Transition").shape[1]; }

template <typename T>
class LinearChainCrf final : public CrfKernel<T> {
 public:
  explicit LinearChainCrf(PrepareContext& context)
      : CrfKernel<T>(context, 4 * TagsOf(context)),
        alpha_(context, "Alpha"),
        emission_powers_(context, "EmissionExps"),
        transition_powers_(context, "TransitionExps"),
        loss_(context, "LogLikelihood") {}

  void Run(const KernelContext& run) override {
    const TagSequences sequences = this->Sequences(run);
    const CrfTransitions transitions = this->Transitions(run);
    WritePowers(run);
    if (alpha_.is_there()) std::fill_n(alpha_(run), alpha_.count(run), T{0});
    ForEachOfParts(sequences.size(), [&](int64_t part, int64_t i) {
      loss_(run)[i] = LossOfRows(run, transitions, part, sequences[i]);
    });
  }

 private:
  void WritePowers(const KernelContext& run) const {
    const int64_t tags = this->tags_;
    if (emission_powers_.is_there()) {
      WriteEmissionPowers(this->emission_(run), emission_powers_.count(run) / tags, tags,
                          emission_powers_(run));
    }
    if (!transition_powers_.is_there()) return;
    const T* from = this->transition_(run);
    std::transform(from, from + transition_powers_.count(run), transition_powers_(run),
                   [](T value) { return std::exp(value); });
  }

  T LossOfRows(const KernelContext& run, const CrfTransitions& transitions, int64_t part,
               const RowRange& rows) const {
    const int64_t tags = this->tags_;
    if (rows.count() == 0) return T{0};
    double* numbers = this->NumbersOfPart(run, part);
    T* alpha = alpha_(run);
    const double loss =
        LossOf(transitions, this->RowsOf(run, rows), ForwardRows{numbers, tags, /*only_two=*/true},
               {.powers = numbers + 2 * tags, .sums = numbers + 3 * tags, .logs = nullptr},
               [&](int64_t k, const double* logs) {
                 if (alpha == nullptr) return;
                 T* to = alpha + (rows.begin + k) * tags;
                 for (int64_t i = 0; i < tags; ++i) to[i] = static_cast<T>(std::exp(logs[i]));
               });
    return static_cast<T>(loss);
  }

  Out<T> alpha_;
  Out<T> emission_powers_;
  Out<T> transition_powers_;
  Out<T> loss_;
};

template <typename T>
class LinearChainCrfGrad final : public CrfKernel<T> {
 public:
  explicit LinearChainCrfGrad(PrepareContext& context)
      : CrfKernel<T>(context, (TagsOf(context) + 2 + 5) * TagsOf(context)),
        loss_gradient_(context, "LogLikelihood@GRAD"),
        emission_gradient_(context, "Emission@GRAD"),
        transition_gradient_(context, "Transition@GRAD"),
        forward_(this->Request(context, context.Input("Emission").shape.element_count())) {}

  void Run(const KernelContext& run) override {
    const TagSequences sequences = this->Sequences(run);
    const CrfTransitions transitions = this->Transitions(run);
    for (int64_t part = 0; part < PartsOf(sequences.size()); ++part) {
      std::fill_n(this->NumbersOfPart(run, part), Weights(), 0.0);
    }
    if (emission_gradient_.is_there()) {
      std::fill_n(emission_gradient_(run), emission_gradient_.count(run), T{0});
    }
    ForEachOfParts(sequences.size(), [&](int64_t part, int64_t i) {
      const RowRange rows = sequences[i];
      if (rows.count() > 0) Sequence(run, transitions, part, rows, loss_gradient_(run)[i]);
    });
    if (transition_gradient_.is_there()) SumParts(run, PartsOf(sequences.size()));
  }

 private:
  // The numbers of Transition@GRAD, with which those of a part begin.
  int64_t Weights() const { return (this->tags_ + 2) * this->tags_; }

  // One sequence: the probabilities of its tags, from the last row to the first.
  void Sequence(const KernelContext& run, const CrfTransitions& transitions, int64_t part,
                const RowRange& range, double scale) const {
    const int64_t tags = this->tags_;
    double* weights = this->NumbersOfPart(run, part);
    double* free = weights + Weights();
    const CrfTransitions::Sums sums{free, free + tags, free + 2 * tags};
    double* now = free + 3 * tags;
    double* earlier = free + 4 * tags;
    const ForwardRows forward{static_cast<double*>(run.workspace(forward_)) + range.begin * tags,
                              tags, /*only_two=*/false};
    const TaggedRows<T> rows = this->RowsOf(run, range);
    LossOf(transitions, rows, forward, sums, [](int64_t, const double*) {});
    LastRow(transitions, forward[rows.count - 1], now);
    AddRow(now, rows.labels[rows.count - 1], scale, weights + tags);
    for (int64_t k = rows.count - 1; k >= 0; --k) {
      WriteRow(run, now, rows.labels[k], scale, range.begin + k);
      if (k == 0) break;
      weights[(rows.labels[k - 1] + 2) * tags + rows.labels[k]] -= scale;
      transitions.SumSteps(forward[k - 1], sums);
      transitions.SpreadBack(forward[k - 1], sums, scale, now, earlier, weights + 2 * tags);
      std::swap(now, earlier);
    }
    AddRow(now, rows.labels[0], scale, weights);
  }

  // The probabilities of the tags of the last row.
  static void LastRow(const CrfTransitions& transitions, const double* last, double* to) {
    const auto score = [&](int64_t i) { return last[i] + transitions.Stop(i); };
    const double norm = LogSumExp(transitions.tags(), score);
    for (int64_t i = 0; i < transitions.tags(); ++i) to[i] = std::exp(score(i) - norm);
  }

  void AddRow(const double* probabilities, int64_t label, double scale, double* to) const {
    for (int64_t i = 0; i < this->tags_; ++i) to[i] += scale * probabilities[i];
    to[label] -= scale;
  }

  void WriteRow(const KernelContext& run, const double* probabilities, int64_t label, double scale,
                int64_t row) const {
    if (!emission_gradient_.is_there()) return;
    T* to = emission_gradient_(run) + row * this->tags_;
    for (int64_t i = 0; i < this->tags_; ++i) {
      to[i] = static_cast<T>(scale * (probabilities[i] - (i == label ? 1 : 0)));
    }
  }

  void SumParts(const KernelContext& run, int64_t parts) const {
    T* to = transition_gradient_(run);
    for (int64_t i = 0; i < transition_gradient_.count(run); ++i) {
      double sum = 0;
      for (int64_t part = 0; part < parts; ++part) sum += this->NumbersOfPart(run, part)[i];
      to[i] = static_cast<T>(sum);
    }
  }

  In<T> loss_gradient_;
  Out<T> emission_gradient_;
  Out<T> transition_gradient_;
  int forward_;
};

}  // namespace

void RegisterLinearChainCrf(OpRegistry& registry) {
  OpDef def;
  def.type = "linear_chain_crf";
  def.doc = "The negative log-likelihood of the tags of each sequence in a linear-chain CRF.";
  def.inputs = {
      {.name = "Emission",
       .doc = "Ragged [rows, tags]; with Length [sequences, length, tags]: a score for each tag."},
      {.name = "Transition",
       .doc =
           "[tags + 2, tags]: row 0 for the first tag of a sequence, row 1 for the last one, row "
           "i + 2 for steps from tag i."},
      {.name = "Label",
       .doc = "The tags, int64: ragged [rows, 1]; with Length [sequences, length].",
       .checks_data = true},
      {.name = "Length",
       .doc = "[sequences, 1], int64: the rows of each that aren't padding.",
       .dispensable = true,
       .checks_data = true}};
  def.outputs = {
      {.name = "Alpha",
       .doc = "Like Emission: the probabilities of the tags, given the rows up to each.",
       .dispensable = true,
       .intermediate = true},
      {.name = "EmissionExps",
       .doc = "exp(Emission - the maximum of its row).",
       .dispensable = true,
       .intermediate = true},
      {.name = "TransitionExps",
       .doc = "exp(Transition).",
       .dispensable = true,
       .intermediate = true},
      {.name = "LogLikelihood", .doc = "[sequences, 1]: the negative log-likelihood of each."}};
  def.infer = Infer;
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def,
                          {"Emission", "Transition", "Label", "Length", Optional(ForShape("Alpha")),
                           Optional(ForShape("EmissionExps")), Optional(ForShape("TransitionExps")),
                           "LogLikelihood@GRAD"},
                          {"Emission@GRAD", "Transition@GRAD"});
  grad.doc = "LogLikelihood@GRAD times the probabilities of the tags and steps, less the label's.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "linear_chain_crf", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<LinearChainCrf<T>>(context);
      });
  registry.AddCpuKernels<float, double>(
      "linear_chain_crf_grad", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<LinearChainCrfGrad<T>>(context);
      });
}

}  // namespace skiff
