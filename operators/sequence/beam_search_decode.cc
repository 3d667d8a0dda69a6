// beam_search_decode: the hypotheses that the steps of a beam search (beam_search) have found.
//
// Element t of the arrays is what step t has selected. Its LoD says what each row continues: row r
// of a sequence p of the lowest level continues row p of element t - 1. The hypotheses of a source
// are the rows of the last element in which it has any, each with all that it continues. Of end_id,
// only the last one of a hypothesis stays. The best hypothesis of a source comes first, by its last
// score; of equal ones the one with the smaller row.
//
// The rows of the outputs depend on data. Source: Fluid's beam_search_decode.
#include <algorithm>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "framework/tensor/tensor_array.h"
#include "operators/common/half.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

void CheckElements(const OpContext& context, const char* slot) {
  const int32_t levels = context.Input(slot).lod_level;
  SKIFF_ENFORCE(levels >= 0, kInvalidArgument,
                "beam_search_decode: no op before writes to the array ", slot);
  SKIFF_ENFORCE(levels == 2, kInvalidArgument, "beam_search_decode: the elements of ", slot,
                " have ", levels, " LoD levels, expected 2");
}

void Infer(OpContext& context) {
  CheckElements(context, "Ids");
  CheckElements(context, "Scores");
  const DType ids = context.Input("Ids").dtype;
  SKIFF_ENFORCE(ids == DType::kInt64, kInvalidArgument, "beam_search_decode: Ids has elements of ",
                ids, ", expected int64");
  context.SetOutput("SentenceIds", {-1}, ids);
  context.SetOutput("SentenceScores", {-1}, context.Input("Scores").dtype);
  DeclareLoDLevel(context, "SentenceIds", 2);
  DeclareLoDLevel(context, "SentenceScores", 2);
}

// What a step has selected.
template <typename T>
class Step {
 public:
  Step(const TensorArray& ids, const TensorArray& scores, int64_t t)
      : ids_(ids.At(t)), scores_(scores.At(t)) {
    const LoD& lod = ids_.lod();
    const bool fits = lod.size() == 2 && lod[0].back() == lod[1].size() - 1 &&
                      static_cast<int64_t>(lod[1].back()) == ids_.element_count();
    SKIFF_ENFORCE(fits, kInvalidArgument, "beam_search_decode: element ", t, " of Ids is ",
                  ids_.shape(), " with ", lod.size(), " LoD levels, expected what beam_search has ",
                  "selected: a number in each row, and two levels");
    SKIFF_ENFORCE(ids_.element_count() == scores_.element_count(), kInvalidArgument,
                  "beam_search_decode: element ", t, " of Ids has ", ids_.element_count(),
                  " rows, that of Scores ", scores_.element_count(), ", expected as many");
  }

  int64_t sources() const { return SequenceRows(ids_.lod()[0]).size(); }
  int64_t hypotheses() const { return SequenceRows(ids_.lod()[1]).size(); }
  int64_t rows() const { return ids_.element_count(); }
  RowRange RowsOfSource(int64_t source) const {
    const RowRange hypotheses = SequenceRows(ids_.lod()[0])[source];
    const std::vector<uint64_t>& rows = ids_.lod()[1];
    return {static_cast<int64_t>(rows[static_cast<size_t>(hypotheses.begin)]),
            static_cast<int64_t>(rows[static_cast<size_t>(hypotheses.end)])};
  }
  // Returns the row of the step before that a row continues.
  int64_t ParentOf(int64_t row) const { return SequenceRows(ids_.lod()[1]).SequenceOf(row); }
  int64_t id(int64_t row) const { return ids_.data<int64_t>()[row]; }
  T score(int64_t row) const { return scores_.data<T>()[row]; }

 private:
  const Tensor& ids_;
  const Tensor& scores_;
};

// A hypothesis, its last id first.
template <typename T>
struct Sentence {
  int64_t row = 0;  // of the step that is looked at
  std::vector<int64_t> ids = {};
  std::vector<T> scores = {};
};

template <typename T>
std::vector<Step<T>> StepsOf(const TensorArray& ids, const TensorArray& scores) {
  SKIFF_ENFORCE(ids.size() > 0 && ids.size() == scores.size(), kInvalidArgument,
                "beam_search_decode: Ids has ", ids.size(), " elements and Scores ", scores.size(),
                ", expected as many, and at least one");
  std::vector<Step<T>> steps;
  for (int64_t t = 0; t < ids.size(); ++t) {
    steps.emplace_back(ids, scores, t);
    SKIFF_ENFORCE(steps.back().sources() == steps.front().sources(), kInvalidArgument,
                  "beam_search_decode: element ", t, " of Ids has ", steps.back().sources(),
                  " sources, element 0 has ", steps.front().sources());
    SKIFF_ENFORCE(t == 0 || steps.back().hypotheses() == steps[steps.size() - 2].rows(),
                  kInvalidArgument, "beam_search_decode: element ", t, " of Ids continues ",
                  steps.back().hypotheses(), " hypotheses, expected the rows of the one before, ",
                  t == 0 ? 0 : steps[steps.size() - 2].rows());
  }
  return steps;
}

// Returns the hypotheses of a source, the best one first.
template <typename T>
std::vector<Sentence<T>> SentencesOf(const std::vector<Step<T>>& steps, int64_t source,
                                     int64_t end_id) {
  std::vector<Sentence<T>> sentences;
  for (size_t t = steps.size(); t-- > 0;) {
    const Step<T>& step = steps[t];
    if (sentences.empty()) {
      const RowRange rows = step.RowsOfSource(source);
      for (int64_t row = rows.begin; row < rows.end; ++row) sentences.push_back({.row = row});
    }
    for (Sentence<T>& sentence : sentences) {
      const int64_t id = step.id(sentence.row);
      if (id != end_id || sentence.ids.empty()) {
        sentence.ids.push_back(id);
        sentence.scores.push_back(step.score(sentence.row));
      }
      sentence.row = step.ParentOf(sentence.row);
    }
  }
  std::ranges::stable_sort(sentences, [](const Sentence<T>& a, const Sentence<T>& b) {
    using Wide = WideType<T>;
    return static_cast<Wide>(a.scores.front()) > static_cast<Wide>(b.scores.front());
  });
  return sentences;
}

template <typename T>
Tensor TensorOf(const std::vector<T>& values, const LoD& lod) {
  Tensor tensor(Shape{static_cast<int64_t>(values.size())}, kDTypeOf<T>);
  std::ranges::copy(values, tensor.data<T>());
  tensor.set_lod(lod);
  return tensor;
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeKernel([ids = In<>(context, "Ids"), scores = In<>(context, "Scores"),
                     out_ids = Out<>(context, "SentenceIds"),
                     out_scores = Out<>(context, "SentenceScores"),
                     beam_size = context.IntAttr("beam_size"),
                     end_id = context.IntAttr("end_id")](const KernelContext& run) {
    const auto steps = StepsOf<T>(*ids.tensor(run).array(), *scores.tensor(run).array());
    LoD lod = {{0}, {0}};
    std::vector<int64_t> all_ids;
    std::vector<T> all_scores;
    for (int64_t source = 0; source < steps.front().sources(); ++source) {
      const std::vector<Sentence<T>> sentences = SentencesOf(steps, source, end_id);
      SKIFF_ENFORCE(std::ssize(sentences) <= beam_size, kInvalidArgument,
                    "beam_search_decode: source ", source, " has ", sentences.size(),
                    " hypotheses, expected at most beam_size = ", beam_size);
      for (const Sentence<T>& sentence : sentences) {
        all_ids.insert(all_ids.end(), sentence.ids.rbegin(), sentence.ids.rend());
        all_scores.insert(all_scores.end(), sentence.scores.rbegin(), sentence.scores.rend());
        lod[1].push_back(all_ids.size());
      }
      lod[0].push_back(lod[1].size() - 1);
    }
    out_ids.tensor(run) = TensorOf(all_ids, lod);
    out_scores.tensor(run) = TensorOf(all_scores, lod);
  });
}

}  // namespace

void RegisterBeamSearchDecode(OpRegistry& registry) {
  OpDef def;
  def.type = "beam_search_decode";
  def.doc = "The hypotheses that the steps of a beam search have found, the best ones first.";
  def.inputs = {{.name = "Ids",
                 .doc = "Element t: the selected_ids of step t. Element 0 is what the search "
                        "begins with.",
                 .checks_data = true,
                 .array = true},
                {.name = "Scores",
                 .doc = "Element t: the selected_scores of step t.",
                 .checks_data = true,
                 .array = true}};
  def.outputs = {{.name = "SentenceIds",
                  .doc = "[ids]; two LoD levels: the hypotheses of each source, the ids of each."},
                 {.name = "SentenceScores",
                  .doc = "[ids], with the same LoD: the score of a hypothesis up to each id."}};
  def.attrs = {{.name = "beam_size",
                .type = AttrType::kInt,
                .doc = "The most hypotheses that a source has.",
                .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 1; },
                .expected = "at least 1"},
               {.name = "end_id", .type = AttrType::kInt, .doc = "The id that ends a hypothesis."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "it chooses";
  def.kernel_dtype_slot = "Scores";
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      "beam_search_decode",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
