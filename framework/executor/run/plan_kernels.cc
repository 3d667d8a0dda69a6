// Which kernel runs is decided in this order: the one that the user forces, if it takes the shapes;
// the tuner's; the rule of priorities and scratch memory (KernelByRule). Copies and fused
// instructions have kernels of their own. Kernels are prepared before storage is planned, since
// only prepared kernels know their workspaces.
#include "framework/executor/run/plan_kernels.h"

#include <algorithm>
#include <utility>

#include "framework/analysis/scope_use.h"
#include "framework/base/error.h"
#include "framework/executor/device/transfer.h"
#include "framework/executor/run/fused_kernel.h"
#include "framework/op/kernel_choice.h"
#include "framework/tensor/layout_copy.h"
#include "framework/tuning/kernel_tuner.h"
#include "framework/tuning/tuning_key.h"

namespace skiff {
namespace {

class KernelPreparation {
 public:
  KernelPreparation(const KernelSelection& selection, const Plan& plan)
      : selection_(selection), environment_(selection.environment), plan_(plan), constant_(plan) {}

  PreparedKernel Prepare(Instruction* instruction) const {
    try {
      return PrepareAny(instruction);
    } catch (const Error& error) {
      ThrowIn(error, *instruction);
    }
  }

 private:
  PreparedKernel PrepareAny(Instruction* instruction) const {
    if (instruction->kind == InstructionKind::kCopy && !IsBetweenHosts(*instruction)) {
      return {.kernel = MakeTransfer(environment_.link, StagedBytes(instruction->inputs[0]))};
    }
    if (instruction->kind == InstructionKind::kCopy) {
      return {.kernel = MakeRowsKernel([](const KernelContext& context) {
                CopyBetweenLayouts(context.input(0), &context.output(0));
              })};
    }
    if (instruction->kind == InstructionKind::kFused) {
      return {.kernel = MakeFusedKernel(environment_.registry, plan_, *instruction)};
    }
    if (instruction->kind == InstructionKind::kLoop) {
      SKIFF_ENFORCE(environment_.prepare_loop != nullptr, kFailedPrecondition,
                    "a plan with a loop: expected an environment that prepares loops");
      return {.kernel = environment_.prepare_loop(selection_, instruction)};
    }
    PreparedKernel prepared;
    PrepareContext context = ContextOf(plan_, *instruction);
    context.set_rows_vary(selection_.rows_vary);
    context.set_math(environment_.math);
    if (selection_.is_body) context.set_constant_inputs(constant_.Of(*instruction));
    prepared.def = &Choose(*instruction, context);
    // prepare() makes the requests for workspaces and forms that the next lines read.
    prepared.kernel = prepared.def->prepare(context);
    instruction->workspace_bytes = context.workspace_bytes();
    prepared.derived = RequestDerived(context.derived_forms(), instruction);
    return prepared;
  }

  // For MakeTransfer: the bytes of a value on the CPU that isn't the plan's own.
  int64_t StagedBytes(ValueId value) const {
    const PlanValue& storage = plan_[plan_.StorageOf(value)];
    const bool is_ours =
        storage.storage == Storage::kArena || storage.storage == Storage::kKernelOwned;
    return storage.place.is_cpu() && !is_ours ? StorageBytes(plan_[value]) : 0;
  }

  bool IsBetweenHosts(const Instruction& copy) const {
    return plan_[copy.inputs[0]].place.is_cpu() && plan_[copy.outputs[0]].place.is_cpu();
  }

  const KernelDef& Choose(const Instruction& instruction, const OpContext& context) const {
    const OpRegistry& registry = environment_.registry;
    const auto forced = selection_.forced.find(instruction.op->type);
    if (forced != selection_.forced.end()) {
      const KernelDef* kernel = registry.FindKernel(context, forced->second);
      // A kernel may be forced on an op type, though it doesn't take the shapes of each such op.
      return kernel != nullptr ? *kernel : KernelByRule(registry, context, environment_.math);
    }
    if (selection_.tuner == nullptr) return KernelByRule(registry, context, environment_.math);
    return selection_.tuner->Choose({.context = context, .is_constant = constant_.Of(instruction)});
  }

  // Forms that must be made in each run become workspaces of the instruction, after those of the
  // kernel. Forms whose inputs are all constant while the plan runs (parameters in inference) get
  // storage of their own, once per plan.
  std::vector<DerivedRequest> RequestDerived(const std::vector<DerivedForm>& forms,
                                             Instruction* instruction) const {
    std::vector<DerivedRequest> requests;
    if (forms.empty()) return requests;
    const std::vector<bool> is_constant = constant_.Of(*instruction);
    for (const DerivedForm& form : forms) {
      const bool is_kept = std::ranges::all_of(
          form.inputs, [&](int input) { return is_constant[static_cast<size_t>(input)]; });
      DerivedRequest request{.form = form};
      if (!is_kept) {
        request.workspace = static_cast<int>(instruction->workspace_bytes.size());
        instruction->workspace_bytes.push_back(form.bytes);
      }
      requests.push_back(std::move(request));
    }
    return requests;
  }

  const KernelSelection& selection_;
  const KernelEnvironment& environment_;
  const Plan& plan_;
  const ConstantInputs constant_;
};

}  // namespace

std::vector<PreparedKernel> PrepareKernels(const KernelSelection& selection, Plan* plan) {
  const KernelPreparation preparation(selection, *plan);
  std::vector<PreparedKernel> kernels;
  for (Instruction& instruction : plan->instructions) {
    kernels.push_back(preparation.Prepare(&instruction));
  }
  return kernels;
}

PreparedKernel PrepareKernel(const KernelSelection& selection, const Plan& plan,
                             Instruction* instruction) {
  return KernelPreparation(selection, plan).Prepare(instruction);
}

uint64_t RandomOpId(const Instruction& instruction, bool trains) {
  // Startup and main program both count their ops from 0. Without this mark in the id, a parameter
  // would be initialized with the same random numbers by which an op of the first training step
  // drops elements.
  constexpr uint64_t kTraining = uint64_t{1} << 31;
  return static_cast<uint64_t>(instruction.op->id) | (trains ? kTraining : 0);
}

void ThrowIn(const Error& error, const Instruction& instruction) {
  throw error.WithContext(DescribeOp(*instruction.op, instruction.block, instruction.position));
}

}  // namespace skiff
