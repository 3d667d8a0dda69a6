#include "framework/executor/lowering/emit_loop.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

// Returns whether rows may differ from run to run or from iteration to iteration.
bool RowsMayVary(const BlockLowering& outer, const Plan& body) {
  const Plan& plan = outer.plan();
  return outer.inputs().rows_vary ||
         std::ranges::any_of(body.instructions, &Instruction::sets_rows) ||
         std::ranges::any_of(plan.instructions, &Instruction::sets_rows) ||
         std::ranges::any_of(plan.values,
                             [](const PlanValue& value) { return value.meta.lod != nullptr; });
}

// The instruction of one half while it is made.
struct HalfInstruction {
  HalfInstruction(const BlockOp& op, Plan body) {
    instruction.kind = InstructionKind::kLoop;
    instruction.place = body.place;
    instruction.op = op.op;
    instruction.def = op.def;
    instruction.block = op.block->index();
    instruction.position = op.position;
    loop.body = std::move(body);
  }

  // Adds a value of the outer plan, unless it is an input already. Returns the index.
  int AddInput(ValueId value, bool reads_data) {
    const auto [found, is_new] =
        indices.emplace(value, static_cast<int>(instruction.inputs.size()));
    if (!is_new) {
      if (reads_data) instruction.reads_data[static_cast<size_t>(found->second)] = true;
      return found->second;
    }
    instruction.inputs.push_back(value);
    instruction.reads_data.push_back(reads_data);
    return found->second;
  }

  // Adds an input that is what the variable is at the gradient op.
  int AddLateInput(const std::string& name) {
    const int index = static_cast<int>(instruction.inputs.size());
    instruction.inputs.emplace_back();
    instruction.reads_data.push_back(true);
    reads_later.emplace_back(static_cast<size_t>(index), name);
    return index;
  }

  // Returns -1 for zeros.
  int AddInput(const OuterInput& input, bool reads_data) {
    if (input.value) return AddInput(input.value, reads_data);
    return input.read_later.empty() ? -1 : AddLateInput(input.read_later);
  }

  // Adds an output; its value may be given later. Returns the index.
  int AddOutput(ValueId value) {
    instruction.outputs.push_back(value);
    return static_cast<int>(instruction.outputs.size()) - 1;
  }

  // Returns the instruction, complete with its loop.
  Instruction Finish() {
    instruction.loop = std::make_shared<const Loop>(std::move(loop));
    return std::move(instruction);
  }

  Instruction instruction;
  Loop loop;
  // PreparedGradient::defines and reads.
  std::vector<PreparedGradient::Definition> defines;
  std::vector<std::pair<size_t, std::string>> reads_later;
  std::map<ValueId, int> indices;  // outer value -> index of the input
};

class LoopEmission {
 public:
  LoopEmission(JointBody* body, const LoopForm& form, LoopHalves halves)
      : body_(*body),
        form_(form),
        outer_(body->outer()),
        ops_(body->ops()),
        halves_(std::move(halves)) {
    const Plan& plan = body->plan();
    if (!RowsMayVary(outer_, plan)) return;
    joint_body_ = std::make_shared<const Plan>(plan);
    sets_rows_ = std::ranges::any_of(plan.instructions, &Instruction::sets_rows);
  }

  void Run() {
    HalfInstruction forward = Make(ops_.forward, &halves_.forward);
    AddJointBody(halves_.forward, &forward);
    if (joint_body_ != nullptr && sets_rows_ && ops_.HasGradient()) {
      history_ = outer_.AddValue(ops_.forward.op->type + ".rows",
                                 {.dtype = DType::kUint8, .is_array = true}, Storage::kKernelOwned);
      forward.loop.history = forward.AddOutput(history_);
    }
    AddStacks(&forward);
    runs_ = form_.Runs(&body_);
    AddRuns(&forward);
    if (runs_.is_counted && ops_.HasGradient()) {
      count_ = outer_.AddValue(ops_.forward.op->type + ".count",
                               {.shape = Shape({1}), .dtype = DType::kInt64}, Storage::kArena);
      forward.loop.count_output = forward.AddOutput(count_);
    }
    forward.loop.descending = runs_.descending;
    Define(&forward);
    outer_.Append(forward.Finish());
    if (halves_.gradient) PrepareGradient();
  }

 private:
  HalfInstruction Make(const BlockOp& op, HalfBody* half) {
    HalfInstruction made(op, std::move(half->plan));
    made.loop.is_gradient = &op == &ops_.gradient;
    made.loop.condition_feed = half->condition_feed;
    AddFeeds(*half, &made);
    AddFetches(*half, &made);
    AddScopeReads(*half, &made);
    AddScopeWrites(*half, &made);
    return made;
  }

  static void AddFeeds(const HalfBody& half, HalfInstruction* made) {
    for (const HalfFeed& feed : half.feeds) {
      made->loop.feeds.push_back({.kind = feed.link.kind,
                                  .value = feed.link.value,
                                  .input = made->AddInput(feed.link.input, feed.reads_data)});
    }
  }

  void AddFetches(const HalfBody& half, HalfInstruction* made) const {
    for (const HalfFetch& fetch : half.fetches) {
      const JointFetch& link = fetch.link;
      LoopFetch added{.kind = link.kind, .value = link.value, .feed = link.feed};
      added.input = made->AddInput(fetch.initial, true);
      added.like =
          link.feed < 0 ? added.input : made->loop.feeds[static_cast<size_t>(link.feed)].input;
      if (link.like && joint_body_ != nullptr) added.like = made->AddInput(link.like, false);
      if (!link.defines.empty()) {
        added.output = made->AddOutput({});
        made->defines.push_back({.output = static_cast<size_t>(added.output),
                                 .name = link.defines,
                                 .meta = link.outer_meta});
      }
      made->loop.fetches.push_back(added);
    }
  }

  void AddScopeReads(const HalfBody& half, HalfInstruction* made) const {
    std::map<std::string, int> late_arrays;
    for (const ValueId value : half.scope_reads) {
      const PlanValue& read = made->loop.body[value];
      LoopScopeValue link{.value = value};
      if (made->loop.is_gradient && read.meta.is_array && !OwnsArray(read)) {
        // An array of gradients isn't there yet, or ops in between add to it.
        const auto [known, is_new] = late_arrays.emplace(read.name, -1);
        if (is_new) known->second = made->AddLateInput(read.name);
        link.index = known->second;
      } else if (!OwnsArray(read)) {
        const ValueId outer = outer_.TryRead(read.name);
        if (!outer) continue;  // the body makes it before it reads it
        link.index = made->AddInput(outer, true);
      }
      made->loop.scope_values.push_back(link);
    }
  }

  void AddScopeWrites(const HalfBody& half, HalfInstruction* made) {
    std::map<std::string, int> outputs;
    for (const ValueId value : half.scope_writes) {
      const PlanValue& written = made->loop.body[value];
      LoopScopeValue link{.value = value, .is_output = true};
      if (!OwnsArray(written)) {
        scope_metas_.emplace(written.name, written.meta);
        const auto [known, is_new] = outputs.emplace(written.name, -1);
        if (is_new) known->second = made->AddOutput({});
        link.index = known->second;
      }
      made->loop.scope_values.push_back(link);
    }
    for (const auto& [name, output] : outputs) {
      made->defines.push_back(
          {.output = static_cast<size_t>(output), .name = name, .meta = scope_metas_.at(name)});
    }
  }

  bool OwnsArray(const PlanValue& value) const {
    return value.meta.is_array && body_.lowering().OwnsArray(value.name);
  }

  void AddJointBody(const HalfBody& half, HalfInstruction* made) const {
    made->loop.joint_body = joint_body_;
    if (joint_body_ == nullptr) return;
    const JointLinks& links = body_.links();
    for (const HalfLinks* joint : {&links.forward, &links.gradient}) {
      for (const JointFeed& feed : joint->feeds) {
        const auto at = std::ranges::find(
            half.feeds, feed.value, [](const HalfFeed& of_half) { return of_half.link.value; });
        int input = -1;
        if (feed.input.value) {
          input = made->AddInput(feed.input.value, false);
        } else if (at != half.feeds.end()) {
          input = made->loop.feeds[static_cast<size_t>(at - half.feeds.begin())].input;
        } else if (joint == &links.gradient) {
          input = Loop::kOnlyTheOtherHalfKnows;
        }
        made->loop.joint_body_inputs.push_back(input);
      }
    }
  }

  // Makes the stacks. A value that a stacked carried value becomes is made in the next slot of that
  // one's stack.
  void AddStacks(HalfInstruction* forward) {
    std::map<ValueId, int> outputs;  // by stash
    for (const Stash& stash : halves_.stashes) {
      const PlanValue& value = forward->loop.body[stash.value];
      const int output =
          stash.next_of ? outputs.at(stash.next_of) : forward->AddOutput(MakeStack(value));
      outputs[stash.value] = output;
      stacks_.push_back(forward->instruction.outputs[static_cast<size_t>(output)]);
      if (value.storage != Storage::kFeed) {
        forward->loop.stashes.push_back(LinkOf(stash, output));
        continue;
      }
      std::ranges::find(forward->loop.feeds, stash.value, &LoopFeed::value)->stack = output;
    }
  }

  ValueId MakeStack(const PlanValue& value) {
    const int64_t slots = body_.links().slots;
    // The stack of a loop inside, which is an array itself.
    const bool is_array = slots < 0 || value.storage == Storage::kKernelOwned;
    // One slot more: what a carried value is when the loop ends.
    const bool is_feed = value.storage == Storage::kFeed;
    const int64_t bytes =
        is_array ? 0 : MultiplyCounts(slots + (is_feed ? 1 : 0), StackSlotBytes(value));
    const TensorMeta meta{.shape = Shape({bytes}), .dtype = DType::kUint8, .is_array = is_array};
    return outer_.AddValue(value.name + "@STACK", meta,
                           is_array ? Storage::kKernelOwned : Storage::kArena);
  }

  static LoopStash LinkOf(const Stash& stash, int index) {
    return {.value = stash.value, .index = index, .shift = stash.next_of ? 1 : 0};
  }

  void AddRuns(HalfInstruction* half) const {
    half->loop.max_iterations = outer_.inputs().max_loop_iterations;
    half->loop.iterations = runs_.iterations;
    if (runs_.condition) half->loop.condition_input = half->AddInput(runs_.condition, true);
  }

  void Define(HalfInstruction* forward) {
    for (const PreparedGradient::Definition& definition : forward->defines) {
      const ValueId result = outer_.Write(*ops_.forward.def, definition.name, definition.meta);
      forward->instruction.outputs[definition.output] = result;
      const auto fetch = std::ranges::find(forward->loop.fetches,
                                           static_cast<int>(definition.output), &LoopFetch::output);
      const bool is_fetched = fetch != forward->loop.fetches.end();
      if (is_fetched && body_.lowering().RowsVary(fetch->value)) outer_.MarkVarying(result);
    }
  }

  void PrepareGradient() {
    HalfInstruction gradient = Make(ops_.gradient, &*halves_.gradient);
    AddJointBody(*halves_.gradient, &gradient);
    if (history_) gradient.loop.history = gradient.AddInput(history_, true);
    for (size_t i = 0; i < stacks_.size(); ++i) {
      gradient.loop.stashes.push_back(
          LinkOf(halves_.stashes[i], gradient.AddInput(stacks_[i], true)));
    }
    AddRuns(&gradient);
    if (runs_.is_counted) gradient.loop.count_input = gradient.AddInput(count_, true);
    gradient.loop.descending = runs_.gradient_descending;
    outer_.gradients()[*ops_.scopes] = {.instruction = gradient.Finish(),
                                        .defines = std::move(gradient.defines),
                                        .reads = std::move(gradient.reads_later)};
  }

  JointBody& body_;
  const LoopForm& form_;
  BlockLowering& outer_;
  const LoopOps& ops_;
  LoopHalves halves_;
  std::shared_ptr<const Plan> joint_body_;  // if rows may vary
  bool sets_rows_ = false;                  // whether ops of the body do
  ValueId history_;
  ValueId count_;
  std::vector<ValueId> stacks_;  // by stash
  LoopRuns runs_;
  // Of variables of the scope that the body writes: of the first write.
  std::map<std::string, TensorMeta> scope_metas_;
};

}  // namespace

void EmitLoop(JointBody* body, const LoopForm& form, LoopHalves halves) {
  LoopEmission(body, form, std::move(halves)).Run();
}

}  // namespace skiff
