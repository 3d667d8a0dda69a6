#include "framework/transpiler/widen_pass.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/analysis/plan_uses.h"
#include "framework/base/error.h"
#include "framework/op/half_arguments.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

constexpr const char* kCast = "cast";

bool IsHalfValue(const Plan& plan, ValueId value) {
  return value && IsHalf(plan[value].meta.dtype) && !plan[value].meta.is_array;
}

// Adds an arena value like this one, in float32, and returns it.
ValueId AddWide(Plan* plan, ValueId half) {
  PlanValue wide = (*plan)[half];
  wide.meta.dtype = DType::kFloat32;
  wide.meta.persistable = false;
  wide.meta.contents = nullptr;
  wide.storage = Storage::kArena;
  wide.alias_of = {};
  wide.is_alone = wide.is_checkpoint = false;
  return plan->values.Add(std::move(wide));
}

Instruction CastBetween(const OpRegistry& registry, Plan* plan, const Instruction& origin,
                        ValueId from, ValueId to) {
  AttributeMap attrs;
  attrs["in_dtype"] = static_cast<int32_t>((*plan)[from].meta.dtype);
  attrs["out_dtype"] = static_cast<int32_t>((*plan)[to].meta.dtype);
  return MakeInstruction(plan, registry.Get(kCast), origin, attrs, {{"X", from}}, {{"Out", to}});
}

class Widening {
 public:
  Widening(const PassContext& context, Plan* plan)
      : context_(context), registry_(context.registry), plan_(*plan), readers_(AllReaders(*plan)) {}

  PassReport Run() {
    std::vector<Instruction> instructions = std::exchange(plan_.instructions, {});
    for (Instruction& instruction : instructions) {
      if (instruction.kind == InstructionKind::kLoop) {
        WidenSums(std::move(instruction));
      } else if (NeedsWidening(instruction)) {
        Widen(std::move(instruction));
      } else {
        rewritten_.push_back(std::move(instruction));
      }
    }
    plan_.instructions = std::move(rewritten_);
    return {.pass = {},
            .changes = widened_ + sums_,
            .summary = StrCat(widened_, " ops on half run in float32, ", casts_, " casts, ", sums_,
                              " sums over iterations")};
  }

 private:
  bool NeedsWidening(const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kOp || instruction.sets_rows) return false;
    const auto is_made = [&](ValueId value) {
      return value && plan_[value].storage == Storage::kMade;
    };
    if (std::ranges::any_of(instruction.outputs, is_made)) return false;
    const PrepareContext context = ContextOf(plan_, instruction);
    if (!HalfOfArguments(context)) return false;
    const bool is_forced = IsForced(instruction, context);
    if (!is_forced && registry_.FindKernel(context) != nullptr) return false;
    if (registry_.CanRunWidened(context)) return true;
    // Of a device's plan: the pass placement moves the op to the CPU.
    Instruction on_host = instruction;
    on_host.place = Place::Cpu();
    const PrepareContext host_context = ContextOf(plan_, on_host);
    if (!is_forced && registry_.FindKernel(host_context) != nullptr) return false;
    return registry_.CanRunWidened(host_context);
  }

  // Whether the user forces "widened", or a kernel that only takes the op widened.
  bool IsForced(const Instruction& instruction, const OpContext& context) const {
    const std::string_view forced = context_.ForcedKernel(instruction.op->type);
    if (forced.empty() || forced == kWidened) return forced == kWidened;
    return registry_.FindKernel(context, forced) == nullptr &&
           registry_.FindKernel(Widened(context), forced) != nullptr;
  }

  void Widen(Instruction instruction) {
    const Instruction origin = instruction;
    // An op may read a value twice.
    std::map<ValueId, ValueId> wide;
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      ValueId& input = instruction.inputs[i];
      if (!IsHalfValue(plan_, input) || !instruction.reads_data[i]) continue;
      const auto [found, is_new] = wide.try_emplace(input);
      if (is_new) {
        found->second = AddWide(&plan_, input);
        Cast(origin, input, found->second);
      }
      input = found->second;
    }
    std::vector<std::pair<ValueId, ValueId>> rounded;
    for (ValueId& output : instruction.outputs) {
      if (!IsHalfValue(plan_, output)) continue;
      const ValueId made = AddWide(&plan_, output);
      if (IsUsed(output)) rounded.emplace_back(made, output);
      output = made;
    }
    rewritten_.push_back(std::move(instruction));
    for (const auto& [from, to] : rounded) Cast(origin, from, to);
    ++widened_;
  }

  bool IsUsed(ValueId value) const {
    return !readers_[value].empty() || plan_[value].storage != Storage::kArena;
  }

  void Cast(const Instruction& origin, ValueId from, ValueId to) {
    rewritten_.push_back(CastBetween(registry_, &plan_, origin, from, to));
    ++casts_;
  }

  void WidenSums(Instruction instruction) {
    std::vector<std::pair<ValueId, ValueId>> rounded;
    std::shared_ptr<Loop> loop;
    for (size_t i = 0; i < instruction.loop->fetches.size(); ++i) {
      const LoopFetch& fetch = instruction.loop->fetches[i];
      if (fetch.kind != LoopFetch::Kind::kSum || fetch.output < 0) continue;
      if (!IsHalfValue(instruction.loop->body, fetch.value)) continue;
      if (loop == nullptr) loop = std::make_shared<Loop>(*instruction.loop);
      WidenFetch(i, loop.get());
      ValueId& output = instruction.outputs[static_cast<size_t>(fetch.output)];
      const ValueId sum = AddWide(&plan_, output);
      rounded.emplace_back(sum, output);
      output = sum;
      ++sums_;
    }
    if (loop != nullptr) instruction.loop = std::move(loop);
    const Instruction origin = instruction;
    rewritten_.push_back(std::move(instruction));
    for (const auto& [from, to] : rounded) Cast(origin, from, to);
  }

  // Has the body fetch the value in float32: what a cast makes half, or a cast of it.
  void WidenFetch(size_t fetch, Loop* loop) {
    Plan& body = loop->body;
    const ValueId half = loop->fetches[fetch].value;
    const auto rounding = std::ranges::find_if(body.instructions, [&](const Instruction& writer) {
      return writer.kind == InstructionKind::kOp && writer.def->type == kCast &&
             writer.outputs[0] == half && body[writer.inputs[0]].meta.dtype == DType::kFloat32;
    });
    const auto fetch_instead = [&](ValueId wide) {
      loop->fetches[fetch].value = wide;
      body.fetches[fetch] = wide;
    };
    if (rounding != body.instructions.end()) {
      fetch_instead(rounding->inputs[0]);
      // Else batch_over_time would find another reader of what is added up.
      if (AllReaders(body)[half].empty()) body.instructions.erase(rounding);
      return;
    }
    const ValueId wide = AppendCast(&body, half);
    fetch_instead(wide);
    if (loop->line == nullptr) return;
    // Tells the rows of the body's values, which have the same ids there.
    auto line = std::make_shared<Plan>(*loop->line);
    const ValueId same = AppendCast(line.get(), half);
    SKIFF_ENFORCE(same == wide, kInvalidArgument, "a loop whose body has ", body.values.size(),
                  " values and whose line has ", line->values.size());
    loop->line = std::move(line);
  }

  // Appends a cast to float32, and returns what it makes.
  ValueId AppendCast(Plan* plan, ValueId half) const {
    const ValueId wide = AddWide(plan, half);
    plan->instructions.push_back(
        CastBetween(registry_, plan, plan->instructions.back(), half, wide));
    return wide;
  }

  const PassContext& context_;
  const OpRegistry& registry_;
  Plan& plan_;
  const ValueTable<std::vector<size_t>> readers_;
  std::vector<Instruction> rewritten_;
  int64_t widened_ = 0;
  int64_t casts_ = 0;
  int64_t sums_ = 0;
};

}  // namespace

bool WidenPass::IsRequiredBy(const Plan& plan) const {
  for (const ValueId value : plan.ids()) {
    if (IsHalfValue(plan, value)) return true;
  }
  return false;
}

PassReport WidenPass::Apply(const PassContext& context, Plan* plan) const {
  if (!IsRequiredBy(*plan)) return {.pass = {}, .changes = 0, .summary = "no half"};
  return Widening(context, plan).Run();
}

}  // namespace skiff
