// The kernels of a plan: which one each instruction runs, prepared once.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/executor/device/device_link.h"
#include "framework/op/kernel.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/transpiler/pass_context.h"

namespace skiff {

class KernelTuner;
class Scope;

// A form that a kernel derives from its inputs, and the place where the form is stored.
struct DerivedRequest {
  DerivedForm form;
  // The index of the workspace that holds the form, which each run then makes; -1 if the form is
  // kept from run to run, since its inputs stay the same.
  int workspace = -1;
  // Of the body of a loop: whether it is instead made once in each run of the loop, and kept in the
  // loop's workspace.
  bool is_of_loop = false;
};

struct PreparedKernel {
  std::unique_ptr<Kernel> kernel;
  const KernelDef* def = nullptr;       // nullptr for a copy and for a fused instruction
  std::vector<DerivedRequest> derived;  // in the order in which the kernel asks for them
};

struct KernelSelection;

// The settings for all kernels of a plan, including the kernels in bodies of loops.
struct KernelEnvironment {
  // Returns the link to a place: to the CPU, or to the place of the program's plan.
  DeviceLink& LinkTo(Place place) const { return place.is_cpu() ? *DeviceLink::Host() : *link; }

  const OpRegistry& registry;
  MathMode math = MathMode::kFull;
  // To the place of the program's plan; must outlive the kernels.
  DeviceLink* link = DeviceLink::Host().get();
  Scope* scope = nullptr;
  bool trains = false;   // whether runs advance the step counter
  bool poisons = false;  // whether plans on the CPU have an ArenaPoison
  // PrepareLoop, which itself prepares the kernels of a body.
  std::unique_ptr<Kernel> (*prepare_loop)(const KernelSelection&, Instruction*) = nullptr;
};

// The settings that decide which kernel runs.
struct KernelSelection {
  const KernelEnvironment& environment;
  const KernelNames& forced;     // PassContext::forced_kernels
  KernelTuner* tuner = nullptr;  // nullptr: KernelByRule
  bool rows_vary = false;        // PrepareContext::rows_vary
  // Returns whether the rows of a value differ from run to run, for the bodies of loops. Empty: no.
  std::function<bool(ValueId)> varies = {};
  bool is_body = false;  // whether the plan is the body of a loop
};

// Chooses and prepares the kernel of each instruction, and sets workspace_bytes of the
// instructions. A loop gets a body whose kernels are prepared and whose storage is planned. Throws
// an Error that names the op if no kernel takes the op, and the Errors of kernels.
std::vector<PreparedKernel> PrepareKernels(const KernelSelection& selection, Plan* plan);

// Does the same for one instruction, which may be a copy of an instruction of the plan, with the
// current shapes of the plan's values.
PreparedKernel PrepareKernel(const KernelSelection& selection, const Plan& plan,
                             Instruction* instruction);

// Returns the id by which the instruction's op draws random numbers.
uint64_t RandomOpId(const Instruction& instruction, bool trains);

// Throws the error with the place of the instruction's op in the user's program.
[[noreturn]] void ThrowIn(const Error& error, const Instruction& instruction);

}  // namespace skiff
