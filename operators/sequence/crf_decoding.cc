// crf_decoding: the tags of the highest score in a linear-chain conditional random field.
//
//   ViterbiPath = the y of the largest a[y_0] + sum of Emission_k[y_k] + sum of w[y_(k-1), y_k] +
//                 b[y_last]
//
// Rows 0 and 1 of Transition are a and b, the others w (linear_chain_crf). Of equal scores, the
// lower tag is taken. With Label, ViterbiPath is 1 where the tag is the label, else 0. Padding has
// 0. Scores are added in float64. Source: Fluid's crf_decoding.
#include <algorithm>
#include <string>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/tag_sequences.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const std::string& op = context.op().type;
  const TensorMeta& emission = context.Input("Emission");
  const bool is_padded = context.HasInput("Length");
  SKIFF_ENFORCE(emission.shape.rank() == (is_padded ? 3 : 2), kInvalidArgument, op,
                ": Emission has shape ", emission.shape, ", expected ",
                is_padded ? "[sequences, length, tags] as there is Length" : "[rows, tags]");
  TagSequenceCount(context, "Emission", "Length");
  const int64_t tags = emission.shape[emission.shape.rank() - 1];
  SKIFF_ENFORCE(tags != 0, kInvalidArgument, op, ": Emission has shape ", emission.shape,
                ", expected at least one tag");
  const Shape transition = {tags < 0 ? -1 : tags + 2, tags};
  CheckInputLike(context, "Transition", transition, emission.dtype);
  if (context.HasInput("Label")) CheckTags(context, "Label", emission.shape, is_padded);
  const Shape path = {emission.shape[0], is_padded ? emission.shape[1] : 1};
  context.SetOutput("ViterbiPath", path, DType::kInt64);
  if (!is_padded) context.ShareLoD("ViterbiPath", "Emission");
}

// The best sequences of tags that end with each tag of a row.
struct BestRows {
  double* before;  // of each tag: the score of the best one up to the row before
  double* now;
  int32_t* from;  // of each row and tag: the tag of the row before
};

// Sets the scores of a row, and the tags from which they come.
template <typename T>
void BestRow(const T* emission, const T* steps, int64_t tags, const BestRows& best, int32_t* from) {
  for (int64_t j = 0; j < tags; ++j) {
    const T* row = steps + j * tags;
    for (int64_t i = 0; i < tags; ++i) {
      const double score = best.before[j] + double{row[i]};
      if (j > 0 && !(score > best.now[i])) continue;
      best.now[i] = score;
      from[i] = static_cast<int32_t>(j);
    }
  }
  for (int64_t i = 0; i < tags; ++i) best.now[i] += double{emission[i]};
}

// Returns the last tag of the best sequence, whose scores without an end are `scores`.
template <typename T>
int64_t BestLast(const double* scores, const T* stop, int64_t tags) {
  int64_t best = 0;
  for (int64_t i = 1; i < tags; ++i) {
    if (scores[i] + double{stop[i]} > scores[best] + double{stop[best]}) best = i;
  }
  return best;
}

// Writes the best tags of `rows` rows.
template <typename T>
void Decode(const T* emission, const T* transition, int64_t rows, int64_t tags, BestRows best,
            int64_t* path) {
  for (int64_t i = 0; i < tags; ++i) best.now[i] = double{transition[i]} + double{emission[i]};
  for (int64_t k = 1; k < rows; ++k) {
    std::swap(best.before, best.now);
    BestRow(emission + k * tags, transition + 2 * tags, tags, best, best.from + k * tags);
  }
  path[rows - 1] = BestLast(best.now, transition + tags, tags);
  for (int64_t k = rows - 1; k > 0; --k) path[k - 1] = best.from[k * tags + path[k]];
}

template <typename T>
class CrfDecoding final : public Kernel {
 public:
  explicit CrfDecoding(PrepareContext& context)
      : tags_(context.Input("Transition").shape[1]),
        emission_(context, "Emission"),
        transition_(context, "Transition"),
        label_(context, "Label"),
        path_(context, "ViterbiPath"),
        sequences_(context, "Emission", "Length"),
        scores_(context.RequestWorkspace(
            MultiplyCounts(MultiplyCounts(Most(context), tags_), 2 * int64_t{sizeof(double)}))),
        from_(context.RequestWorkspace(context.Input("Emission").shape.element_count() *
                                       int64_t{sizeof(int32_t)})) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const TagSequences sequences = sequences_(run);
    int64_t* path = path_(run);
    const int64_t rows = path_.count(run);
    std::fill_n(path, rows, 0);
    ParallelFor(sequences.size(), SequenceGrain(sequences.size(), rows * tags_ * tags_),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) DecodeSequence(run, i, sequences[i]);
                });
  }

 private:
  // The most sequences of a run.
  static int64_t Most(const OpContext& context) {
    return TagSequenceCount(context, "Emission", "Length");
  }

  void DecodeSequence(const KernelContext& run, int64_t i, const RowRange& rows) const {
    if (rows.count() == 0) return;
    double* scores = static_cast<double*>(run.workspace(scores_)) + 2 * i * tags_;
    auto* from = static_cast<int32_t*>(run.workspace(from_)) + rows.begin * tags_;
    Decode(emission_(run) + rows.begin * tags_, transition_(run), rows.count(), tags_,
           {.before = scores, .now = scores + tags_, .from = from}, path_(run) + rows.begin);
    if (label_.is_there()) Compare(label_(run), rows, path_(run));
  }

  static void Compare(const int64_t* label, const RowRange& rows, int64_t* path) {
    for (int64_t row = rows.begin; row < rows.end; ++row)
      path[row] = path[row] == label[row] ? 1 : 0;
  }

  int64_t tags_;
  In<T> emission_;
  In<T> transition_;
  In<int64_t> label_;
  Out<int64_t> path_;
  TagSequenceInput sequences_;
  int scores_;
  int from_;
};

}  // namespace

void RegisterCrfDecoding(OpRegistry& registry) {
  OpDef def;
  def.type = "crf_decoding";
  def.doc = "The most likely tags of each sequence in a linear-chain CRF.";
  def.inputs = {
      {.name = "Emission",
       .doc = "Ragged [rows, tags]; with Length [sequences, length, tags]: a score for each tag."},
      {.name = "Transition", .doc = "[tags + 2, tags], as linear_chain_crf has it."},
      {.name = "Label",
       .doc = "Tags to compare with, int64: [rows, 1]; with Length [sequences, length].",
       .dispensable = true},
      {.name = "Length",
       .doc = "[sequences, 1], int64: the rows of each that aren't padding.",
       .dispensable = true,
       .checks_data = true}};
  def.outputs = {{.name = "ViterbiPath",
                  .doc = "int64 [rows, 1], ragged like Emission; with Length [sequences, length]: "
                         "the tags, 0 in padding; with Label 1 where they are equal, else 0."}};
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.no_gradient_reason = "it chooses";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "crf_decoding", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CrfDecoding<T>>(context);
      });
}

}  // namespace skiff
