#include "framework/transpiler/widen_pass.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
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
  wide.is_exclusive = wide.is_checkpoint = false;
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
        WidenHere(std::move(instruction));
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
      return value && plan_[value].storage == Storage::kKernelOwned;
    };
    if (std::ranges::any_of(instruction.outputs, is_made)) return false;
    const PrepareContext context = ContextOf(plan_, instruction);
    const std::optional<DType> half = HalfOfArguments(context);
    if (!half) return false;
    const bool is_forced = IsForced(instruction, *half);
    if (!is_forced && registry_.FindKernel(context) != nullptr) return false;
    if (registry_.CanRunWidened(context)) return true;
    // Of a device's plan: the pass placement moves the op to the CPU.
    Instruction on_host = instruction;
    on_host.place = Place::Cpu();
    const PrepareContext host_context = ContextOf(plan_, on_host);
    if (!is_forced && registry_.FindKernel(host_context) != nullptr) return false;
    return registry_.CanRunWidened(host_context);
  }

  // Whether the user forces "widened", or a kernel that there is for float32, but not for half.
  // Whether it takes the shapes, a later pass may still decide: layouts count.
  bool IsForced(const Instruction& instruction, DType half) const {
    const std::string_view forced = context_.ForcedKernel(instruction.op->type);
    if (forced.empty() || forced == kWidened) return forced == kWidened;
    const auto has_kernel = [&](DType dtype) {
      return std::ranges::any_of(registry_.Kernels(instruction.op->type), [&](const auto& kernel) {
        return kernel.name == forced && kernel.dtype == dtype;
      });
    };
    return has_kernel(DType::kFloat32) && !has_kernel(half);
  }

  // Appends the instruction in float32, between casts, to `instructions` of the plan. add(value)
  // adds a float32 value for a half one, and is_used(value) tells whether anything reads what is
  // made.
  template <typename Add, typename IsUsed>
  void Widen(Plan* plan, Instruction instruction, const Add& add, const IsUsed& is_used,
             std::vector<Instruction>* instructions) {
    const Instruction origin = instruction;
    const auto cast = [&](ValueId from, ValueId to) {
      instructions->push_back(CastBetween(registry_, plan, origin, from, to));
      ++casts_;
    };
    // An op may read a value twice.
    std::map<ValueId, ValueId> wide;
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      ValueId& input = instruction.inputs[i];
      if (!IsHalfValue(*plan, input) || !instruction.reads_data[i]) continue;
      const auto [found, is_new] = wide.try_emplace(input);
      if (is_new) {
        found->second = add(input);
        cast(input, found->second);
      }
      input = found->second;
    }
    std::vector<std::pair<ValueId, ValueId>> rounded;
    for (ValueId& output : instruction.outputs) {
      if (!IsHalfValue(*plan, output)) continue;
      const ValueId made = add(output);
      if (is_used(output)) rounded.emplace_back(made, output);
      output = made;
    }
    instructions->push_back(std::move(instruction));
    for (const auto& [from, to] : rounded) cast(from, to);
    ++widened_;
  }

  void WidenHere(Instruction instruction) {
    const auto add = [this](ValueId half) { return AddWide(&plan_, half); };
    const auto is_used = [this](ValueId value) { return IsUsed(plan_, readers_, value); };
    Widen(&plan_, std::move(instruction), add, is_used, &rewritten_);
  }

  static bool IsUsed(const Plan& plan, const ValueTable<std::vector<size_t>>& readers,
                     ValueId value) {
    return !readers[value].empty() || plan[value].storage != Storage::kArena;
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
    for (const auto& [from, to] : rounded) {
      rewritten_.push_back(CastBetween(registry_, &plan_, origin, from, to));
      ++casts_;
    }
  }

  // Has the body fetch the value in float32: what a cast makes half, or a kernel for half that
  // rounds what it computes in float32; else a cast of it.
  void WidenFetch(size_t fetch, Loop* loop) {
    Plan& body = loop->body;
    const ValueId half = loop->fetches[fetch].value;
    WidenWriter(half, loop);
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
    AddToLine(half, wide, loop);
  }

  // Widens the op of the body that makes the value, if it has a kernel for half with the bits of
  // the float32 kernel. Others round in their own way.
  void WidenWriter(ValueId half, Loop* loop) {
    Plan& body = loop->body;
    const auto writer = std::ranges::find_if(body.instructions, [&](const Instruction& made_by) {
      return std::ranges::count(made_by.outputs, half) > 0;
    });
    if (writer == body.instructions.end() || !HasExactKernel(body, *writer)) return;
    const auto add = [&](ValueId value) {
      const ValueId wide = AddWide(&body, value);
      AddToLine(value, wide, loop);
      return wide;
    };
    const auto readers = AllReaders(body);
    const auto is_used = [&](ValueId value) { return IsUsed(body, readers, value); };
    std::vector<Instruction> widened;
    Widen(&body, *writer, add, is_used, &widened);
    const auto after = body.instructions.erase(writer);
    body.instructions.insert(after, widened.begin(), widened.end());
  }

  bool HasExactKernel(const Plan& plan, const Instruction& instruction) const {
    if (instruction.kind != InstructionKind::kOp || instruction.sets_rows) return false;
    const PrepareContext context = ContextOf(plan, instruction);
    if (!registry_.CanRunWidened(context)) return false;
    const KernelDef* kernel = registry_.FindKernel(context);
    return kernel != nullptr && kernel->name != kNativeHalfKernel;
  }

  // Makes the joint body tell the rows of a value that the pass has added to the body. Both plans
  // give it the same id.
  void AddToLine(ValueId half, ValueId wide, Loop* loop) const {
    if (loop->joint_body == nullptr) return;
    auto joint_body = std::make_shared<Plan>(*loop->joint_body);
    const ValueId same = AppendCast(joint_body.get(), half);
    SKIFF_ENFORCE(same == wide, kInvalidArgument, "a loop whose body has ",
                  loop->body.values.size(), " values and whose joint body has ",
                  joint_body->values.size());
    loop->joint_body = std::move(joint_body);
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
