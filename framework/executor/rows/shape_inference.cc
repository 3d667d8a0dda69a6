#include "framework/executor/rows/shape_inference.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/executor/rows/known_contents.h"
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

std::string PlaceOf(const Instruction& instruction) {
  return DescribeOp(*instruction.op, instruction.block, instruction.position);
}

[[noreturn]] void Refuse(const Instruction& instruction, const std::string& what) {
  throw Error(ErrorCode::kUnimplemented, what).WithContext(PlaceOf(instruction));
}

}  // namespace

FeedMetas FeedsOf(const Plan& plan) {
  FeedMetas feeds;
  for (const ValueId feed : plan.feeds) feeds.emplace_back(plan[feed].name, plan[feed].meta);
  return feeds;
}

ShapeInference::ShapeInference(const OpRegistry& registry, const Plan& plan, const PlanLoDs& lods,
                               const FeedMetas& feeds, size_t* reached)
    : registry_(registry), plan_(plan), metas_(plan.values.size()) {
  lods.Derive(LoDsOf(feeds), &run_);
  for (const ValueId id : plan.ids()) {
    metas_[id] = plan[id].meta;
    if (plan[id].storage == Storage::kArena) AssumeUnmade(id, lods);
  }
  for (size_t i = 0; i < feeds.size(); ++i) metas_[plan.feeds[i]] = feeds[i].second;
  for (const Instruction& instruction : plan.instructions) {
    Infer(instruction);
    if (reached != nullptr) ++*reached;
  }
}

void ShapeInference::AssumeUnmade(ValueId id, const PlanLoDs& lods) {
  TensorMeta& meta = metas_[id];
  meta.lod = nullptr;
  // What is known when the plan is made has a fixed shape.
  if (meta.shape.rank() == 0 || meta.contents != nullptr) return;
  if (const LoD* lod = lods.In(run_, id)) {
    meta.lod = std::make_shared<const LoDGroup>(LoDGroup{.offsets = *lod});
    meta.shape[0] = RowsOf(*lod);
  } else if (const auto group = lods.ShapeGroupOf(id)) {
    meta.shape[0] = RowsOf(run_.of_groups[*group]);
  } else if (meta.shape[0] != 1) {
    unknown_.insert(id);
  }
}

void ShapeInference::Infer(const Instruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::kLoop:
      return InferLoop(instruction);
    case InstructionKind::kFused:
      for (const Instruction& member : instruction.members) Infer(member);
      return;
    case InstructionKind::kCopy:
      return InferCopy(instruction);
    default:
      return InferOp(instruction);
  }
}

void ShapeInference::TakeRows(const TensorMeta& from, ValueId value) {
  metas_[value].shape = from.shape;
  metas_[value].lod = from.lod;
}

void ShapeInference::InferCopy(const Instruction& instruction) {
  const ValueId copy = instruction.outputs[0];
  const TensorMeta& from = metas_[instruction.inputs[0]];
  TakeRows(from, copy);
  metas_[copy].contents = from.contents;
  unknown_.erase(copy);
}

bool ShapeInference::Varies(ValueId value) const {
  return value && metas_[value].shape != plan_[value].meta.shape;
}

void ShapeInference::CheckHandedOn(const Instruction& instruction) const {
  const Loop& loop = *instruction.loop;
  for (const LoopFeed& feed : loop.feeds) {
    // What is handed on keeps its rows, which LoopRows knows.
    const bool keeps_rows = feed.kind == LoopFeed::Kind::kCarried && loop.joint_body != nullptr;
    if (feed.kind == LoopFeed::Kind::kInvariant || keeps_rows || feed.input < 0) continue;
    const ValueId input = instruction.inputs[static_cast<size_t>(feed.input)];
    if (Varies(input)) {
      Refuse(instruction,
             StrCat("the rows of \"", plan_[input].name, "\", which iterations hand on, vary"));
    }
  }
}

// What a loop leaves has the shapes that it found, or fixed ones.
void ShapeInference::InferLoop(const Instruction& instruction) {
  const Loop& loop = *instruction.loop;
  CheckHandedOn(instruction);
  const bool any_varies =
      std::ranges::any_of(instruction.inputs, [&](ValueId input) { return Varies(input); });
  const bool knows_inside = loop.joint_body != nullptr && !loop.is_gradient;
  std::optional<ShapeInference> inside;
  for (const LoopFetch& fetch : loop.fetches) {
    if (fetch.output < 0) continue;
    const ValueId output = instruction.outputs[static_cast<size_t>(fetch.output)];
    const bool is_last = fetch.kind == LoopFetch::Kind::kLast;
    if (fetch.like >= 0) {
      TakeRows(metas_[instruction.inputs[static_cast<size_t>(fetch.like)]], output);
    } else if (any_varies && is_last && knows_inside) {
      if (!inside) inside.emplace(InsideOf(instruction));
      TakeRows((*inside)[fetch.value], output);
    } else if (any_varies && (is_last || fetch.kind == LoopFetch::Kind::kPart)) {
      Refuse(instruction, StrCat("\"", plan_[output].name, "\" may have other rows in each run"));
    }
  }
  for (const ValueId output : instruction.outputs) {
    if (output) unknown_.erase(output);
  }
}

ShapeInference ShapeInference::InsideOf(const Instruction& instruction) const {
  const Loop& loop = *instruction.loop;
  FeedMetas feeds;
  for (const LoopFeed& feed : loop.feeds) {
    const PlanValue& value = loop.body[feed.value];
    feeds.emplace_back(
        value.name,
        feed.input < 0 ? value.meta : metas_[instruction.inputs[static_cast<size_t>(feed.input)]]);
  }
  return ShapeInference(registry_, loop.body, PlanLoDs(loop.body), feeds);
}

std::vector<TensorMeta> ShapeInference::InputsOf(const Instruction& instruction) const {
  std::vector<TensorMeta> inputs;
  for (const ValueId input : instruction.inputs) {
    if (unknown_.contains(input)) {
      Refuse(instruction,
             StrCat("reads the rows of \"", plan_[input].name, "\" before an op makes it"));
    }
    inputs.push_back(input ? metas_[input] : TensorMeta{});
  }
  return inputs;
}

void ShapeInference::InferOp(const Instruction& instruction) {
  std::vector<TensorMeta> outputs;
  for (const ValueId output : instruction.outputs) {
    outputs.push_back(output ? metas_[output] : TensorMeta{});
    outputs.back().lod = nullptr;
    outputs.back().shape_lod = nullptr;
  }
  OpContext context(*instruction.op, *instruction.def, InputsOf(instruction), std::move(outputs),
                    plan_.place);
  try {
    InferOutputs(&context);
  } catch (const Error& error) {
    throw error.WithContext(PlaceOf(instruction));
  }
  for (size_t i = 0; i < instruction.outputs.size(); ++i) {
    const ValueId output = instruction.outputs[i];
    if (!output) continue;
    unknown_.erase(output);
    TakeRows(context.outputs()[i], output);
    metas_[output].shape_lod = context.outputs()[i].shape_lod;
  }
  const auto made = EvaluateKnown(registry_, plan_, instruction, context);
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i] != nullptr) metas_[instruction.outputs[i]].contents = made[i];
  }
}

}  // namespace skiff
