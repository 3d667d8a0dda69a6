// Passes: rewrites of a program (before shapes are known) or of a plan (after).
//
// A pass is a file pair `<name>_pass.{h,cc}` with one class; pipelines are lists of names. Both
// kinds share the report, the option to skip a pass and the limit for bisection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/place.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/plan/plan.h"
#include "framework/transpiler/api/pass_options.h"
#include "framework/transpiler/pass_context.h"

namespace skiff {

namespace internal {

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;
  // Returns the name of the pass that finishes this pass's work, or "". A request for this pass
  // (PipelineOptions::also) gets both.
  virtual std::string_view needs() const { return {}; }
  // Returns how far the pass may move a result, relative to the root mean square of its tensor; a
  // gradient counts as no less than 1/100 of the largest one. A pass that changes kernels rounds
  // sums in another order; every other pass returns 0 and changes no bit.
  // tests/framework/transpiler/every_pass_test.cc checks this (tests/harness/workload.h).
  virtual double tolerance() const { return 0; }
};

class ProgramPass : public Pass {
 public:
  // Rewrites the program and returns a report. The caller sets PassReport::pass.
  virtual PassReport Apply(const ProgramPassContext& context, Program* program) const = 0;
};

class PlanPass : public Pass {
 public:
  // Rewrites the plan and returns a report. The caller sets PassReport::pass.
  virtual PassReport Apply(const PassContext& context, Plan* plan) const = 0;
  // Returns whether the plan can't run without the pass, which then can't be left out.
  virtual bool IsRequiredBy(const Plan& /*plan*/) const { return false; }
};

}  // namespace internal
using internal::Pass;
using internal::PlanPass;
using internal::ProgramPass;

// Return the names of the passes that run by default, in order (default_pipelines.txt).
const std::vector<std::string>& DefaultProgramPasses(PlaceKind place);
const std::vector<std::string>& DefaultPlanPasses();

// Return the names of all passes, in the order in which they would run.
std::vector<std::string> ProgramPassNames();
std::vector<std::string> PlanPassNames();
// Return the pass of that name. Throw an Error (kNotFound) that lists the names if there is none.
std::unique_ptr<ProgramPass> MakeProgramPass(std::string_view name);
std::unique_ptr<PlanPass> MakePlanPass(std::string_view name);

// Run the passes that the options choose and return a report on each. Throw an Error (kNotFound)
// for an unknown name in the options, an Error (kFailedPrecondition) for an order that breaks a
// constraint (pass_order.h), and the Errors of passes. `place` is where the program will run.
// RunPlanPasses marks values first (MarkNamedValues).
std::vector<PassReport> RunProgramPasses(const ProgramPassContext& context, PlaceKind place,
                                         Program* program, const PipelineOptions& options = {});
std::vector<PassReport> RunPlanPasses(const PassContext& context, Plan* plan,
                                      const PipelineOptions& options = {});

}  // namespace skiff
