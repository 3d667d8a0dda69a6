#include "framework/executor/rows/loop_rows.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/executor/rows/count_class_search.h"
#include "framework/executor/rows/known_contents.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/kernel.h"

namespace skiff {

LoopRows::LoopRows(const OpRegistry& registry, const Loop& loop, const std::vector<bool>& varies)
    : registry_(registry), body_(loop.body), shapes_(*loop.joint_body) {
  AddSources(loop, varies);
  shapes_.feeds.clear();
  for (const Source& source : sources_) {
    shapes_.feeds.push_back(source.value);
    shapes_[source.value].storage = Storage::kFeed;
  }
  std::erase_if(shapes_.instructions,
                [](const Instruction& instruction) { return instruction.sets_rows; });
  lods_.emplace(shapes_);
  classes_ = FindClasses(registry, shapes_, *lods_);
  rows_.emplace(registry, shapes_, *lods_, *classes_, ServedCounts::kBody);
  for (const auto& [value, form, axis] : rows_->values()) form_of_[value] = form;
  for (const LoopFeed& feed : loop.feeds) {
    if (feed.kind == LoopFeed::Kind::kCarried) carried_.insert(feed.value);
  }
  // In the gradient half, those of the forward half.
  for (const LoopStash& stash : loop.stashes) carried_.insert(stash.value);
  shapes_.instructions.clear();
  of_sources_.resize(sources_.size());
  next_lods_ = lods_->Room();
}

void LoopRows::AddSources(const Loop& loop, const std::vector<bool>& varies) {
  const Plan& joint = *loop.joint_body;
  for (size_t i = 0; i < joint.feeds.size(); ++i) {
    const TensorMeta& meta = joint[joint.feeds[i]].meta;
    const bool is_of_other_half =
        loop.joint_body_inputs[i] == Loop::kOnlyTheOtherHalfKnows && meta.shape.rank() > 0;
    if (!varies[i] && CountedLoD(meta) == nullptr && !is_of_other_half) continue;
    sources_.push_back(
        {.value = joint.feeds[i], .input = loop.joint_body_inputs[i], .is_feed = true});
  }
  feed_count_ = sources_.size();
  for (const Instruction& instruction : joint.instructions) {
    if (!instruction.sets_rows) continue;
    for (const ValueId output : instruction.outputs) {
      const bool has_rows =
          output && !joint[output].meta.is_array && joint[output].meta.shape.rank();
      if (has_rows) sources_.push_back({.value = output});
    }
  }
}

void LoopRows::Bind(ValueTensors* values) {
  values_ = values;
  lods_->Bind(values);
}

bool LoopRows::Varies(const Instruction& instruction) const {
  const auto varies = [&](ValueId value) { return Varies(value); };
  return std::ranges::any_of(instruction.inputs, varies) ||
         std::ranges::any_of(instruction.outputs, varies);
}

void LoopRows::NoteFeeds(const KernelContext& context) {
  for (Source& source : sources_) {
    if (source.input < 0 || context.inputs[static_cast<size_t>(source.input)] == nullptr) continue;
    const Tensor& tensor = context.input(source.input);
    source.lod = &tensor.lod();
    const bool has_shape = tensor.shape().rank() > 0;
    // The data of an input that is read for its rows only may never have been made.
    source.is_known = has_shape || !source.lod->empty();
    if (has_shape) {
      source.rows = tensor.shape()[0];
    } else if (source.is_known) {
      source.rows = static_cast<int64_t>(source.lod->back().back());
    }
  }
}

void LoopRows::StartIteration() {
  for (Source& source : sources_) source.is_known = source.is_known && source.is_feed;
}

void LoopRows::Note(const Instruction& instruction) {
  for (const ValueId output : instruction.outputs) {
    const auto source = std::ranges::find(sources_, output, &Source::value);
    if (!output || source == sources_.end()) continue;
    const Tensor& tensor = *values_->Of(output);
    source->is_known = true;
    source->rows = tensor.shape()[0];
    source->lod = &tensor.lod();
  }
}

void LoopRows::Apply() {
  current_has_rows_ = false;
  followed_ = 0;
  agreed_now_ = nullptr;
  counts_.assign(classes_->counts().size(), -1);
  bool fits = true;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    of_sources_[i] = source.is_known ? source.lod : nullptr;
    if (!source.is_known) continue;
    fits = fits && (classes_->Varies(i) ? classes_->Gather(i, source.rows, *source.lod, &counts_)
                                        : source.rows == body_[source.value].meta.shape[0]);
  }
  if (!fits) Refuse();
  lods_->Derive(of_sources_, &next_lods_);
  if (!rows_->Evaluate(next_lods_, &counts_, &by_form_)) Refuse();
  lods_->Set(&next_lods_);
  for (const auto& [value, form, axis] : rows_->values()) {
    Tensor& tensor = *values_->Of(value);
    const Storage storage = body_[value].storage;
    const bool is_own =
        storage == Storage::kArena || storage == Storage::kStack || carried_.contains(value);
    if (is_own && by_form_[form] >= 0 && tensor.has_data()) {
      SetRowsAt(axis, by_form_[form], &tensor);
    }
  }
}

std::vector<bool>& LoopRows::Agreed() {
  // So many numbers at most: 8 MiB.
  constexpr size_t kMostKept = size_t{1} << 20;
  if (agreed_now_ != nullptr) return *agreed_now_;
  // Its memory is used again.
  key_.assign(counts_.begin(), counts_.end());
  lods_->AppendOffsets(&key_);
  const auto known = agreed_.find(key_);
  if (known != agreed_.end()) return *(agreed_now_ = &known->second);
  kept_ += key_.size();
  if (kept_ > kMostKept) {
    agreed_.clear();
    kept_ = key_.size();
  }
  agreed_now_ = &agreed_[key_];
  agreed_now_->resize(body_.instructions.size());
  return *agreed_now_;
}

void LoopRows::CheckRules(size_t index) {
  if (!rows_->has_limits() || Agreed()[index]) return;
  const Plan& current = CurrentBody(index);
  const Instruction& instruction = current.instructions[index];
  if (instruction.kind == InstructionKind::kOp) CheckRule(current, instruction);
  for (const Instruction& member : instruction.members) CheckRule(current, member);
  Agreed()[index] = true;
}

void LoopRows::CheckRule(const Plan& current, const Instruction& instruction) {
  PrepareContext context = ContextOf(current, instruction);
  InferOutputs(&context);
  if (instruction.sets_rows) return;
  for (size_t i = 0; i < instruction.outputs.size(); ++i) {
    const ValueId output = instruction.outputs[i];
    if (!output || current[output].meta.is_array) continue;
    const Shape& found = context.outputs()[i].shape;
    const Shape& expected = current[output].meta.shape;
    SKIFF_ENFORCE(found == expected, kInvalidArgument, "\"", current[output].name,
                  "\" would have the shape ", found, " in this iteration, planned ", expected);
  }
}

void LoopRows::Refuse() const {
  std::vector<std::string> found;
  for (const Source& source : sources_) {
    if (!source.is_known) continue;
    found.push_back(StrCat("\"", body_[source.value].name, "\" has ", source.rows, ", planned ",
                           body_[source.value].meta.shape[0]));
  }
  Throw(ErrorCode::kInvalidArgument, "the rows of an iteration are more than planned, or differ ",
        "where the plan has as many: ", Join(found, "; "));
}

int64_t LoopRows::PlaceInHistory(int64_t iteration, size_t source) const {
  return iteration * static_cast<int64_t>(sources_.size() - feed_count_) +
         static_cast<int64_t>(source - feed_count_);
}

void LoopRows::Save(int64_t iteration, TensorArray* history) const {
  for (size_t i = feed_count_; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    if (!source.is_known) continue;
    // Without elements: only its rows and LoD count.
    history->Make(PlaceInHistory(iteration, i), Shape({source.rows, 0}), DType::kUint8,
                  *source.lod);
  }
}

void LoopRows::Restore(int64_t iteration, const TensorArray& history) {
  for (size_t i = feed_count_; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    const Tensor* saved = history.Find(PlaceInHistory(iteration, i));
    source.is_known = saved != nullptr;
    if (saved == nullptr) continue;
    source.rows = saved->shape()[0];
    source.lod = &saved->lod();
    values_->Of(source.value)->ShareLoD(saved->shared_lod());
  }
}

const Plan& LoopRows::CurrentBody(size_t instruction) {
  if (!current_body_) current_body_ = body_;
  if (!current_has_rows_) GiveRows(&*current_body_);
  current_has_rows_ = true;
  if (followed_ < instruction) {
    FollowShapes(registry_, body_, followed_, instruction, &*current_body_);
    followed_ = instruction;
  }
  return *current_body_;
}

void LoopRows::GiveRows(Plan* current) const {
  for (const auto& [value, form, axis] : rows_->values()) {
    if (by_form_[form] >= 0) (*current)[value].meta.shape[axis] = by_form_[form];
  }
  lods_->GiveTo(current);
}

}  // namespace skiff
