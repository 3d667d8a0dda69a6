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

#include "framework/base/place.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/transpiler/pass_context.h"

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
  // Returns the name of the pass that finishes what this one begins, or "". A request for this
  // pass (PipelineOptions::also) gets both.
  virtual std::string_view needs() const { return {}; }
  // Returns how far the pass may move a result, relative to the root mean square of its tensor; a
  // gradient counts as no less than 1/100 of the largest one. A pass that changes kernels rounds
  // sums in another order; every other pass returns 0 and changes no bit.
  // tests/framework/transpiler/every_pass_test.cc checks this (tests/harness/workload.h).
  virtual double tolerance() const { return 0; }
};

class ProgramPass : public Pass {
 public:
  // Rewrites the program and returns what it did. The caller sets PassReport::pass.
  virtual PassReport Apply(const OpRegistry& registry, Program* program) const = 0;
};

class PlanPass : public Pass {
 public:
  // Rewrites the plan and returns what it did. The caller sets PassReport::pass.
  virtual PassReport Apply(const PassContext& context, Plan* plan) const = 0;
  // Returns whether the plan can't run without the pass, which then can't be left out.
  virtual bool IsRequiredBy(const Plan& /*plan*/) const { return false; }
};

struct PipelineOptions {
  std::vector<std::string> skip;  // names of passes to leave out, unless a plan requires them
  // Names of passes that run only on request. They and the passes that they need run where
  // default_pipelines.txt has them. `skip` wins.
  std::vector<std::string> also;
  // Passes of the caller's own. They run after the others.
  std::vector<std::shared_ptr<const ProgramPass>> program_passes;
  std::vector<std::shared_ptr<const PlanPass>> plan_passes;
  // Of each kind, run only the first so many passes, and those that a plan requires; -1: all.
  int32_t pass_limit = -1;
  // Called after each pass that ran, with what it left; see dump_passes.h.
  std::function<void(const PassReport&, const Program&)> program_observer;
  std::function<void(const PassReport&, const Plan&)> plan_observer;
};

// Returns the `skip` and `also` that a flag asks for: "+fuse_optimizer,-layout" runs the first as
// well and leaves out the second; "none" leaves out every pass, and "" none. Throws an Error
// (kInvalidArgument) for a name without a sign; unknown names are found when passes run.
PipelineOptions ParsePasses(std::string_view text);

// Return the names of the passes that run by default, in order (default_pipelines.txt).
const std::vector<std::string>& DefaultProgramPasses(PlaceKind place);
const std::vector<std::string>& DefaultPlanPasses();

// Return the names of all passes, in the order in which they would run.
std::vector<std::string> ProgramPassNames();
std::vector<std::string> PlanPassNames();
// Return the pass of that name. Throw an Error (kNotFound) that lists the names if there is none.
std::unique_ptr<ProgramPass> MakeProgramPass(std::string_view name);
std::unique_ptr<PlanPass> MakePlanPass(std::string_view name);

// Run the passes that the options choose and return what each did. Throw an Error (kNotFound) for
// an unknown name in the options, one (kFailedPrecondition) for an order that breaks a constraint
// (pass_order.h), and what passes throw. `place` is where the program will run. RunPlanPasses marks
// values first (MarkNamedValues).
std::vector<PassReport> RunProgramPasses(const OpRegistry& registry, PlaceKind place,
                                         Program* program, const PipelineOptions& options = {});
std::vector<PassReport> RunPlanPasses(const PassContext& context, Plan* plan,
                                      const PipelineOptions& options = {});

}  // namespace skiff
