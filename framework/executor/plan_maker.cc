#include "framework/executor/plan_maker.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/lowering/lowering.h"
#include "framework/executor/storage/storage.h"
#include "framework/transpiler/pass.h"

namespace skiff {
namespace {

bool IsInSubBlock(const Program& program, const std::string& name) {
  for (size_t i = 1; i < program.block_count(); ++i) {
    if (program.block(static_cast<int32_t>(i))->FindLocalVar(name) != nullptr) return true;
  }
  return false;
}

bool HasInArena(const Plan& plan, const std::string& name) {
  for (const ValueId value : plan.ids()) {
    if (plan[value].name == name && plan[value].storage == Storage::kArena) return true;
  }
  return false;
}

// Leaves the named checkpoints that the plan, of the root block or of a body, has values of. If
// there are none, nothing is recomputed. A name that no block knows stays in the root's list, for
// the pass to report.
void KeepCheckpointsOf(const Program& program, const Plan& plan, bool is_root,
                       MemoryOptions* memory) {
  if (memory->recompute != Recompute::kCheckpoints) return;
  std::erase_if(memory->checkpoints, [&](const std::string& name) {
    const bool is_inside = IsInSubBlock(program, name);
    if (is_root) return is_inside && program.root()->FindLocalVar(name) == nullptr;
    return !is_inside || !HasInArena(plan, name);
  });
  if (memory->checkpoints.empty()) memory->recompute = Recompute::kNothing;
}

// Runs plan passes with the options of one request.
class PlanPasses {
 public:
  // What it is given must outlive it.
  PlanPasses(const PlanSources& sources, const MemoryOptions& memory, Recompute in_bodies,
             Watching watching)
      : sources_(sources),
        memory_(memory),
        in_bodies_(in_bodies == Recompute::kBudget ? Recompute::kNothing : in_bodies),
        pipeline_(sources.options.passes) {
    if (watching == Watching::kNobody) pipeline_.plan_observer = nullptr;
    if (sources.comm != nullptr) pipeline_.also.emplace_back("overlap_collectives");
  }

  void RunOnRoot(bool is_segment, Plan* plan) const {
    PassContext context = Context();
    context.is_segment = is_segment;
    Run(&context, plan);
  }

  void RunOnBody(Plan* body) const {
    PassContext context = Context();
    context.is_body = true;
    context.memory.recompute = in_bodies_;
    context.memory.skip.clear();
    Run(&context, body);
  }

 private:
  PassContext Context() const {
    return {.registry = *sources_.registry,
            .memory = memory_,
            .forced_kernels = sources_.options.kernels};
  }

  void Run(PassContext* context, Plan* plan) const {
    KeepCheckpointsOf(*sources_.program, *plan, !context->is_body, &context->memory);
    RunPlanPasses(*context, plan, pipeline_);
  }

  const PlanSources& sources_;
  const MemoryOptions& memory_;
  const Recompute in_bodies_;
  PipelineOptions pipeline_;
};

LoweringInputs InputsOfLowering(const PlanSources& sources, const PlanRequest& request) {
  LoweringInputs inputs{.registry = *sources.registry,
                        .scope = *sources.scope,
                        .place = sources.place,
                        .positions = sources.positions,
                        .max_loop_iterations = sources.options.max_loop_iterations,
                        .rows_vary = request.rows_vary,
                        .is_for_capacity = request.counts != nullptr};
  if (request.before != nullptr) {
    *inputs.arrays = request.before->arrays_after();
    inputs.gradients = request.before->gradients_after();
    inputs.contents = request.before->contents_after();
  }
  return inputs;
}

}  // namespace

Segment MakeSegment(const PlanSources& sources, const PlanRequest& request,
                    const MemoryOptions& memory, Recompute in_bodies, Watching watching) {
  const PlanPasses passes(sources, memory, in_bodies, watching);
  LoweringInputs inputs = InputsOfLowering(sources, request);
  inputs.body_passes = [&](Plan* body) { passes.RunOnBody(body); };
  Segment segment = LowerSegment(std::move(inputs), *sources.program, request.feeds,
                                 request.fetches, request.first_op());
  // Before passes and kernels, which a plan that can't be would ask for memory.
  SKIFF_ENFORCE(request.counts == nullptr || segment.gradients_after.empty(), kUnimplemented,
                "the gradient of a loop is in a later segment: expected exact rows");
  passes.RunOnRoot(request.before != nullptr || !segment.is_last, &segment.plan);
  return segment;
}

int64_t PlannedBytes(const PlanSources& sources, const PlanRequest& request,
                     const MemoryOptions& memory) {
  Plan plan = MakeSegment(sources, request, memory, memory.recompute, Watching::kNobody).plan;
  PlanStorage(&plan);
  return plan.planned_bytes;
}

}  // namespace skiff
