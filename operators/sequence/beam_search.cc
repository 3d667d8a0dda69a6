// beam_search: one step of a beam search: of all continuations of the hypotheses of a source, the
// `beam_size` best ones.
//
//   A source is a sequence of level `level` of the LoD of scores, a hypothesis one of its rows.
//   The candidates of a hypothesis h:
//     if pre_ids[h] = end_id, it has ended: (end_id, pre_scores[h]) alone
//     else (ids[h, d], s) for each d; without ids, (d, s)
//       s = scores[h, d] if is_accumulated, else pre_scores[h] + log(scores[h, d])
//   A source of which only candidates of ended hypotheses are selected is through: it gets none.
//
// The selected ones are ordered by hypothesis, and those of one by score. Their LoD has two levels:
// the hypotheses of each source, and the selected candidates of each hypothesis, so it tells what
// each one continues; so does parent_idx.
//
// Of equal scores, that of the later hypothesis is better. Of equal ones of one hypothesis the
// first are kept, but the last one replaces the worst of a full beam if it is equal to that one.
//
// The rows of the outputs depend on data. Source: Fluid's beam_search, its ties included.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "framework/op/offset_count.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

template <typename T>
struct Candidate {
  int64_t hypothesis = 0;
  int64_t id = 0;
  WideType<T> score = 0;
  int64_t place = 0;  // among the selected ones of the source, the best one first

  bool IsWorseThan(const Candidate& other) const {
    return score < other.score || (score == other.score && hypothesis < other.hypothesis);
  }
};

// The best candidates of those added, in memory for as many.
template <typename T>
class Beam {
 public:
  Beam(Candidate<T>* room, int64_t size) : candidates_(room), size_(size) {}

  void Add(const Candidate<T>& added) {
    if (count_ < size_) {
      ++count_;
    } else if (added.IsWorseThan(candidates_[size_ - 1])) {
      return;
    }
    int64_t at = count_ - 1;
    for (; at > 0 && candidates_[at - 1].IsWorseThan(added); --at) {
      candidates_[at] = candidates_[at - 1];
    }
    candidates_[at] = added;
  }

  // Orders them by hypothesis, and those of one by rank.
  void OrderByHypothesis() {
    for (int64_t i = 0; i < count_; ++i) candidates_[i].place = i;
    std::sort(begin(), end(), [](const Candidate<T>& a, const Candidate<T>& b) {
      return a.hypothesis != b.hypothesis ? a.hypothesis < b.hypothesis : a.place < b.place;
    });
  }

  void Clear() { count_ = 0; }
  int64_t size() const { return count_; }
  Candidate<T>* begin() const { return candidates_; }
  Candidate<T>* end() const { return candidates_ + count_; }

 private:
  Candidate<T>* candidates_;
  int64_t size_;
  int64_t count_ = 0;
};

int64_t BeamSize(const OpContext& context) { return context.IntAttr("beam_size"); }

size_t Level(const OpContext& context) {
  const int64_t level = context.IntAttr("level");
  const int64_t levels = context.Input("scores").lod_level;
  SKIFF_ENFORCE(level < levels, kInvalidArgument, "beam_search: level = ", level,
                " and scores has ", levels, " LoD levels, expected a level from 0 to ", levels - 1);
  return static_cast<size_t>(level);
}

// Returns the row at which sequence i of a level begins; for i the number of sequences, the end.
int64_t FirstRow(const LoD& lod, size_t level, int64_t i) {
  auto at = static_cast<uint64_t>(i);
  for (; level < lod.size(); ++level) at = lod[level][at];
  return static_cast<int64_t>(at);
}

int64_t SourceCount(const LoD& lod, size_t level) {
  return static_cast<int64_t>(lod[level].size()) - 1;
}

// Returns the rows of the arguments, -1 if they aren't known.
int64_t RowsOf(const OpContext& context) {
  int64_t rows = -1;
  for (const char* slot : {"pre_ids", "pre_scores", "ids", "scores"}) {
    if (!context.HasInput(slot)) continue;
    RowWidth(context, slot);
    rows = MergeDims(rows, context.Input(slot).shape[0],
                     "beam_search: the rows of pre_ids, pre_scores, ids and scores");
  }
  return rows;
}

void CheckInputs(const OpContext& context) {
  for (const char* slot : {"pre_ids", "pre_scores"}) {
    const Shape& shape = context.Input(slot).shape;
    const int64_t width = RowWidth(context, slot);
    SKIFF_ENFORCE(width == 1 || width < 0, kInvalidArgument, "beam_search: ", slot,
                  " has the shape ", shape, ", expected one number in each row");
  }
  const Shape& scores = context.Input("scores").shape;
  if (context.HasInput("ids")) {
    MergeDims(RowWidth(context, "ids"), RowWidth(context, "scores"),
              "beam_search: the candidates of ids and of scores");
  }
  const int64_t width = RowWidth(context, "scores");
  SKIFF_ENFORCE(width != 0, kInvalidArgument, "beam_search: scores has the shape ", scores,
                ", expected at least one candidate in each row");
  for (const char* slot : {"pre_ids", "ids"}) {
    if (!context.HasInput(slot)) continue;
    const DType dtype = context.Input(slot).dtype;
    SKIFF_ENFORCE(dtype == DType::kInt64, kInvalidArgument, "beam_search: ", slot, " is ", dtype,
                  ", expected int64");
  }
  SKIFF_ENFORCE(context.Input("pre_scores").dtype == context.Input("scores").dtype,
                kInvalidArgument, "beam_search: pre_scores is ", context.Input("pre_scores").dtype,
                ", expected ", context.Input("scores").dtype, " as scores");
}

// Sets `lod` to one with the sources and hypotheses of `given`, and as many selected candidates as
// there may be: `beam_size` for each source, but no more than there are candidates. `width`: those
// of a hypothesis, -1 if nobody knows.
void RoomForSelected(const LoD& given, size_t level, int64_t beam_size, int64_t width, LoD* lod) {
  const int64_t sources = SourceCount(given, level);
  lod->resize(2);
  auto& hypotheses = lod->front();
  hypotheses.clear();
  for (int64_t i = 0; i <= sources; ++i) {
    hypotheses.push_back(static_cast<uint64_t>(FirstRow(given, level, i)));
  }
  const uint64_t rows = hypotheses.back();
  CheckOffsetCount(static_cast<int64_t>(rows));
  int64_t most = MultiplyCounts(sources, beam_size);
  if (width >= 0) most = std::min(most, MultiplyCounts(static_cast<int64_t>(rows), width));
  const auto selected = static_cast<uint64_t>(most);
  auto& candidates = lod->back();
  candidates.assign(1, 0);
  for (uint64_t i = 1; i <= rows; ++i) candidates.push_back(selected / rows * i);
  if (rows > 0) candidates.back() = selected;
}

void Infer(OpContext& context) {
  CheckInputs(context);
  RowsOf(context);
  const size_t level = Level(context);
  const LoD* lod = context.InputLoD("scores", static_cast<int32_t>(level) + 1);
  const auto room = [level, beam_size = BeamSize(context), width = RowWidth(context, "scores")](
                        std::span<const LoD* const> parents, LoD* of_selected) {
    RoomForSelected(*parents[0], level, beam_size, width, of_selected);
  };
  int64_t selected = -1;
  if (lod != nullptr) {
    LoD of_selected;
    const LoD* parents[] = {lod};
    room(parents, &of_selected);
    selected = static_cast<int64_t>(of_selected.back().back());
  }
  context.SetOutput("selected_ids", {selected, 1}, DType::kInt64);
  context.SetOutput("selected_scores", {selected, 1}, context.Input("scores").dtype);
  context.SetOutput("parent_idx", {selected}, DType::kInt32);
  // Whatever the program declares.
  DeclareLoDLevel(context, "parent_idx", 0);
  context.DeriveLoD("selected_ids", {"scores"}, 2, room);
  context.DeriveLoD("selected_scores", {"scores"}, 2, room);
}

// What a run reads.
template <typename T>
struct Hypotheses {
  const int64_t* pre_ids;
  const T* pre_scores;
  const int64_t* ids;  // nullptr: the place of a candidate is its id
  const T* scores;
  int64_t width;
  int64_t end_id;
  bool is_accumulated;

  bool HasEnded(int64_t hypothesis) const { return pre_ids[hypothesis] == end_id; }

  void AddTo(Beam<T>* beam, int64_t hypothesis) const {
    using Wide = WideType<T>;
    const auto before = static_cast<Wide>(pre_scores[hypothesis]);
    if (HasEnded(hypothesis)) {
      return beam->Add({.hypothesis = hypothesis, .id = end_id, .score = before});
    }
    for (int64_t d = 0; d < width; ++d) {
      const int64_t at = hypothesis * width + d;
      const auto given = static_cast<Wide>(scores[at]);
      const Wide score = is_accumulated ? given : before + std::log(given);
      beam->Add({.hypothesis = hypothesis, .id = ids == nullptr ? d : ids[at], .score = score});
    }
  }
};

// Makes the candidates those of one source, whose hypotheses are [begin, end), or none if it is
// through.
template <typename T>
void Select(const Hypotheses<T>& hypotheses, int64_t begin, int64_t end, Beam<T>* beam) {
  for (int64_t i = begin; i < end; ++i) hypotheses.AddTo(beam, i);
  const bool is_through = std::all_of(beam->begin(), beam->end(), [&](const Candidate<T>& found) {
    return hypotheses.HasEnded(found.hypothesis);
  });
  is_through ? beam->Clear() : beam->OrderByHypothesis();
}

template <typename T>
class BeamSearch final : public Kernel {
 public:
  explicit BeamSearch(PrepareContext& context)
      : pre_ids_(context, "pre_ids"),
        pre_scores_(context, "pre_scores"),
        ids_(context, "ids"),
        scores_(context, "scores"),
        selected_ids_(context, "selected_ids"),
        selected_scores_(context, "selected_scores"),
        parents_(context, "parent_idx"),
        level_(Level(context)),
        width_(RowWidth(context, "scores")),
        end_id_(context.IntAttr("end_id")),
        is_accumulated_(context.Attr<bool>("is_accumulated")),
        is_planned_(context.Output("selected_ids").shape.is_known()) {
    const LoD& lod = *context.InputLoD("scores");
    const int64_t sources = SourceCount(lod, level_);
    const int64_t rows = context.Input("scores").shape[0];
    room_ = std::min(BeamSize(context), MultiplyCounts(rows, width_));
    const int64_t candidates = MultiplyCounts(sources, room_);
    SKIFF_ENFORCE(candidates <= kMaxElementCount / static_cast<int64_t>(sizeof(Candidate<T>)),
                  kResourceExhausted, "beam_search: beam_size = ", room_, " for ", sources,
                  " sources, expected fewer");
    workspace_ = context.RequestWorkspace(candidates * static_cast<int64_t>(sizeof(Candidate<T>)));
    beams_.reserve(static_cast<size_t>(sources));
    lod_->resize(2);
    lod_->front().reserve(static_cast<size_t>(sources) + 1);
    lod_->back().reserve(static_cast<size_t>(rows) + 1);
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const Tensor& scores = scores_.tensor(run);
    const LoD& lod = scores.lod();
    const int64_t sources = SourceCount(lod, level_);
    auto* room = static_cast<Candidate<T>*>(run.workspace(workspace_));
    beams_.clear();
    for (int64_t i = 0; i < sources; ++i) beams_.emplace_back(room + i * room_, room_);
    const Hypotheses<T> hypotheses = {.pre_ids = pre_ids_(run),
                                      .pre_scores = pre_scores_(run),
                                      .ids = ids_(run),
                                      .scores = scores.data<T>(),
                                      .width = width_,
                                      .end_id = end_id_,
                                      .is_accumulated = is_accumulated_};
    ParallelFor(sources, SequenceGrain(sources, scores.element_count()),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    Select(hypotheses, FirstRow(lod, level_, i), FirstRow(lod, level_, i + 1),
                           &beams_[static_cast<size_t>(i)]);
                  }
                });
    SetLoD(lod);
    SetRows(run);
    Write(run);
  }

 private:
  void SetLoD(const LoD& of_sources) {
    std::vector<uint64_t>& hypotheses = lod_->front();
    std::vector<uint64_t>& selected = lod_->back();
    hypotheses.assign(1, 0);
    selected.assign(1, 0);
    for (size_t i = 0; i < beams_.size(); ++i) {
      const int64_t end = FirstRow(of_sources, level_, static_cast<int64_t>(i) + 1);
      const Candidate<T>* next = beams_[i].begin();
      for (auto row = static_cast<int64_t>(hypotheses.back()); row < end; ++row) {
        uint64_t count = 0;
        for (; next != beams_[i].end() && next->hypothesis == row; ++next) ++count;
        selected.push_back(selected.back() + count);
      }
      hypotheses.push_back(static_cast<uint64_t>(end));
    }
  }

  void SetRows(const KernelContext& run) const {
    const auto rows = static_cast<int64_t>(lod_->back().back());
    for (const int output : {selected_ids_.index(), selected_scores_.index(), parents_.index()}) {
      if (output < 0) continue;
      Tensor& to = run.output(output);
      const bool is_parents = output == parents_.index();
      if (is_planned_) {
        to.SetRows(rows);
      } else {
        const DType dtype = output == selected_ids_.index() ? DType::kInt64
                            : is_parents                    ? DType::kInt32
                                                            : kDTypeOf<T>;
        to = Tensor(is_parents ? Shape{rows} : Shape{rows, 1}, dtype);
      }
      if (is_parents) continue;
      is_planned_ ? to.ShareLoD(lod_) : to.set_lod(*lod_);
    }
  }

  void Write(const KernelContext& run) const {
    auto* ids = selected_ids_(run);
    auto* scores = selected_scores_(run);
    auto* parents = parents_(run);
    for (const Beam<T>& beam : beams_) {
      for (const Candidate<T>& found : beam) {
        *ids++ = found.id;
        *scores++ = static_cast<T>(found.score);
        if (parents != nullptr) *parents++ = static_cast<int32_t>(found.hypothesis);
      }
    }
  }

  const In<int64_t> pre_ids_;
  const In<T> pre_scores_;
  const In<int64_t> ids_;
  const In<T> scores_;
  const Out<int64_t> selected_ids_;
  const Out<T> selected_scores_;
  const Out<int32_t> parents_;
  const size_t level_;
  const int64_t width_;
  const int64_t end_id_;
  const bool is_accumulated_;
  const bool is_planned_;
  int64_t room_ = 0;  // candidates of a source
  int workspace_ = -1;
  std::vector<Beam<T>> beams_;
  std::shared_ptr<LoD> lod_ = std::make_shared<LoD>();
};

std::vector<AttrDef> Attributes() {
  const auto at_least = [](int64_t least) {
    return [least](const Attribute& value) { return std::get<int32_t>(value) >= least; };
  };
  return {{.name = "level",
           .type = AttrType::kInt,
           .doc = "The level of the LoD of scores whose sequences are the sources.",
           .accepts = at_least(0),
           .expected = "at least 0"},
          {.name = "beam_size",
           .type = AttrType::kInt,
           .doc = "The most candidates that are selected for a source.",
           .accepts = at_least(1),
           .expected = "at least 1"},
          {.name = "end_id", .type = AttrType::kInt, .doc = "The id that ends a hypothesis."},
          {.name = "is_accumulated",
           .type = AttrType::kBool,
           .default_value = true,
           .doc = "Whether scores are those of whole hypotheses; else probabilities of ids."}};
}

}  // namespace

void RegisterBeamSearch(OpRegistry& registry) {
  OpDef def;
  def.type = "beam_search";
  def.doc = "The best continuations of the hypotheses of each source: one step of a beam search.";
  def.inputs = {{.name = "pre_ids", .doc = "[hypotheses, 1], int64: the last id of each."},
                {.name = "pre_scores", .doc = "[hypotheses, 1]: the score of each."},
                {.name = "ids",
                 .doc = "[hypotheses, candidates], int64: what may come next; absent: 0, 1, …",
                 .dispensable = true},
                {.name = "scores", .doc = "[hypotheses, candidates], ragged: their scores."}};
  def.outputs = {{.name = "selected_ids", .doc = "[selected, 1], two LoD levels."},
                 {.name = "selected_scores", .doc = "[selected, 1], two LoD levels."},
                 {.name = "parent_idx",
                  .doc = "[selected], int32: the hypothesis that each continues.",
                  .dispensable = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.no_gradient_reason = "it chooses";
  def.kernel_dtype_slot = "scores";
  def.data_dependent_shape = true;
  def.sets_rows = [](const Op&) { return true; };
  registry.Add(std::move(def));
  registry.AddCpuKernels<Float16, BFloat16, float, double>(
      "beam_search", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<BeamSearch<T>>(context);
      });
}

}  // namespace skiff
