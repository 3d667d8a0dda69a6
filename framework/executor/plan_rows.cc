#include "framework/executor/plan_rows.h"

#include <algorithm>
#include <map>
#include <set>

#include "framework/base/error.h"
#include "framework/executor/known_contents.h"
#include "framework/op/infer_outputs.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

int64_t RowsOf(const LoD& lod) { return static_cast<int64_t>(lod.back().back()); }

std::vector<const LoD*> LoDsOf(const FeedMetas& feeds) {
  std::vector<const LoD*> lods;
  for (const auto& [name, meta] : feeds) {
    const LoDGroup* lod = CountedLoD(meta);
    lods.push_back(lod == nullptr ? nullptr : &lod->offsets);
  }
  return lods;
}

// Infers the shapes of a plan for other feeds and their LoDs. Layouts stay those of the plan.
class Inference {
 public:
  // `reached` counts the ops whose rules have agreed so far. nullptr: nobody wants to know.
  Inference(const OpRegistry& registry, const Plan& plan, const FeedMetas& feeds,
            const PlanLoDs& lods, const RunLoDs& run, size_t* reached = nullptr)
      : registry_(registry), plan_(plan), metas_(plan.values.size()) {
    for (const ValueId id : plan.ids()) {
      metas_[id] = plan[id].meta;
      if (plan[id].storage == Storage::kArena) AssumeUnmade(id, lods, run);
    }
    for (size_t i = 0; i < feeds.size(); ++i) metas_[plan.feeds[i]] = feeds[i].second;
    for (const Instruction& instruction : plan.instructions) {
      Infer(instruction);
      if (reached != nullptr) ++*reached;
    }
  }

  const TensorMeta& operator[](ValueId value) const { return metas_[value]; }

 private:
  void Infer(const Instruction& instruction) {
    if (instruction.kind == InstructionKind::kLoop) return InferLoop(instruction);
    if (instruction.kind == InstructionKind::kFused) {
      for (const Instruction& member : instruction.members) Infer(member);
    } else if (instruction.kind == InstructionKind::kCopy) {
      TensorMeta& copy = metas_[instruction.outputs[0]];
      const TensorMeta& from = metas_[instruction.inputs[0]];
      copy.shape = from.shape;
      copy.lod = from.lod;
      copy.contents = from.contents;
      unknown_.erase(instruction.outputs[0]);
    } else {
      InferOp(instruction);
    }
  }

  // What a loop leaves has the shapes that it found, or fixed ones.
  void InferLoop(const Instruction& instruction) {
    const Loop& loop = *instruction.loop;
    const auto refuse = [&](const std::string& what) {
      throw Error(ErrorCode::kUnimplemented, what)
          .WithContext(DescribeOp(*instruction.op, instruction.block, instruction.position));
    };
    const auto varies = [&](ValueId value) {
      return value && metas_[value].shape != plan_[value].meta.shape;
    };
    for (const LoopFeed& feed : loop.feeds) {
      // What is handed on keeps its rows, which LoopRows knows.
      const bool keeps_rows = feed.kind == LoopFeed::Kind::kCarried && loop.joint_body != nullptr;
      if (feed.kind == LoopFeed::Kind::kInvariant || keeps_rows || feed.input < 0) continue;
      const ValueId input = instruction.inputs[static_cast<size_t>(feed.input)];
      if (varies(input)) {
        refuse(StrCat("the rows of \"", plan_[input].name, "\", which iterations hand on, vary"));
      }
    }
    const bool any_varies = std::ranges::any_of(instruction.inputs, varies);
    std::optional<Inference> inside;
    for (const LoopFetch& fetch : loop.fetches) {
      if (fetch.output < 0) continue;
      const ValueId output = instruction.outputs[static_cast<size_t>(fetch.output)];
      if (fetch.like >= 0) {
        const TensorMeta& like = metas_[instruction.inputs[static_cast<size_t>(fetch.like)]];
        metas_[output].shape = like.shape;
        metas_[output].lod = like.lod;
      } else if (any_varies && fetch.kind == LoopFetch::Kind::kLast && loop.joint_body != nullptr &&
                 !loop.is_gradient) {
        if (!inside) inside.emplace(InsideOf(instruction));
        const TensorMeta& result = (*inside)[fetch.value];
        metas_[output].shape = result.shape;
        metas_[output].lod = result.lod;
      } else if (any_varies &&
                 (fetch.kind == LoopFetch::Kind::kLast || fetch.kind == LoopFetch::Kind::kPart)) {
        refuse(StrCat("\"", plan_[output].name, "\" may have other rows in each run"));
      }
    }
    for (const ValueId output : instruction.outputs) {
      if (output) unknown_.erase(output);
    }
  }

  // Infers the shapes in a forward half whose feeds have the shapes of the moment.
  Inference InsideOf(const Instruction& instruction) const {
    const Loop& loop = *instruction.loop;
    FeedMetas feeds;
    for (const LoopFeed& feed : loop.feeds) {
      const PlanValue& value = loop.body[feed.value];
      feeds.emplace_back(
          value.name, feed.input < 0 ? value.meta
                                     : metas_[instruction.inputs[static_cast<size_t>(feed.input)]]);
    }
    const PlanLoDs lods(loop.body);
    RunLoDs run;
    lods.Derive(LoDsOf(feeds), &run);
    return Inference(registry_, loop.body, feeds, lods, run);
  }

  // Sets what is known of a value before it is made. An op that needs only its shape or LoD may run
  // earlier, and a pass may have dropped the op that makes it.
  void AssumeUnmade(ValueId id, const PlanLoDs& lods, const RunLoDs& run) {
    TensorMeta& meta = metas_[id];
    meta.lod = nullptr;
    // What is known when the plan is made has a fixed shape.
    if (meta.shape.rank() == 0 || meta.contents != nullptr) return;
    if (const LoD* lod = lods.In(run, id)) {
      meta.lod = std::make_shared<const LoDGroup>(LoDGroup{.offsets = *lod});
      meta.shape[0] = RowsOf(*lod);
    } else if (const auto group = lods.ShapeGroupOf(id)) {
      meta.shape[0] = RowsOf(run.of_groups[*group]);
    } else if (meta.shape[0] != 1) {
      unknown_.insert(id);
    }
  }

  void InferOp(const Instruction& instruction) {
    std::vector<TensorMeta> inputs, outputs;
    for (const ValueId input : instruction.inputs) {
      if (unknown_.contains(input)) {
        throw Error(ErrorCode::kUnimplemented,
                    StrCat("reads the rows of \"", plan_[input].name, "\" before an op makes it"))
            .WithContext(DescribeOp(*instruction.op, instruction.block, instruction.position));
      }
      inputs.push_back(input ? metas_[input] : TensorMeta{});
    }
    for (const ValueId output : instruction.outputs) {
      outputs.push_back(output ? metas_[output] : TensorMeta{});
      outputs.back().lod = nullptr;
      outputs.back().shape_lod = nullptr;
    }
    OpContext context(*instruction.op, *instruction.def, std::move(inputs), std::move(outputs),
                      plan_.place);
    try {
      InferOutputs(&context);
    } catch (const Error& error) {
      throw error.WithContext(DescribeOp(*instruction.op, instruction.block, instruction.position));
    }
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      const ValueId output = instruction.outputs[i];
      if (!output) continue;
      unknown_.erase(output);
      metas_[output].shape = context.outputs()[i].shape;
      metas_[output].lod = context.outputs()[i].lod;
      metas_[output].shape_lod = context.outputs()[i].shape_lod;
    }
    const auto made = EvaluateKnown(registry_, plan_, instruction, context);
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i] != nullptr) metas_[instruction.outputs[i]].contents = made[i];
    }
  }

  const OpRegistry& registry_;
  const Plan& plan_;
  ValueTable<TensorMeta> metas_;
  std::set<ValueId> unknown_;  // not made yet, without a LoD
};

// Adds a * b to `sum`. Returns false on overflow: tensors without elements may have huge dims.
bool AddProduct(int64_t a, int64_t b, int64_t* sum) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*sum, product, sum);
}

// The counts of a LoD that isn't known yet are -1.
void AppendCountsOfGroups(const RunLoDs& lods, const std::vector<size_t>& planned,
                          std::vector<int64_t>* counts) {
  for (size_t i = 0; i < lods.of_groups.size(); ++i) {
    const LoD& lod = lods.of_groups[i];
    if (IsUnknown(lod)) {
      counts->resize(counts->size() + planned[i], -1);
    } else if (!lod.empty()) {
      AppendCounts(lod, counts);
    }
  }
}

bool HaveEqualContents(const TensorMeta& a, const TensorMeta& b) {
  if (a.contents == nullptr || b.contents == nullptr) return a.contents == b.contents;
  return HaveSameElements(*a.contents, *b.contents);
}

// Throws an Error for a kernel that is prepared for the numbers of an input if these vary.
void CheckGivenAttributes(const Plan& plan, const std::vector<Inference>& inferred) {
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind != InstructionKind::kOp) continue;
    size_t i = 0;
    for (const SlotDef& slot : instruction.def->inputs) {
      for (const std::string& name : instruction.op->Input(slot.name)) {
        const ValueId value = instruction.inputs[i++];
        if (slot.attribute.empty() || slot.for_shape || !value) continue;
        const bool varies = std::ranges::any_of(inferred, [&](const Inference& other) {
          return !HaveEqualContents(other[value], inferred[0][value]);
        });
        if (!varies) continue;
        throw Error(ErrorCode::kUnimplemented,
                    StrCat("input \"", slot.name, "\", variable \"", name,
                           "\", depends on rows that vary, and the kernel is prepared for \"",
                           slot.attribute, "\""))
            .WithContext(DescribeOp(*instruction.op, instruction.block, instruction.position));
      }
    }
  }
}

// Returns where the value is made, for an Error.
std::string MakerOf(const Plan& plan, ValueId value) {
  const auto makes = [&](const Instruction& instruction) {
    return std::ranges::find(instruction.outputs, value) != instruction.outputs.end();
  };
  for (const Instruction& instruction : plan.instructions) {
    if (makes(instruction))
      return DescribeOp(*instruction.op, instruction.block, instruction.position);
    for (const Instruction& member : instruction.members) {
      if (makes(member)) return DescribeOp(*member.op, member.block, member.position);
    }
  }
  return StrCat("variable \"", plan[value].name, "\"");
}

}  // namespace

// Probe 0 is the plan itself. Then, with even LoDs: the same counts, each class with fewer in turn,
// all with fewer, all with the fewest that the plan serves: a shape rule may clamp. A body, whose
// counts may be small, is tried with more instead of fewer. Last, unless an op refuses that, the
// same counts with LoDs that differ from feed to feed: most counts that only happen to be equal
// differ there. Find compares the rest in each run.
struct PlanRows::Probes {
  std::vector<std::vector<int64_t>> counts;
  size_t classes = 0;
  int64_t change = -1;  // from probe 1 to those of Other

  size_t size() const { return counts.size(); }
  // The probe in which only this class has another count than in probe 1.
  size_t Other(size_t index) const { return 2 + index; }
};

PlanRows::PlanRows(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                   const CountClasses& classes, Kind kind)
    : kind_(kind) {
  FeedMetas feeds;
  for (const ValueId feed : plan.feeds) feeds.emplace_back(plan[feed].name, plan[feed].meta);
  const bool is_body = kind == Kind::kBody;
  const std::vector<int64_t> capacity = is_body ? classes.counts() : classes.Capacity();
  const int64_t change = is_body ? 1 : -1;
  std::vector<FeedMetas> assumed = {feeds, classes.Even(feeds, capacity)};
  std::vector<std::vector<int64_t>> by_class = {capacity, capacity};
  const auto assume = [&](std::vector<int64_t> counts) {
    assumed.push_back(classes.Even(feeds, counts));
    by_class.push_back(std::move(counts));
  };
  std::vector<int64_t> all_other = capacity;
  for (size_t i = 0; i < capacity.size(); ++i) {
    std::vector<int64_t> other = capacity;
    other[i] += change;
    all_other[i] += change * (2 + static_cast<int64_t>(i % 4));
    assume(std::move(other));
  }
  assume(std::move(all_other));
  std::vector<int64_t> fewest;
  for (const int64_t count : capacity) fewest.push_back(is_body ? 1 : LeastFor(count));
  assume(std::move(fewest));
  assumed.push_back(classes.Uneven(feeds, capacity));
  by_class.push_back(capacity);

  Probes probes{.counts = {}, .classes = capacity.size(), .change = change};
  std::vector<Inference> inferred;
  std::vector<RunLoDs> derived;
  for (size_t i = 0; i < assumed.size(); ++i) {
    RunLoDs run;
    try {
      lods.Derive(LoDsOf(assumed[i]), &run);
      inferred.emplace_back(registry, plan, assumed[i], lods, run);
    } catch (const Error& error) {
      // Some ops want feeds with equal LoDs.
      if (i + 1 == assumed.size()) break;
      // An iteration with the fewest rows may never come.
      if (is_body && i + 2 == assumed.size()) {
        has_limits_ = true;
        continue;
      }
      throw Error(ErrorCode::kUnimplemented,
                  StrCat("no plan for all counts ", is_body ? "up" : "that round up", " to (",
                         Join(capacity, ", "), "): an op refuses some of them: ", error.what()));
    }
    if (i == 0) {
      for (const LoD& lod : run.of_groups) {
        counts_of_groups_.push_back(lod.empty() ? 0 : lod.size() + 1);
      }
    }
    AppendCountsOfGroups(run, counts_of_groups_, &by_class[i]);
    probes.counts.push_back(std::move(by_class[i]));
    derived.push_back(std::move(run));
  }
  CheckGivenAttributes(plan, inferred);
  capacity_ = probes.counts[0];
  FindEqualCounts(probes);
  // Where the rows of each group are among the counts.
  std::vector<std::optional<size_t>> rows_of_group;
  size_t place = capacity.size();
  for (const LoD& lod : derived[0].of_groups) {
    place += lod.empty() ? 0 : lod.size() + 1;
    rows_of_group.push_back(lod.empty() ? std::nullopt : std::optional<size_t>(place - 1));
  }
  std::set<ValueId> contiguous;
  for (const ContiguousValues& list : plan.contiguous) {
    contiguous.insert(list.values.begin(), list.values.end());
  }
  using Key = std::pair<std::optional<size_t>, std::vector<int64_t>>;
  std::map<Key, size_t> form_of_rows;
  for (const ValueId id : plan.ids()) {
    const Shape& planned = plan[id].meta.shape;
    const int axis = planned.rank() > 1 && planned[0] == 0 ? 1 : 0;
    std::vector<int64_t> rows;
    bool varies = inferred[0][id].shape != planned;
    bool fits = !varies;
    for (size_t i = 0; i < inferred.size(); ++i) {
      const Shape& shape = inferred[i][id].shape;
      varies = varies || shape != planned;
      fits = fits && DifferInRowsAlone(shape, planned, axis);
      rows.push_back(shape.rank() <= axis ? 1 : shape[axis]);
    }
    // A LoD that a rule makes of shapes, and not of other LoDs, is known for the plan's only.
    for (size_t i = 0; i < inferred.size(); ++i) {
      const LoD* lod = lods.In(derived[i], id);
      const auto& made = inferred[i][id].lod;
      const bool is_known = lod == nullptr || made == nullptr || made->offsets == *lod;
      varies = varies || !is_known;
      fits = fits && is_known;
    }
    if (!varies || plan[id].meta.is_array) continue;
    // Their storage has a fixed size, or others know where it lies.
    fits = fits && plan[id].storage != Storage::kScope && !contiguous.contains(id);
    // The rows of a ragged value are those of its own LoD, whatever other counts are equal.
    const std::optional<size_t> group = lods.GroupOf(id) ? lods.GroupOf(id) : lods.ShapeGroupOf(id);
    const std::optional<size_t> of_group = group ? rows_of_group[*group] : std::nullopt;
    auto [form, is_new] = form_of_rows.emplace(Key(of_group, rows), forms_.size());
    if (is_new && fits) {
      std::vector<Form> found;
      if (of_group) found = FormsOf(probes, rows, *of_group, *of_group + 1);
      // Of a rank table, those of the sequences.
      if (of_group && found.empty()) {
        const size_t levels = derived[0].of_groups[*group].size();
        found = FormsOf(probes, rows, *of_group - levels, *of_group);
      }
      if (found.empty() && !lods.GroupOf(id)) {
        found = FormsOf(probes, rows, 0, probes.counts[0].size());
        if (std::optional<Form> sum = SumOf(probes, rows)) found.push_back(std::move(*sum));
      }
      fits = !found.empty();
      for (size_t i = 1; i < found.size(); ++i) rivals_.emplace_back(forms_.size(), found[i]);
      if (fits) forms_.push_back(std::move(found.front()));
    }
    if (!fits) {
      throw Error(ErrorCode::kUnimplemented,
                  StrCat("the shape ", planned, " of \"", plan[id].name,
                         "\" or its LoD depends on the rows of ragged feeds, and not by an affine "
                         "form in its first dim"))
          .WithContext(MakerOf(plan, id));
    }
    values_.push_back({.value = id, .form = form->second, .axis = axis});
  }
  if (is_body && !has_limits_) {
    const std::vector<int64_t> none(capacity.size(), 0);
    has_limits_ = HasLimits(registry, plan, lods, classes.Even(feeds, none), none.size());
  }
}

bool PlanRows::HasLimits(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                         const FeedMetas& without_rows, size_t classes) const {
  try {
    RunLoDs run;
    lods.Derive(LoDsOf(without_rows), &run);
    const Inference inferred(registry, plan, without_rows, lods, run);
    std::vector<int64_t> counts(classes, 0), rows;
    if (!Evaluate(run, &counts, &rows)) return true;
    std::map<ValueId, Shape> expected;
    for (const auto& [value, form, axis] : values_) {
      Shape& shape = expected.emplace(value, plan[value].meta.shape).first->second;
      shape[axis] = rows[form];
    }
    for (const ValueId id : plan.ids()) {
      const auto found = expected.find(id);
      const Shape& shape = found == expected.end() ? plan[id].meta.shape : found->second;
      if (!plan[id].meta.is_array && inferred[id].shape != shape) return true;
    }
    return false;
  } catch (const Error&) {
    return true;
  }
}

void PlanRows::FindEqualCounts(const Probes& probes) {
  // By the values in all probes: the first count that has them.
  std::map<std::vector<int64_t>, size_t> first;
  for (size_t count = 0; count < capacity_.size(); ++count) {
    std::vector<int64_t> values;
    for (const std::vector<int64_t>& probe : probes.counts) values.push_back(probe[count]);
    const auto [found, is_new] = first.emplace(std::move(values), count);
    if (!is_new) equal_counts_.emplace_back(found->second, count);
  }
}

std::optional<int64_t> PlanRows::Evaluate(const Form& form, const std::vector<int64_t>& counts) {
  int64_t sum = form.constant;
  for (const Term& term : form.terms) {
    if (!AddProduct(term.factor, counts[term.count], &sum)) return std::nullopt;
  }
  if (sum % form.divisor != 0) return std::nullopt;
  return sum / form.divisor;
}

// Returns (a * count + b) / c with the rows of every probe, if there is one.
std::optional<PlanRows::Form> PlanRows::MultipleOf(const Probes& probes,
                                                   const std::vector<int64_t>& rows, size_t count) {
  const int64_t at_0 = probes.counts[0][count];
  for (size_t i = 1; i < probes.size(); ++i) {
    const int64_t change = probes.counts[i][count] - at_0;
    if (change == 0) continue;
    const int64_t sign = change < 0 ? -1 : 1;
    Form form{.terms = {{.count = count, .factor = (rows[i] - rows[0]) * sign}},
              .constant = 0,
              .divisor = change * sign,
              .capacity = rows[0]};
    const bool fits = AddProduct(rows[0], form.divisor, &form.constant) &&
                      AddProduct(-form.terms[0].factor, at_0, &form.constant);
    if (!fits) return std::nullopt;
    for (size_t k = 0; k < probes.size(); ++k) {
      if (Evaluate(form, probes.counts[k]) != rows[k]) return std::nullopt;
    }
    return form;
  }
  return std::nullopt;
}

// Returns the sum of multiples of classes that has the rows of every probe, if there is one.
std::optional<PlanRows::Form> PlanRows::SumOf(const Probes& probes,
                                              const std::vector<int64_t>& rows) {
  Form form{.terms = {}, .constant = rows[1], .divisor = 1, .capacity = rows[0]};
  for (size_t i = 0; i < probes.classes; ++i) {
    const int64_t factor = (rows[probes.Other(i)] - rows[1]) * probes.change;
    if (factor != 0) form.terms.push_back({.count = i, .factor = factor});
    if (!AddProduct(-factor, probes.counts[1][i], &form.constant)) return std::nullopt;
  }
  for (size_t k = 0; k < probes.size(); ++k) {
    if (Evaluate(form, probes.counts[k]) != rows[k]) return std::nullopt;
  }
  return form;
}

std::vector<PlanRows::Form> PlanRows::FormsOf(const Probes& probes,
                                              const std::vector<int64_t>& rows, size_t begin,
                                              size_t end) {
  std::vector<Form> forms;
  for (size_t count = begin; count < end; ++count) {
    std::optional<Form> form = MultipleOf(probes, rows, count);
    if (form) forms.push_back(std::move(*form));
  }
  return forms;
}

bool PlanRows::IsKnown(const Form& form, const std::vector<int64_t>& counts) {
  return std::ranges::all_of(form.terms, [&](const Term& term) { return counts[term.count] >= 0; });
}

bool PlanRows::Evaluate(const RunLoDs& lods, std::vector<int64_t>* counts,
                        std::vector<int64_t>* rows) const {
  AppendCountsOfGroups(lods, counts_of_groups_, counts);
  rows->clear();
  // A LoD may have another number of levels than the plan's.
  if (counts->size() != capacity_.size()) return false;
  const int64_t least = kind_ == Kind::kBody ? 0 : 1;
  const auto fits = [&](int64_t count, int64_t capacity) {
    return count == -1 || (count >= least && count <= capacity);
  };
  for (size_t i = 0; i < counts->size(); ++i) {
    if (!fits((*counts)[i], capacity_[i])) return false;
  }
  const bool are_equal = std::ranges::all_of(equal_counts_, [&](const auto& pair) {
    const int64_t first = (*counts)[pair.first];
    const int64_t second = (*counts)[pair.second];
    return first == second || first < 0 || second < 0;
  });
  if (!are_equal) return false;
  for (const Form& form : forms_) {
    rows->push_back(-1);
    if (!IsKnown(form, *counts)) continue;
    const std::optional<int64_t> found = Evaluate(form, *counts);
    if (!found || *found < least || *found > form.capacity) return false;
    rows->back() = *found;
  }
  return std::ranges::all_of(rivals_, [&](const auto& rival) {
    const int64_t found = (*rows)[rival.first];
    return found < 0 || !IsKnown(rival.second, *counts) || Evaluate(rival.second, *counts) == found;
  });
}

namespace {

// Tries which counts may change alone.
class ClassSearch {
 public:
  ClassSearch(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods)
      : registry_(registry), plan_(plan), lods_(lods) {
    for (const ValueId feed : plan.feeds) {
      const TensorMeta& meta = plan[feed].meta;
      feeds_.emplace_back(plan[feed].name, meta);
      std::vector<int64_t> counts;
      if (const LoDGroup* lod = CountedLoD(meta)) {
        AppendCounts(lod->offsets, &counts);
      } else {
        counts = {meta.shape[0]};
      }
      std::vector<size_t>& classes = classes_.emplace_back();
      for (const int64_t count : counts) {
        classes.push_back(counts_.size());
        class_of_.push_back(counts_.size());
        counts_.push_back(count);
      }
    }
  }

  CountClasses Run() {
    // Pairs first: a group is found by leaving out one class after the other, and two that an op
    // wants to be equal can only be left out together.
    bool is_any = true;
    while (is_any) {
      for (size_t count = 0; count < counts_.size(); ++count) {
        while (IsStuck(count) && MergeWithOne(count)) {
        }
      }
      is_any = false;
      for (size_t count = 0; count < counts_.size() && !is_any; ++count) {
        is_any = IsStuck(count) && MergeWithSeveral(count);
      }
    }
    FindFixed();
    return Result();
  }

 private:
  // Returns whether this count stands for a class that can't change alone.
  bool IsStuck(size_t count) const {
    return class_of_[count] == count && !Agrees(Reached({count}));
  }

  bool Agrees(size_t reached) const { return reached > plan_.instructions.size(); }

  // Returns the classes that one may be tied to.
  std::vector<size_t> OthersThan(size_t changed) const {
    std::vector<size_t> others;
    for (size_t other = 0; other < counts_.size(); ++other) {
      const bool may_be_tied =
          class_of_[other] == other && other != changed && counts_[other] == counts_[changed];
      if (may_be_tied) others.push_back(other);
    }
    return others;
  }

  // Merges a class that can't change alone with another, such that more ops agree. Returns false if
  // there is none.
  bool MergeWithOne(size_t changed) {
    const size_t before = Reached({changed});
    for (const size_t other : OthersThan(changed)) {
      if (Reached({changed, other}) <= before) continue;
      Merge({changed, other});
      return true;
    }
    return false;
  }

  // Merges a class that can't change alone with several, such that more ops agree and none of them
  // can be left out: one op may want them all to be equal. Returns false if there are none.
  bool MergeWithSeveral(size_t changed) {
    const size_t before = Reached({changed});
    const auto helps = [&](const std::set<size_t>& merged) { return Reached(merged) > before; };
    const std::vector<size_t> others = OthersThan(changed);
    std::set<size_t> merged(others.begin(), others.end());
    merged.insert(changed);
    if (!helps(merged)) return false;
    for (const size_t other : others) {
      merged.erase(other);
      if (!helps(merged)) merged.insert(other);
    }
    Merge(merged);
    return true;
  }

  void Merge(const std::set<size_t>& merged) {
    for (size_t& of_count : class_of_) {
      if (merged.contains(of_count)) of_count = *merged.begin();
    }
  }

  // Dense feeds whose rows can't change, as they meet fixed ones, don't count.
  void FindFixed() {
    for (size_t feed = 0; feed < feeds_.size(); ++feed) {
      if (CountedLoD(feeds_[feed].second) != nullptr) continue;
      const size_t found = class_of_[classes_[feed].back()];
      if (!Agrees(Reached({found}))) fixed_.insert(feed);
    }
  }

  // Returns how many rules agree if the counts of these classes change: one more than there are
  // instructions if all do.
  size_t Reached(const std::set<size_t>& changed) const {
    std::vector<int64_t> counts = counts_;
    for (size_t i = 0; i < counts.size(); ++i) {
      // More than 1, so that a dim that was 1 doesn't fit by chance.
      if (changed.contains(class_of_[i])) counts[i] += 2;
    }
    const CountClasses classes(classes_, counts_);
    const FeedMetas feeds = classes.Even(feeds_, counts);
    size_t reached = 0;
    try {
      RunLoDs run;
      lods_.Derive(LoDsOf(feeds), &run);
      const Inference inference(registry_, plan_, feeds, lods_, run, &reached);
      return reached + 1;
    } catch (const Error&) {
      return reached;
    }
  }

  CountClasses Result() const {
    std::vector<int64_t> counts;
    std::map<size_t, size_t> numbers;
    std::vector<std::vector<size_t>> classes = classes_;
    for (size_t feed = 0; feed < classes.size(); ++feed) {
      auto& of_feed = classes[feed];
      if (fixed_.contains(feed)) of_feed.clear();
      for (size_t& count : of_feed) {
        const auto [number, is_new] = numbers.emplace(class_of_[count], counts.size());
        if (is_new) counts.push_back(counts_[count]);
        count = number->second;
      }
    }
    return {std::move(classes), std::move(counts)};
  }

  const OpRegistry& registry_;
  const Plan& plan_;
  const PlanLoDs& lods_;
  FeedMetas feeds_;
  std::vector<std::vector<size_t>> classes_;  // by feed: the places of its counts
  std::vector<int64_t> counts_;
  std::vector<size_t> class_of_;  // by count: the first count of its class
  std::set<size_t> fixed_;        // feeds
};

}  // namespace

CountClasses FindClasses(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods) {
  return ClassSearch(registry, plan, lods).Run();
}

}  // namespace skiff
