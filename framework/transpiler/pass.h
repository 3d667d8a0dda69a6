// Passes: rewrites of a program (before shapes are known) or of a plan (after).
//
// A pass is a file pair `<name>_pass.{h,cc}` with one class; pipelines are lists of names. Both
// kinds share the report, the option to skip a pass and the limit for bisection.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// What a pass did. `changes` counts what its header says; 0: nothing.
struct PassReport {
  std::string pass;
  int64_t changes = 0;
  std::string summary;  // one line for people
};

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;
  // Another pass, without which this one finds nothing to do: who asks for this one
  // (PipelineOptions::also) gets both. Empty: none.
  virtual std::string_view needs() const { return {}; }
  // How far the pass may move a result, relative to the root mean square of its tensor. 0, no bit
  // at all, for every pass but one that changes kernels, so that sums are rounded in another order.
  // The test of all passes (tests/framework/transpiler/every_pass_test.cc) holds it to this.
  virtual double tolerance() const { return 0; }
};

class ProgramPass : public Pass {
 public:
  virtual PassReport Apply(const OpRegistry& registry, Program* program) const = 0;
};

class PlanPass : public Pass {
 public:
  virtual PassReport Apply(const OpRegistry& registry, Plan* plan) const = 0;
};

struct PipelineOptions {
  std::vector<std::string> skip;  // names of passes to leave out; Error for an unknown one
  // Names of passes that run only when asked for, in the place that default_pipelines.txt gives
  // them, with those that they need; Error for an unknown one. `skip` wins.
  std::vector<std::string> also;
  // Passes of the caller's own: they run after the others.
  std::vector<std::shared_ptr<const ProgramPass>> program_passes;
  std::vector<std::shared_ptr<const PlanPass>> plan_passes;
  int32_t pass_limit = -1;  // of each kind, run only the first so many passes; -1: all
  // Called after each pass that ran, with what it left; see dump_passes.h.
  std::function<void(const PassReport&, const Program&)> program_observer;
  std::function<void(const PassReport&, const Plan&)> plan_observer;
};

// Names of the passes of the default pipelines, in order (default_pipelines.txt).
const std::vector<std::string>& DefaultProgramPasses();
const std::vector<std::string>& DefaultPlanPasses();

// All passes there are; Error for an unknown name.
std::vector<std::string> ProgramPassNames();
std::vector<std::string> PlanPassNames();
std::unique_ptr<ProgramPass> MakeProgramPass(std::string_view name);
std::unique_ptr<PlanPass> MakePlanPass(std::string_view name);

std::vector<PassReport> RunProgramPasses(const OpRegistry& registry, Program* program,
                                         const PipelineOptions& options = {});
std::vector<PassReport> RunPlanPasses(const OpRegistry& registry, Plan* plan,
                                      const PipelineOptions& options = {});

}  // namespace skiff
