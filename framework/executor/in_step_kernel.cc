#include "framework/executor/in_step_kernel.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/list_kernel.h"

namespace skiff {
namespace {

// An argument of a member: where it stands among those of the instruction; -1: it isn't there.
struct Argument {
  int input = -1;
  int output = -1;
};

struct Member {
  std::unique_ptr<ListKernel> kernel;
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  size_t first_workspace = 0;
  KernelContext context;
};

Tensor* TensorOf(const Argument& argument, const KernelContext& run) {
  if (argument.output >= 0) return run.outputs[static_cast<size_t>(argument.output)];
  if (argument.input >= 0) return run.inputs[static_cast<size_t>(argument.input)];
  return nullptr;
}

class InStepKernel final : public Kernel {
 public:
  explicit InStepKernel(std::vector<Member> members) : members_(std::move(members)) {
    for (const Member& member : members_) {
      steps_.push_back({.kernel = member.kernel.get(), .context = &member.context});
    }
  }

  void Bind(const KernelContext& run) override {
    for (Member& member : members_) {
      KernelContext& context = member.context;
      const size_t workspaces = context.workspaces.size();
      for (size_t i = 0; i < member.inputs.size(); ++i) {
        context.inputs[i] = TensorOf(member.inputs[i], run);
      }
      for (size_t i = 0; i < member.outputs.size(); ++i) {
        context.outputs[i] = TensorOf(member.outputs[i], run);
      }
      for (size_t i = 0; i < workspaces; ++i) {
        context.workspaces[i] = run.workspaces[member.first_workspace + i];
      }
      context.device_context = run.device_context;
      context.seed = run.seed;
      context.step = run.step;
      context.op_id = run.op_id;
      member.kernel->Bind(context);
    }
  }

  void Run(const KernelContext&) override { RunInStep(steps_); }

 private:
  std::vector<Member> members_;
  std::vector<ListStep> steps_;
};

std::unique_ptr<ListKernel> AsListKernel(std::unique_ptr<Kernel> kernel) {
  auto* list = dynamic_cast<ListKernel*>(kernel.get());
  SKIFF_ENFORCE(list != nullptr, kFailedPrecondition,
                "runs in step with others, and its kernel is no ListKernel");
  kernel.release();
  return std::unique_ptr<ListKernel>(list);
}

}  // namespace

std::unique_ptr<Kernel> MakeInStepKernel(const OpRegistry& registry, const Plan& plan,
                                         Instruction* instruction) {
  std::unordered_map<int32_t, Argument> arguments = {{-1, {}}};
  for (size_t i = 0; i < instruction->inputs.size(); ++i) {
    arguments[instruction->inputs[i]].input = static_cast<int>(i);
  }
  for (size_t i = 0; i < instruction->outputs.size(); ++i) {
    arguments[instruction->outputs[i]].output = static_cast<int>(i);
  }
  const auto of = [&](const std::vector<int32_t>& values) {
    std::vector<Argument> found;
    for (int32_t value : values) found.push_back(arguments[value]);
    return found;
  };
  std::vector<Member> members;
  instruction->workspace_bytes.clear();
  for (const Instruction& op : instruction->members) {
    try {
      PrepareContext context = ContextOf(plan, op);
      Member member;
      member.kernel = AsListKernel(registry.SelectKernel(context).prepare(context));
      SKIFF_ENFORCE(context.derived_forms().empty(), kFailedPrecondition,
                    "runs in step with others, and its kernel wants a derived form");
      member.inputs = of(op.inputs);
      member.outputs = of(op.outputs);
      member.context.inputs.resize(op.inputs.size());
      member.context.outputs.resize(op.outputs.size());
      member.context.workspaces.resize(context.workspace_bytes().size());
      member.first_workspace = instruction->workspace_bytes.size();
      instruction->workspace_bytes.insert(instruction->workspace_bytes.end(),
                                          context.workspace_bytes().begin(),
                                          context.workspace_bytes().end());
      members.push_back(std::move(member));
    } catch (const Error& error) {
      throw error.WithContext(DescribeOp(*op.op, 0, op.position));
    }
  }
  return std::make_unique<InStepKernel>(std::move(members));
}

}  // namespace skiff
