#include "framework/executor/run/plan_runner.h"

#include <algorithm>
#include <iterator>

#include "framework/base/steady_seconds.h"
#include "framework/executor/storage/host_access.h"
#include "framework/tensor/scope.h"

namespace skiff {

PlanRunner::PlanRunner(const Inputs& inputs, std::vector<PreparedKernel> kernels)
    : plan_(inputs.plan),
      environment_(inputs.environment),
      link_(environment_.LinkTo(plan_.place)),
      values_(*inputs.values),
      state_(*inputs.state),
      values_of_(inputs.values_of),
      current_plan_(inputs.current_plan) {
  SKIFF_ENFORCE(kernels.size() == plan_.instructions.size(), kFailedPrecondition, "a plan of ",
                plan_.instructions.size(), " instructions and ", kernels.size(),
                " prepared kernels: expected a kernel for each instruction");
  for (size_t i = 0; i < kernels.size(); ++i) {
    Step& step = steps_.emplace_back(MakeStep(i, std::move(kernels[i])));
    step.varies = inputs.varies && inputs.varies(plan_.instructions[i]);
    step.is_fixed = step.varies && !step.planned->accepts_fewer_rows();
    if (step.reads_feed) feed_readers_.push_back(i);
    if (step.is_fixed) fixed_.push_back(i);
  }
  if (environment_.poisons && plan_.place.is_cpu()) poison_.emplace(plan_, values_);
}

PlanRunner::Step PlanRunner::MakeStep(size_t i, PreparedKernel kernel) const {
  const Instruction& instruction = plan_.instructions[i];
  Step step{.planned = BoundFor(i, std::move(kernel), instruction.workspace_bytes)};
  step.current = step.planned.get();
  step.reads_feed = std::ranges::any_of(instruction.inputs, [&](ValueId input) {
    return input && plan_[plan_.StorageOf(input)].storage == Storage::kFeed;
  });
  for (const ValueId output : instruction.outputs) {
    if (!output || plan_[output].storage != Storage::kScope) continue;
    if (plan_[output].meta.is_array) continue;
    step.written_versions.push_back(environment_.scope->Version(plan_[output].name));
  }
  return step;
}

std::unique_ptr<BoundKernel> PlanRunner::BoundFor(
    size_t i, PreparedKernel kernel, const std::vector<int64_t>& workspace_bytes) const {
  const Instruction& planned = plan_.instructions[i];
  return std::make_unique<BoundKernel>(
      std::move(kernel), workspace_bytes, plan_, planned, RandomOpId(planned, environment_.trains),
      values_of_ ? values_of_(i) : &values_, environment_.scope, &state_);
}

int64_t PlanRunner::kept_bytes() const {
  int64_t bytes = 0;
  for (const Step& step : steps_) {
    bytes += step.planned->kept_bytes();
    step.for_rows.ForEach([&](const BoundKernel& kernel) { bytes += kernel.kept_bytes(); });
  }
  return bytes;
}

void PlanRunner::SetFault(size_t i, uint64_t* word) {
  Step& step = steps_[i];
  step.fault = word;
  step.planned->SetFault(word);
  step.for_rows.ForEach([&](BoundKernel& kernel) { kernel.SetFault(word); });
}

void PlanRunner::Bind() {
  for (const Step& step : steps_) step.current->Bind();
}

void PlanRunner::BindFeedReaders() {
  for (const size_t i : feed_readers_) kernel(i).Bind();
}

void PlanRunner::BindAllButFeedReaders() {
  for (const Step& step : steps_) {
    if (!step.reads_feed) step.current->Bind();
  }
}

void PlanRunner::FollowArena() {
  for (const Step& step : steps_) {
    step.planned->FollowArena();
    step.for_rows.ForEach([](BoundKernel& kernel) {
      kernel.FollowArena();
      kernel.Bind();
    });
  }
}

void PlanRunner::ChooseKernels() {
  for (const size_t i : fixed_) ChooseKernel(i);
}

void PlanRunner::ChooseKernel(size_t i) {
  Step& step = steps_[i];
  if (!step.is_fixed) return;
  step.current =
      step.for_rows.Choose(plan_.instructions[i], values_, [this, i] { return PrepareForRows(i); });
}

std::unique_ptr<BoundKernel> PlanRunner::PrepareForRows(size_t i) {
  const double start = SteadySeconds();
  // The kernel that this one takes the place of may still be at work.
  link_.Wait();
  const Plan& current = current_plan_(i);
  Instruction instruction = current.instructions[i];
  KernelNames same;
  const KernelDef* def = steps_[i].planned->def();
  if (def != nullptr) same.emplace(instruction.op->type, def->name);
  PreparedKernel kernel = PrepareKernel(
      {.environment = environment_, .forced = same, .rows_vary = true}, current, &instruction);
  std::unique_ptr<BoundKernel> bound = BoundFor(i, std::move(kernel), instruction.workspace_bytes);
  bound->SetFault(steps_[i].fault);
  ++preparations_.kernels;
  preparations_.seconds += SteadySeconds() - start;
  return bound;
}

void PlanRunner::StartTiming(Clock clock) {
  clock_ = clock;
  for (Step& step : steps_) {
    step.seconds = step.waited_seconds = 0;
    StartBodyTiming(step.current->kernel());
  }
}

void PlanRunner::Measure(size_t i, const std::function<void()>& work) {
  const bool is_by_events = clock_ == Clock::kEvents;
  if (is_by_events && !RunsOnHost(plan_, plan_.instructions[i])) {
    return MeasureByEvents(i, StreamOf(i), &InstructionTime::seconds, work);
  }
  // The device's work before it isn't the instruction's.
  if (is_by_events) link_.Wait();
  const double start = SteadySeconds();
  work();
  if (!is_by_events) link_.Wait();
  steps_[i].seconds += SteadySeconds() - start;
}

void PlanRunner::MeasureWait(size_t i, const std::function<void()>& wait) {
  if (link_.has_device()) {
    return MeasureByEvents(i, &link_.stream(), &InstructionTime::waited_seconds, wait);
  }
  const double start = SteadySeconds();
  wait();
  steps_[i].waited_seconds += SteadySeconds() - start;
}

void PlanRunner::MeasureByEvents(size_t i, DeviceStream* stream, double InstructionTime::*seconds,
                                 const std::function<void()>& work) {
  DeviceTime time{
      .instruction = i, .seconds = seconds, .start = link_.MakeEvent(), .end = link_.MakeEvent()};
  stream->Record(time.start.get());
  work();
  stream->Record(time.end.get());
  device_times_.push_back(std::move(time));
}

DeviceStream* PlanRunner::StreamOf(size_t i) const {
  const bool is_beside = plan_.instructions[i].stream == PlanStream::kCommunication;
  return is_beside ? state_.communication.stream : &link_.stream();
}

std::vector<InstructionTime> PlanRunner::StopTiming() {
  clock_.reset();
  std::vector<InstructionTime> times;
  std::vector<InstructionTime> of_bodies;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const BoundKernel& kernel = *steps_[i].current;
    times.push_back(TimeOf(plan_, plan_.instructions[i], kernel.def(), steps_[i].seconds));
    times.back().waited_seconds = steps_[i].waited_seconds;
    StopBodyTiming(kernel.kernel(), &times.back(), &of_bodies);
  }
  // Last: a device that has failed throws here.
  for (const DeviceTime& time : std::exchange(device_times_, {})) {
    times[time.instruction].*time.seconds += time.end->SecondsSince(*time.start);
  }
  std::ranges::move(of_bodies, std::back_inserter(times));
  return times;
}

void PlanRunner::AbandonTiming() {
  // An event of an instruction that has failed may never be reached.
  device_times_.clear();
  StopTiming();
}

}  // namespace skiff
