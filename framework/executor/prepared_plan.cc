#include "framework/executor/prepared_plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "framework/analysis/dependencies.h"
#include "framework/analysis/liveness.h"
#include "framework/analysis/memory_report.h"
#include "framework/analysis/scope_use.h"
#include "framework/base/error.h"
#include "framework/executor/fused_kernel.h"
#include "framework/executor/in_step_kernel.h"
#include "framework/executor/scope_overlap.h"
#include "framework/executor/storage.h"
#include "framework/op/background_kernel.h"
#include "framework/tensor/layout_copy.h"
#include "framework/tensor/replaced_values.h"
#include "framework/tuning/kernel_tuner.h"
#include "memory/out_of_memory_error.h"

namespace skiff {
namespace {

// Startup and main program count their ops each from 0. Without this mark in the id, a parameter
// would start as the very numbers by which an op of the first training step drops elements.
constexpr uint64_t kTraining = uint64_t{1} << 31;

// Whether `earlier` has refused whatever `later` could refuse: see OpDef::data_checked_by.
bool HasCheckedFor(const Instruction& later, const Instruction& earlier) {
  if (earlier.kind != InstructionKind::kOp) return false;
  // Computed again.
  if (earlier.op == later.op && earlier.inputs == later.inputs) return true;
  if (earlier.def->type != later.def->data_checked_by) return false;
  const bool same_values = std::ranges::all_of(later.def->inputs, [&](const SlotDef& slot) {
    const int32_t value = later.InputIn(slot.name);
    if (earlier.def->FindInput(slot.name) != nullptr) return earlier.InputIn(slot.name) == value;
    return earlier.def->FindOutput(slot.name) == nullptr || earlier.OutputIn(slot.name) == value;
  });
  return same_values && std::ranges::all_of(later.def->attrs, [&](const AttrDef& attr) {
           const AttrDef* of_earlier = earlier.def->FindAttr(attr.name);
           if (of_earlier == nullptr) return false;
           const Attribute* a = EffectiveAttr(*later.op, attr);
           const Attribute* b = EffectiveAttr(*earlier.op, *of_earlier);
           return a != nullptr && b != nullptr && SameAttribute(*a, *b);
         });
}

// A generation that no scope reaches.
constexpr uint64_t kNeverCurrent = std::numeric_limits<uint64_t>::max();

// Whether only the data can tell if the instruction fails.
bool MayRefuseData(const std::vector<Instruction>& instructions, size_t index) {
  const Instruction& instruction = instructions[index];
  if (!ChecksData(instruction)) return false;
  return std::none_of(
      instructions.begin(), instructions.begin() + static_cast<ptrdiff_t>(index),
      [&](const Instruction& earlier) { return HasCheckedFor(instruction, earlier); });
}

}  // namespace

PreparedPlan::PreparedPlan(Plan plan, Inputs inputs)
    : plan_(std::move(plan)), inputs_(std::move(inputs)), device_{plan_.place, nullptr} {
  seed_ = inputs_.program->seed;
  PrepareKernels();
  PlanStorage(&plan_);
}

void PreparedPlan::Allocate() {
  constexpr size_t kListed = 8;
  try {
    AllocateAll();
  } catch (const OutOfMemoryError& error) {
    throw Error(error.code(),
                StrCat(error.what(), "\n", DescribePeak(ReportMemory(plan_), kListed)));
  }
}

void PreparedPlan::AllocateAll() {
  arena_ = std::make_shared<Buffer>(AllocatorOf(plan_.place), plan_.planned_bytes,
                                    AllocationOptions{.tag = MemoryTag::kArena});
  try {
    CreatePersistables();
    Bind();
    PlanRollback();
    if (plan_.memory.poison_dead_memory && plan_.place.is_cpu()) PlanPoison();
  } catch (...) {
    rollbacks_.clear();
    Undo();
    throw;
  }
}

PreparedPlan::~PreparedPlan() { EraseCreated(); }

void PreparedPlan::CreatePersistables() {
  std::unordered_set<std::string_view> names;
  for (const PlanValue& value : plan_.values) {
    if (value.storage != Storage::kScope || !names.insert(value.name).second) continue;
    if (inputs_.scope->Find(value.name) != nullptr) continue;
    Tensor tensor(value.meta.shape, value.meta.dtype, plan_.place);
    created_.push_back({value.name, tensor.buffer()});
    inputs_.scope->Reserve(value.name, std::move(tensor));
  }
}

// Somebody else may have taken the name since, for another plan or for good.
void PreparedPlan::EraseCreated() {
  for (const Created& created : created_) {
    const Tensor* tensor = inputs_.scope->FindMutable(created.name);
    if (tensor != nullptr && tensor->buffer() == created.buffer) inputs_.scope->Erase(created.name);
  }
  created_.clear();
}

// An op may refuse the data (labels, ids) that it reads. What the scope held and ops up to the last
// such one write is saved before a run: running statistics and counters as a rule, parameters only
// where a first check of data comes after an update.
void PreparedPlan::PlanRollback() {
  size_t end = steps_.size();
  while (end > 0 && !MayRefuseData(plan_.instructions, end - 1)) --end;
  std::set<std::string> saved;
  for (const Created& created : created_) saved.insert(created.name);
  const auto in_scope = [this](int32_t value) {
    return value >= 0 && plan_.values[static_cast<size_t>(value)].storage == Storage::kScope;
  };
  for (size_t i = 0; i < end; ++i) {
    const Instruction& instruction = plan_.instructions[i];
    for (int32_t output : instruction.outputs) {
      if (!in_scope(output)) continue;
      const std::string& name = plan_.values[static_cast<size_t>(output)].name;
      if (!saved.insert(name).second) continue;
      Tensor* live = inputs_.scope->FindMutable(name);
      rollbacks_.push_back({live, Tensor(live->shape(), live->dtype(), live->place())});
    }
  }
}

void PreparedPlan::PlanPoison() {
  poisoned_.resize(plan_.instructions.size());
  const std::vector<Life> lives = StorageLives(plan_);
  for (size_t i = 0; i < plan_.values.size(); ++i) {
    const PlanValue& value = plan_.values[i];
    const auto last = static_cast<size_t>(lives[i].last);
    if (value.storage != Storage::kArena || lives[i].first < 0 || last >= poisoned_.size())
      continue;
    poisoned_[last].push_back({value.offset, StorageBytes(value)});
  }
  for (size_t i = 0; i < poisoned_.size(); ++i) {
    const Instruction& instruction = plan_.instructions[i];
    for (size_t j = 0; j < instruction.workspace_bytes.size(); ++j) {
      poisoned_[i].push_back({instruction.workspace_offsets[j], instruction.workspace_bytes[j]});
    }
  }
}

void PreparedPlan::Poison(DeadMemory dead) {
  if (dead.bytes == 0) return;
  // Of every floating-point dtype a NaN, of an integer -1.
  constexpr int kPoison = 0xff;
  std::memset(static_cast<char*>(arena_->data()) + dead.offset, kPoison,
              static_cast<size_t>(dead.bytes));
}

void PreparedPlan::PrepareKernels() {
  steps_.resize(plan_.instructions.size());
  derived_requests_.resize(plan_.instructions.size());
  const ConstantInputs constant(plan_);
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    Instruction& instruction = plan_.instructions[i];
    Step& step = steps_[i];
    if (instruction.kind == InstructionKind::kCopy) {
      step.kernel = MakeKernel([](const KernelContext& context) {
        CopyBetweenLayouts(context.input(0), &context.output(0));
      });
      continue;
    }
    try {
      if (instruction.kind == InstructionKind::kFused) {
        step.kernel = MakeFusedKernel(*inputs_.registry, plan_, instruction);
        continue;
      }
      if (instruction.kind == InstructionKind::kInStep) {
        step.kernel = MakeInStepKernel(*inputs_.registry, plan_, &instruction);
        continue;
      }
      PrepareContext context = ContextOf(plan_, instruction);
      step.kernel_def = &ChooseKernel(instruction, context, constant);
      step.kernel = step.kernel_def->prepare(context);
      instruction.workspace_bytes = context.workspace_bytes();
      RequestDerived(context.derived_forms(), constant, &instruction, &derived_requests_[i]);
    } catch (const Error& error) {
      ThrowIn(error, i);
    }
  }
}

void PreparedPlan::RequestDerived(const std::vector<DerivedForm>& forms,
                                  const ConstantInputs& constant, Instruction* instruction,
                                  std::vector<DerivedRequest>* requests) {
  if (forms.empty()) return;
  const std::vector<bool> is_constant = constant.Of(*instruction);
  for (const DerivedForm& form : forms) {
    const bool is_kept = std::ranges::all_of(
        form.inputs, [&](int input) { return is_constant[static_cast<size_t>(input)]; });
    DerivedRequest request{.form = form};
    if (!is_kept) {
      request.workspace = static_cast<int>(instruction->workspace_bytes.size());
      instruction->workspace_bytes.push_back(form.bytes);
    }
    requests->push_back(std::move(request));
  }
}

void PreparedPlan::BindDerived(const Instruction& instruction, DerivedRequest& request,
                               Step* step) {
  Derived derived;
  if (request.workspace >= 0) {
    derived.data = step->context.workspace(request.workspace);
  } else {
    derived.storage = std::make_unique<Buffer>(AllocatorOf(plan_.place), request.form.bytes,
                                               AllocationOptions{.tag = MemoryTag::kDerivedForm});
    derived.data = derived.storage->data();
    for (int input : request.form.inputs) {
      const int32_t value = instruction.inputs[static_cast<size_t>(input)];
      derived.source_versions.push_back(
          inputs_.scope->Version(plan_.values[static_cast<size_t>(value)].name));
    }
  }
  derived.refresh = std::move(request.form.refresh);
  step->context.derived_forms.push_back(derived.data);
  step->derived.push_back(derived_.size());
  derived_.push_back(std::move(derived));
}

const KernelDef& PreparedPlan::ChooseKernel(const Instruction& instruction,
                                            const OpContext& context,
                                            const ConstantInputs& constant) const {
  const std::string_view forced = plan_.ForcedKernel(instruction.op->type);
  if (!forced.empty()) {
    const KernelDef* kernel = inputs_.registry->FindKernel(context, forced);
    return kernel != nullptr ? *kernel : inputs_.registry->SelectKernel(context);
  }
  if (inputs_.tuner == nullptr) return inputs_.registry->SelectKernel(context);
  return inputs_.tuner->Choose({.context = context, .is_constant = constant.Of(instruction)});
}

void PreparedPlan::Bind() {
  Scope& scope = *inputs_.scope;
  tensors_.resize(plan_.values.size());
  value_tensors_.assign(plan_.values.size(), nullptr);
  for (size_t i = 0; i < plan_.values.size(); ++i) {
    const PlanValue& value = plan_.values[i];
    value_tensors_[i] = &tensors_[i];
    if (value.storage == Storage::kScope) {
      value_tensors_[i] = scope.FindMutable(value.name);
    } else if (value.storage == Storage::kArena) {
      const int32_t root = plan_.StorageOf(static_cast<int32_t>(i));
      const int64_t offset = plan_.values[static_cast<size_t>(root)].offset;
      if (offset < 0) continue;  // dropped
      tensors_[i] = Tensor(value.meta.shape, value.meta.dtype, arena_, offset, value.meta.layout);
    }
  }
  CheckScopeOverlap(plan_, scope);
  Tensor* counter = scope.FindMutable(kStepCounterName);
  SKIFF_ENFORCE(counter != nullptr && counter->dtype() == DType::kInt64 && counter->has_data() &&
                    counter->element_count() == 1,
                kFailedPrecondition, "the scope must hold the step counter \"", kStepCounterName,
                "\" as int64 [1]");
  step_counter_ = counter->data<int64_t>();
  for (size_t i = 0; i < steps_.size(); ++i) {
    BindStep(plan_.instructions[i], &steps_[i]);
    for (DerivedRequest& request : derived_requests_[i]) {
      BindDerived(plan_.instructions[i], request, &steps_[i]);
    }
  }
  derived_requests_.clear();
  BindKernels();
  MakeFetches();
  generation_ = scope.generation();
}

void PreparedPlan::BindKernels() {
  const auto is_feed = [this](int32_t value) {
    return value >= 0 && plan_.values[static_cast<size_t>(value)].storage == Storage::kFeed;
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (std::ranges::any_of(plan_.instructions[i].inputs, is_feed)) {
      feed_readers_.push_back(i);
    } else {
      steps_[i].kernel->Bind(steps_[i].context);
    }
  }
}

void PreparedPlan::MakeFetches() {
  for (int32_t fetch : plan_.fetches) {
    const PlanValue& value = plan_.values[static_cast<size_t>(fetch)];
    fetches_.emplace_back(value.meta.shape, value.meta.dtype, Place::Cpu(), value.meta.layout);
  }
}

void PreparedPlan::BindStep(const Instruction& instruction, Step* step) {
  KernelContext& context = step->context;
  auto* background = dynamic_cast<BackgroundKernel*>(step->kernel.get());
  const auto tensor_of = [&](int32_t value) {
    return value < 0 ? nullptr : value_tensors_[static_cast<size_t>(value)];
  };
  for (int32_t input : instruction.inputs) context.inputs.push_back(tensor_of(input));
  for (int32_t output : instruction.outputs) {
    context.outputs.push_back(tensor_of(output));
    if (output < 0) continue;
    const PlanValue& value = plan_.values[static_cast<size_t>(output)];
    if (value.storage == Storage::kScope) {
      step->written_versions.push_back(inputs_.scope->Version(value.name));
      written_.emplace(value.name, tensor_of(output));
      if (background != nullptr) {
        pending_[tensor_of(output)] = background->pending();
        inputs_.scope->SetPending(value.name, background->pending());
      }
    }
  }
  for (int64_t offset : instruction.workspace_offsets) {
    context.workspaces.push_back(static_cast<char*>(arena_->data()) + offset);
  }
  context.device_context = &device_;
  context.seed = &seed_;
  context.step = &step_;
  context.op_id = static_cast<uint64_t>(instruction.op->id) | (inputs_.trains ? kTraining : 0);
}

void PreparedPlan::BindFeeds(const FeedList& feeds) {
  for (const auto& [feed, fed] : feeds) {
    for (const auto& [name, tensor] : written_) {
      SKIFF_ENFORCE(!ShareBytes(fed, *tensor), kInvalidArgument, "feed \"", feed,
                    "\" shares its memory with \"", name,
                    "\", which the run writes: feed a copy (CopyToCpu)");
    }
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    *value_tensors_[static_cast<size_t>(plan_.feeds[i])] = feeds[i].second;
  }
  for (size_t i : feed_readers_) steps_[i].kernel->Bind(steps_[i].context);
}

void PreparedPlan::ReleaseFeeds() {
  for (int32_t feed : plan_.feeds) *value_tensors_[static_cast<size_t>(feed)] = Tensor();
}

void PreparedPlan::RunStep(Step& step) {
  for (size_t index : step.derived) {
    Derived& derived = derived_[index];
    uint64_t version = 0;
    for (const uint64_t* source : derived.source_versions) version += *source;
    if (derived.storage != nullptr && derived.filled && derived.version == version) continue;
    derived.refresh(step.context, derived.data);
    derived.filled = true;
    derived.version = version;
  }
  step.kernel->Run(step.context);
  for (uint64_t* version : step.written_versions) ++*version;
}

// A training would take averages for its parameters, and what a run writes over them is lost.
void PreparedPlan::CheckReplacedValues() const {
  SKIFF_ENFORCE(!inputs_.trains, kFailedPrecondition,
                "a training step, but the scope has replaced values, averages for example: restore "
                "its own first");
  for (const auto& [name, tensor] : written_) {
    CheckNotReplaced(*inputs_.scope, name, "a run that writes a variable");
  }
}

void PreparedPlan::Await(const Tensor& tensor) const {
  const auto found = pending_.find(&tensor);
  if (found != pending_.end()) found->second->Wait();
}

void PreparedPlan::StartRun() {
  if (inputs_.scope->has_replaced_values()) CheckReplacedValues();
  if (fetches_.empty()) MakeFetches();
  step_ = static_cast<uint64_t>(*step_counter_);
  for (Rollback& rollback : rollbacks_) {
    Await(*rollback.live);
    CopyTensor(*rollback.live, &rollback.saved);
  }
  if (!poisoned_.empty()) Poison({.offset = 0, .bytes = plan_.planned_bytes});
}

void PreparedPlan::Undo() {
  // Versions have moved with the writes that are undone, and no plan reads a derived form of a
  // version that it wrote itself before it writes the next.
  for (const Rollback& rollback : rollbacks_) {
    Await(*rollback.live);
    CopyTensor(rollback.saved, rollback.live);
  }
  // The plan points to what is erased here: it must be made again.
  if (!created_.empty()) generation_ = kNeverCurrent;
  EraseCreated();
}

template <typename RunOne>
void PreparedPlan::RunSteps(const RunOne& run_one) {
  StartRun();
  for (const Segment& segment : plan_.segments) {
    for (size_t i = segment.begin; i < segment.end; ++i) {
      try {
        run_one(i);
        if (!poisoned_.empty()) std::ranges::for_each(poisoned_[i], [&](auto d) { Poison(d); });
      } catch (const Error& error) {
        Undo();
        ThrowIn(error, i);
      } catch (...) {
        Undo();
        throw;
      }
    }
  }
  FinishRun();
}

void PreparedPlan::Run() {
  RunSteps([this](size_t i) { RunStep(steps_[i]); });
}

std::vector<InstructionTime> PreparedPlan::TimedRun() {
  using Clock = std::chrono::steady_clock;
  std::vector<InstructionTime> times;
  RunSteps([&](size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    const Clock::time_point start = Clock::now();
    RunStep(steps_[i]);
    InstructionTime time;
    time.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    time.type = instruction.Name();
    time.kernel = steps_[i].kernel_def == nullptr ? "" : steps_[i].kernel_def->name;
    const auto output = std::ranges::find_if(instruction.outputs, [](int32_t v) { return v >= 0; });
    if (output != instruction.outputs.end()) {
      time.output = plan_.values[static_cast<size_t>(*output)].name;
    }
    times.push_back(std::move(time));
  });
  return times;
}

void PreparedPlan::FinishRun() {
  for (const Created& created : created_) inputs_.scope->Reveal(created.name);
  created_.clear();
  for (size_t i = 0; i < fetches_.size(); ++i) {
    const Tensor& value = *value_tensors_[static_cast<size_t>(plan_.fetches[i])];
    Await(value);
    CopyTensor(value, &fetches_[i]);
  }
  if (inputs_.trains) ++*step_counter_;
}

PlanStatistics PreparedPlan::statistics() const {
  PlanStatistics statistics;
  statistics.max_live_bytes = plan_.max_live_bytes;
  statistics.planned_bytes = plan_.planned_bytes;
  statistics.unshared_bytes = plan_.unshared_bytes;
  for (const Derived& derived : derived_) {
    if (derived.storage != nullptr) statistics.derived_bytes += derived.storage->bytes();
  }
  for (const Rollback& rollback : rollbacks_) {
    statistics.rollback_bytes += rollback.saved.byte_count();
  }
  // From the plan: a variable may have left the scope since.
  std::set<std::string_view> seen;
  for (const PlanValue& value : plan_.values) {
    if (value.storage != Storage::kScope || !seen.insert(value.name).second) continue;
    statistics.persistable_bytes += StorageBytes(value);
  }
  statistics.instructions = static_cast<int64_t>(steps_.size());
  statistics.layout_copies = std::ranges::count_if(
      plan_.instructions, [](const Instruction& i) { return i.kind == InstructionKind::kCopy; });
  return statistics;
}

void PreparedPlan::ThrowIn(const Error& error, size_t index) const {
  const Instruction& instruction = plan_.instructions[index];
  throw error.WithContext(DescribeOp(*instruction.op, 0, instruction.position));
}

}  // namespace skiff
