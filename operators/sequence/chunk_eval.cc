// chunk_eval: how many chunks of tagged sequences are found.
//
// A tag is type * (positions of the scheme) + position; a tag of type num_chunk_types is outside of
// all chunks. Positions are begin and inside (IOB), inside and end (IOE), begin, inside, end and
// single (IOBES), or one position that is no more than the type (plain). A chunk is the rows from
// one that begins a chunk to one that ends it; a chunk is correct if Inference and Label have it
// with the same rows and type.
//
//   Precision = correct / inferred;  Recall = correct / labelled
//   F1-Score = 2 * Precision * Recall / (Precision + Recall);  0 where nothing is correct
//
// Source: Fluid's chunk_eval.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/tag_sequences.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& label = context.Input("Label");
  const bool is_padded = context.HasInput("SeqLength");
  TagSequenceCount(context, "Label", "SeqLength");
  CheckTags(context, "Label", label.shape, is_padded);
  CheckTags(context, "Inference", label.shape, is_padded);
  if (!is_padded) OneLevelSequenceCount(context, "Inference");
  for (const char* slot : {"Precision", "Recall", "F1-Score"}) {
    context.SetOutput(slot, {1}, DType::kFloat32);
  }
  for (const char* slot : {"NumInferChunks", "NumLabelChunks", "NumCorrectChunks"}) {
    context.SetOutput(slot, {1}, DType::kInt64);
  }
}

enum class Position { kBegin, kInside, kEnd, kSingle };

struct Tag {
  int64_t type;
  Position position;
};

// A scheme: what the tags of a type mean, in order.
class Scheme {
 public:
  explicit Scheme(const OpContext& context)
      : positions_(PositionsOf(context.Attr<std::string>("chunk_scheme"))),
        types_(context.IntAttr("num_chunk_types")) {}

  // The tags in use; the last one is outside.
  int64_t tags() const { return types_ * Positions() + 1; }
  bool IsOutside(const Tag& tag) const { return tag.type == types_; }
  Tag Outside() const { return {types_, Position::kInside}; }
  Tag Of(int64_t tag) const {
    return {tag / Positions(), positions_[static_cast<size_t>(tag % Positions())]};
  }

  // Return whether a chunk ends between two neighbours, and whether one begins there.
  bool Ends(const Tag& before, const Tag& tag) const {
    if (IsOutside(before)) return false;
    if (IsOutside(tag) || tag.type != before.type) return true;
    return IsLast(before) || IsFirst(tag);
  }
  bool Begins(const Tag& before, const Tag& tag) const {
    if (IsOutside(tag)) return false;
    if (IsOutside(before) || tag.type != before.type) return true;
    return IsFirst(tag) || IsLast(before);
  }

 private:
  static std::vector<Position> PositionsOf(const std::string& scheme) {
    if (scheme == "IOB") return {Position::kBegin, Position::kInside};
    if (scheme == "IOE") return {Position::kInside, Position::kEnd};
    if (scheme == "plain") return {Position::kInside};
    return {Position::kBegin, Position::kInside, Position::kEnd, Position::kSingle};
  }
  static bool IsFirst(const Tag& tag) {
    return tag.position == Position::kBegin || tag.position == Position::kSingle;
  }
  static bool IsLast(const Tag& tag) {
    return tag.position == Position::kEnd || tag.position == Position::kSingle;
  }
  int64_t Positions() const { return static_cast<int64_t>(positions_.size()); }

  std::vector<Position> positions_;
  int64_t types_;
};

// Walks over the chunks of a sequence.
class ChunkWalk {
 public:
  ChunkWalk(const Scheme& scheme, const int64_t* tags)
      : scheme_(scheme), tags_(tags), before_(scheme.Outside()) {}

  // Whether a chunk ends before row k, the next one. Past the last row, all end. The chunk has the
  // rows from begin() and the type().
  bool EndsBefore(int64_t k, bool is_end) const {
    return scheme_.Ends(before_, is_end ? scheme_.Outside() : scheme_.Of(tags_[k]));
  }
  int64_t begin() const { return begin_; }
  int64_t type() const { return before_.type; }

  // Goes on to row k.
  void Enter(int64_t k) {
    const Tag tag = scheme_.Of(tags_[k]);
    if (scheme_.Begins(before_, tag)) begin_ = k;
    before_ = tag;
  }

 private:
  const Scheme& scheme_;
  const int64_t* tags_;
  Tag before_;
  int64_t begin_ = -1;
};

struct Counts {
  int64_t inferred = 0;
  int64_t labelled = 0;
  int64_t correct = 0;
};

// Adds the chunks of one sequence.
void Count(const Scheme& scheme, const std::vector<int64_t>& excluded, const int64_t* inference,
           const int64_t* label, int64_t rows, Counts* counts) {
  ChunkWalk inferred(scheme, inference);
  ChunkWalk labelled(scheme, label);
  const auto counts_type = [&](int64_t type) { return std::ranges::count(excluded, type) == 0; };
  for (int64_t k = 0; k <= rows; ++k) {
    const bool ends_inferred = inferred.EndsBefore(k, k == rows) && counts_type(inferred.type());
    const bool ends_labelled = labelled.EndsBefore(k, k == rows) && counts_type(labelled.type());
    counts->inferred += ends_inferred ? 1 : 0;
    counts->labelled += ends_labelled ? 1 : 0;
    const bool is_correct = ends_inferred && ends_labelled &&
                            inferred.begin() == labelled.begin() &&
                            inferred.type() == labelled.type();
    counts->correct += is_correct ? 1 : 0;
    if (k == rows) break;
    inferred.Enter(k);
    labelled.Enter(k);
  }
}

// Returns a / b, 0 if nothing is there.
float Share(int64_t a, int64_t b) {
  return b == 0 ? 0.0f : static_cast<float>(a) / static_cast<float>(b);
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel(
      [op = context.op().type, scheme = Scheme(context), is_padded = context.HasInput("SeqLength"),
       excluded = context.IntsAttr("excluded_chunk_types"),
       sequences_of = TagSequenceInput(context, "Label", "SeqLength"),
       inference = In<int64_t>(context, "Inference"), label = In<int64_t>(context, "Label"),
       precision = Out<float>(context, "Precision"), recall = Out<float>(context, "Recall"),
       f1 = Out<float>(context, "F1-Score"), inferred = Out<int64_t>(context, "NumInferChunks"),
       labelled = Out<int64_t>(context, "NumLabelChunks"),
       correct = Out<int64_t>(context, "NumCorrectChunks")](const KernelContext& run) {
        const TagSequences sequences = sequences_of(run);
        if (!is_padded) {
          CheckSameSequences(op, "Label", label.tensor(run).lod(), "Inference",
                             inference.tensor(run).lod());
        }
        CheckTagsOfRows(op, "Inference", sequences, inference(run), scheme.tags());
        CheckTagsOfRows(op, "Label", sequences, label(run), scheme.tags());
        Counts counts;
        for (int64_t i = 0; i < sequences.size(); ++i) {
          const RowRange rows = sequences[i];
          Count(scheme, excluded, inference(run) + rows.begin, label(run) + rows.begin,
                rows.count(), &counts);
        }
        *inferred(run) = counts.inferred;
        *labelled(run) = counts.labelled;
        *correct(run) = counts.correct;
        *precision(run) = Share(counts.correct, counts.inferred);
        *recall(run) = Share(counts.correct, counts.labelled);
        const float sum = *precision(run) + *recall(run);
        *f1(run) = counts.correct == 0 ? 0.0f : 2 * *precision(run) * *recall(run) / sum;
      });
}

}  // namespace

void RegisterChunkEval(OpRegistry& registry) {
  OpDef def;
  def.type = "chunk_eval";
  def.doc = "Precision, recall and F1 of the chunks of tagged sequences.";
  def.inputs = {{.name = "Inference",
                 .doc = "Tags, int64: ragged [rows, 1]; with SeqLength [sequences, length].",
                 .checks_data = true},
                {.name = "Label", .doc = "The true tags, like Inference.", .checks_data = true},
                {.name = "SeqLength",
                 .doc = "[sequences], int64: the rows of each that aren't padding.",
                 .dispensable = true,
                 .checks_data = true}};
  def.outputs = {{.name = "Precision", .doc = "[1], float32: correct / inferred, or 0."},
                 {.name = "Recall", .doc = "[1], float32: correct / labelled, or 0."},
                 {.name = "F1-Score", .doc = "[1], float32: their harmonic mean, or 0."},
                 {.name = "NumInferChunks", .doc = "[1], int64: the chunks of Inference."},
                 {.name = "NumLabelChunks", .doc = "[1], int64: the chunks of Label."},
                 {.name = "NumCorrectChunks", .doc = "[1], int64: the chunks of both."}};
  def.attrs = {{.name = "num_chunk_types",
                .type = AttrType::kInt,
                .doc = "The number of types of chunks.",
                .accepts = [](const Attribute& value) { return std::get<int32_t>(value) > 0; },
                .expected = "at least 1"},
               ChoiceAttr("chunk_scheme", "IOB", {"IOB", "IOE", "IOBES", "plain"},
                          "What the positions of a tag are."),
               {.name = "excluded_chunk_types",
                .type = AttrType::kInts,
                .default_value = std::vector<int32_t>{},
                .doc = "Types whose chunks don't count."}};
  def.infer = Infer;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "counts have no derivative";
  // The counts are for the host.
  def.is_on_host = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<int64_t>(
      "chunk_eval", []<typename T>(PrepareContext& context) { return Prepare(context); });
}

}  // namespace skiff
