// The body's tensors have stable addresses; an iteration only moves the data pointers of those that
// lie in stacks. Carried values are copied to their feeds at the end of an iteration, since a fetch
// may still be read while another feed takes its value.
#include "framework/executor/loop_kernel.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/base/steady_seconds.h"
#include "framework/executor/arena_poison.h"
#include "framework/executor/bound_kernel.h"
#include "framework/executor/device_link.h"
#include "framework/executor/guarded_memory.h"
#include "framework/executor/loop_batch.h"
#include "framework/executor/loop_rows.h"
#include "framework/executor/plan_lods.h"
#include "framework/executor/row_kernels.h"
#include "framework/executor/storage.h"
#include "framework/executor/timed_body.h"
#include "framework/op/device_sum.h"
#include "framework/plan/loop.h"
#include "framework/tensor/tensor_array.h"

namespace skiff {
namespace {

void CheckSum(const PlanValue& value) {
  const bool adds = value.meta.is_selected_rows() || value.meta.dtype == DType::kFloat32 ||
                    value.meta.dtype == DType::kFloat64;
  SKIFF_ENFORCE(adds, kUnimplemented, "the gradient \"", value.name, "\" of ", value.meta.dtype,
                " would be added up over the iterations: expected float32 or float64");
}

template <typename T>
void AddTo(const Tensor& x, Tensor* sum) {
  const T* from = x.data<T>();
  T* to = sum->data<T>();
  constexpr int64_t kGrain = 16384;
  ParallelFor(x.element_count(), kGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
  });
}

// The memory of a body: on its place, and what a body on a device has on the host.
struct BodyMemory {
  char* on_place = nullptr;
  char* on_host = nullptr;

  char* Of(Place place, const Plan& body) const {
    return place.is_cpu() && !body.place.is_cpu() ? on_host : on_place;
  }
};

// Where values that outlive an instruction lie, after the body's arenas.
struct BodyOffsets {
  BodyOffsets(const Loop& loop, const std::vector<PreparedKernel>& kernels)
      : end(RoundUp(loop.body.planned_bytes, kBufferAlignment)),
        host_end(RoundUp(loop.body.host_planned_bytes, kBufferAlignment)),
        is_guarded(loop.body.has_guards) {
    for (const LoopFeed& feed : loop.feeds) {
      const bool has_place = feed.kind == LoopFeed::Kind::kCarried && feed.stack < 0;
      carried.push_back(has_place ? Add(loop.body, feed.value) : -1);
    }
    for (const Instruction& instruction : loop.body.instructions) {
      if (!instruction.sets_rows) continue;
      for (const ValueId output : instruction.outputs) {
        const ValueId root = output ? loop.body.StorageOf(output) : ValueId();
        if (output == root && output && loop.body[root].storage == Storage::kStack) {
          unsized.emplace(root, Add(loop.body, root));
        }
      }
    }
    for (size_t i = 0; i < loop.body.instructions.size(); ++i) {
      if (loop.body.instructions[i].batching == Batching::kNone) continue;
      batches.emplace(i, Add(BatchLayout(loop, i).Bytes(loop.body), kBufferAlignment));
    }
    for (const PreparedKernel& kernel : kernels) {
      forms.push_back(Add(DerivedForms::BytesOfLoop(kernel.derived), kBufferAlignment));
    }
  }

  int64_t Add(const Plan& body, ValueId value) {
    const bool is_apart = body[value].place.is_cpu() && !body.place.is_cpu();
    const TensorMeta& meta = body[value].meta;
    if (!is_apart) {
      return Add(StorageBytes(body[value]), AlignmentOf(body, meta.dtype, meta.layout));
    }
    const int64_t place = host_end;
    host_end = AddCounts(host_end, StackSlotBytes(body[value]));
    return place;
  }

  int64_t Add(int64_t bytes, int64_t alignment) {
    if (is_guarded) {
      const int64_t place = PlaceGuarded(bytes, alignment, &end);
      used.push_back({place, place + bytes});
      return place;
    }
    const int64_t place = end;
    end = AddCounts(end, RoundUp(bytes, kBufferAlignment));
    return place;
  }

  std::vector<int64_t> carried;  // by feed, -1 for others
  // Stacked values whose kernels set their rows, until these are known.
  std::map<ValueId, int64_t> unsized;
  // The rows of batched instructions.
  std::map<size_t, int64_t> batches;
  std::vector<int64_t> forms;  // of the loop, by instruction
  int64_t end;
  int64_t host_end;  // of what a body on a device has on the host
  bool is_guarded;
  std::vector<ByteRange> used = {};  // all of these, if there are guards
};

// The tensors of the body.
class BodyTensors final : public ValueTensors {
 public:
  explicit BodyTensors(const Loop& loop) : ValueTensors(loop.body.values.size()), body_(loop.body) {
    for (const ValueId id : body_.ids()) {
      const PlanValue& value = body_[id];
      tensor_of_[id] = &tensors_[id];
      if (value.storage == Storage::kScope) continue;
      if (value.storage == Storage::kKernelOwned) {
        // The stack of a loop inside. If the gradient reads it, each iteration has one of its own.
        tensors_[id] = Tensor::OfArray(std::make_shared<TensorArray>(body_.place));
        continue;
      }
      const int64_t bytes = StorageBytes(value.meta.shape, value.meta.dtype, value.meta.layout);
      tensors_[id] =
          Tensor(value.meta.shape, value.meta.dtype,
                 std::make_shared<Buffer>(nullptr, bytes, value.place), 0, value.meta.layout);
    }
  }

  // Makes the values of the scope be these of the outer plan, and puts those of the arenas into
  // `memory`.
  void Place(const Loop& loop, const KernelContext& outer, const BodyMemory& memory) {
    memory_ = memory;
    for (const LoopScopeValue& variable : loop.scope_values) {
      const auto index = static_cast<size_t>(variable.index);
      if (variable.index < 0) {
        Tensor& array = own_arrays_[body_[variable.value].name];
        if (array.array() == nullptr) {
          array = Tensor::OfArray(std::make_shared<TensorArray>(body_.place));
        }
        tensor_of_[variable.value] = &array;
        continue;
      }
      tensor_of_[variable.value] = variable.is_output ? outer.outputs[index] : outer.inputs[index];
    }
    for (const ValueId id : body_.ids()) {
      // Stacked values have no place as yet, and those that are read for their shapes never have.
      const int64_t offset = body_[body_.StorageOf(id)].offset;
      if (body_[id].storage != Storage::kArena || offset < 0) continue;
      tensors_[id].Rebind(memory.Of(body_[id].place, body_) + offset);
    }
  }

  void ClearOwnArrays() {
    for (auto& [name, array] : own_arrays_) array.array()->Clear();
  }

  // Gives back what own arrays on a device have outgrown, after a wait.
  void ReleaseOutgrown(DeviceLink* link) {
    for (auto& [name, array] : own_arrays_) {
      if (!array.array()->HasOutgrown()) continue;
      link->Wait();
      array.array()->ReleaseOutgrown();
    }
  }

  void* InArena(skiff::Place place, int64_t offset) const override {
    return memory_.Of(place, body_) + offset;
  }

  void SetPending(ValueId value, PendingWrites*) override {
    Throw(ErrorCode::kUnimplemented, "\"", body_[value].name,
          "\" would be written in the background of a loop");
  }

 private:
  const Plan& body_;
  std::map<std::string, Tensor> own_arrays_;
  BodyMemory memory_;
};

class LoopKernel final : public Kernel, public TimedBody {
 public:
  LoopKernel(std::shared_ptr<const Loop> loop, std::vector<PreparedKernel> kernels,
             std::unique_ptr<LoopRows> rows, const KernelSelection& selection)
      : loop_(std::move(loop)),
        body_(loop_->body),
        rows_(std::move(rows)),
        environment_(selection.environment),
        scope_(environment_.scope),
        link_(environment_.LinkTo(body_.place)),
        offsets_(*loop_, kernels),
        tensors_(*loop_),
        prepared_(std::move(kernels)) {
    for (const LoopFeed& feed : loop_->feeds) {
      std::vector<ValueId>& views = views_.emplace_back();
      if (feed.kind != LoopFeed::Kind::kInvariant) continue;
      for (const ValueId id : body_.ids()) {
        if (body_[id].alias_of == feed.value) views.push_back(id);
      }
    }
    for (const LoopFetch& fetch : loop_->fetches) {
      if (fetch.kind != LoopFetch::Kind::kSum || fetch.output < 0) continue;
      CheckSum(body_[fetch.value]);
      if (body_.place.is_cpu()) continue;
      device_sums_.try_emplace(&fetch, environment_.registry, body_[fetch.value].meta, body_.place);
    }
  }

  void Bind(const KernelContext& context) override {
    if (offsets_.host_end > 0 && host_memory_ == nullptr) {
      host_memory_ = std::make_unique<Buffer>(AllocatorOf(Place::Cpu()), offsets_.host_end,
                                              AllocationOptions{.tag = MemoryTag::kArena});
    }
    memory_ = {
        .on_place = static_cast<char*>(context.workspace(0)),
        .on_host = host_memory_ == nullptr ? nullptr : static_cast<char*>(host_memory_->data())};
    if (offsets_.is_guarded) PlaceGuards();
    tensors_.Place(*loop_, context, memory_);
    PlaceFeeds(context);
    if (steps_.empty()) {
      MakeSteps(context);
    } else {
      for (Step& step : steps_) {
        if (step.kernel) step.kernel->FollowArena();
        step.for_rows.ForEach([](BoundKernel& kernel) {
          kernel.FollowArena();
          kernel.Bind();
        });
      }
    }
    StartForms();
    for (Step& step : steps_) {
      if (step.kernel) step.kernel->Bind();
    }
    for (const auto& [index, place] : offsets_.batches)
      steps_[index].batch->rows->Bind(memory_.on_place + place);
  }

  void Run(const KernelContext& context) override {
    state_.step = *context.step;
    // What the device has to do before isn't the body's.
    if (is_timed_) link_.Wait();
    if (link_.has_device()) tensors_.ReleaseOutgrown(&link_);
    PlaceFeeds(context);
    for (Step& step : steps_) {
      if (step.reads_feed && step.kernel) step.kernel->Bind();
    }
    for (const auto& [index, place] : offsets_.batches) {
      if (steps_[index].reads_feed) steps_[index].batch->rows->Bind(memory_.on_place + place);
    }
    StartForms();
    rows_ ? rows_->NoteFeeds(context) : SetLoDs();
    // Whoever fed them may want to have them back.
    const FeedRelease release{*loop_, tensors_};
    Start(context);
    const int64_t known = KnownIterations(context);
    int64_t t = 0;
    for (; known >= 0 ? t < known : Continues(); ++t) {
      SKIFF_ENFORCE(known >= 0 || t < loop_->max_iterations, kOutOfRange, "the condition \"",
                    ConditionName(), "\" is still true after ", t,
                    " iterations, the option max_loop_iterations");
      RunIteration(context, known, t);
    }
    Finish(context, t);
  }

  // Those of the body are those of the inputs (LoopRows).
  bool AcceptsFewerRows() const override { return true; }

  void StartTiming() override {
    is_timed_ = true;
    for (Step& step : steps_) {
      step.seconds = 0;
      if (step.kernel) StartBodyTiming(step.kernel->kernel());
    }
  }

  std::vector<InstructionTime> StopTiming() override {
    is_timed_ = false;
    std::vector<InstructionTime> times;
    std::vector<InstructionTime> of_bodies;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      const KernelDef* def = step.kernel ? step.kernel->def() : step.batch->rows->def();
      times.push_back(TimeOf(body_, body_.instructions[i], def, step.seconds));
      if (step.kernel) StopBodyTiming(step.kernel->kernel(), &times.back(), &of_bodies);
    }
    times.insert(times.end(), of_bodies.begin(), of_bodies.end());
    return times;
  }

 private:
  struct FeedRelease {
    ~FeedRelease() {
      for (const LoopFeed& feed : loop.feeds) {
        if (feed.kind == LoopFeed::Kind::kInvariant) *tensors.Of(feed.value) = Tensor();
      }
    }
    const Loop& loop;
    const BodyTensors& tensors;
  };
  // An instruction with a batching.
  struct Batch {
    std::unique_ptr<LoopBatch> rows;
    // Before: where the rows of later iterations are, in the parts of a stack or in the elements of
    // an array from that of the index on.
    const LoopFeed* part = nullptr;
    ValueId array = {};
    ValueId index = {};
    // After: the sums that leave the loop, and how many have been added up in this run.
    std::vector<const LoopFetch*> sums = {};
    int64_t added = 0;
  };
  struct Step {
    std::unique_ptr<BoundKernel> kernel;
    std::optional<Batch> batch;  // instead
    bool reads_feed = false;     // an argument may be elsewhere in each run
    bool moves = false;          // an argument is elsewhere in each iteration
    bool sets_rows = false;
    bool varies = false;  // the rows of an argument do
    RowKernels for_rows;  // if `kernel` doesn't take fewer
    std::vector<uint64_t*> written_versions;
    double seconds = 0;  // since StartTiming
  };
  // A storage that lies in a stack, and a value in it.
  struct Stashed {
    ValueId value;
    LoopStash stash;
    bool varies = false;
    bool is_placed = false;  // in this iteration
  };

  // ---- binding

  void PlaceGuards() {
    if (std::exchange(guards_at_, memory_.on_place) == memory_.on_place) return;
    std::vector<ByteRange> used = offsets_.used;
    std::ranges::copy(UsedRanges(body_), std::back_inserter(used));
    GuardPart(memory_.on_place, offsets_.end, used);
  }

  // Has the forms of this run made when they are needed first.
  void StartForms() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      char* const forms = memory_.on_place + offsets_.forms[i];
      steps_[i].batch ? steps_[i].batch->rows->StartLoop(forms)
                      : steps_[i].kernel->StartLoop(forms);
    }
  }

  bool IsStacked(ValueId value) const {
    return value && body_[body_.StorageOf(value)].storage == Storage::kStack;
  }

  bool Moves(ValueId value) const {
    if (!value) return false;
    if (IsStacked(value) || IsStash(value)) return true;
    const auto feed = std::ranges::find(loop_->feeds, value, &LoopFeed::value);
    return feed != loop_->feeds.end() && (feed->kind == LoopFeed::Kind::kPart || feed->stack >= 0);
  }

  bool IsStash(ValueId value) const {
    return std::ranges::count(loop_->stashes, value, &LoopStash::value) > 0;
  }

  Batch MakeBatch(size_t i, uint64_t op_id) {
    const Instruction& instruction = body_.instructions[i];
    Batch batch{.rows = std::make_unique<LoopBatch>(*loop_, i, std::move(prepared_[i]), op_id,
                                                    &tensors_, scope_, &state_)};
    if (instruction.batching == Batching::kAfter) {
      for (const LoopFetch& fetch : loop_->fetches) {
        if (std::ranges::count(instruction.outputs, fetch.value) == 0) continue;
        batch.sums.push_back(&fetch);
        summed_after_.insert(&fetch);
      }
      return batch;
    }
    const ValueId rows = instruction.InputIn(instruction.def->rows->inputs.front());
    const auto feed = std::ranges::find(loop_->feeds, rows, &LoopFeed::value);
    if (feed != loop_->feeds.end()) {
      batch.part = &*feed;
      return batch;
    }
    const Instruction& read = *std::ranges::find_if(
        body_.instructions,
        [&](const Instruction& other) { return std::ranges::count(other.outputs, rows) > 0; });
    batch.array = read.InputIn(read.def->element->array);
    batch.index = read.InputIn(read.def->element->index);
    return batch;
  }

  void MakeSteps(const KernelContext& context) {
    state_.device = context.device();
    state_.device_step = context.device_step;
    std::vector<Step> steps(prepared_.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      const Instruction& instruction = body_.instructions[i];
      steps[i].sets_rows = rows_ && instruction.sets_rows;
      steps[i].varies = rows_ && rows_->Varies(instruction);
      const uint64_t op_id = RandomOpId(instruction, environment_.trains);
      if (instruction.batching == Batching::kNone) {
        steps[i].kernel =
            std::make_unique<BoundKernel>(std::move(prepared_[i]), instruction.workspace_bytes,
                                          body_, instruction, op_id, &tensors_, scope_, &state_);
      } else {
        steps[i].batch = MakeBatch(i, op_id);
      }
      for (const ValueId input : instruction.inputs) {
        steps[i].reads_feed |= input && body_[body_.StorageOf(input)].storage == Storage::kFeed;
        steps[i].moves |= Moves(input);
      }
      for (const ValueId output : instruction.outputs) {
        steps[i].moves |= Moves(output);
        if (!output || body_[output].storage != Storage::kScope) continue;
        if (body_[output].meta.is_array) continue;
        steps[i].written_versions.push_back(scope_->Version(body_[output].name));
      }
    }
    steps_ = std::move(steps);
    // Each storage that lies in stacks, with the values in it.
    for (const LoopStash& stash : loop_->stashes) {
      for (const ValueId id : body_.ids()) {
        if (body_.StorageOf(id) != stash.value) continue;
        stashed_.push_back({id, stash, rows_ != nullptr && rows_->Varies(stash.value)});
      }
    }
    if (rows_) rows_->Bind(&tensors_);
    if (environment_.poisons && body_.place.is_cpu()) poison_.emplace(body_, tensors_);
    const bool is_ragged = !rows_ && std::ranges::any_of(loop_->feeds, [&](const LoopFeed& feed) {
      return CountedLoD(body_[feed.value].meta) != nullptr;
    });
    if (!is_ragged) return;
    lods_.emplace(body_);
    lods_->Bind(&tensors_);
  }

  // Gives the values the LoDs that follow from those of the feeds.
  void SetLoDs() {
    if (!lods_) return;
    feed_lods_.clear();
    for (const LoopFeed& feed : loop_->feeds) {
      feed_lods_.push_back(&tensors_.Of(feed.value)->lod());
    }
    lods_->Derive(feed_lods_, &next_lods_);
    lods_->Set(&next_lods_);
  }

  // Points the feeds at the inputs of the moment.
  void PlaceFeeds(const KernelContext& context) {
    for (size_t i = 0; i < loop_->feeds.size(); ++i) {
      const LoopFeed& feed = loop_->feeds[i];
      Tensor& tensor = *tensors_.Of(feed.value);
      if (feed.kind == LoopFeed::Kind::kInvariant) {
        tensor = context.input(feed.input);
        for (const ValueId view : views_[i]) tensors_.Of(view)->Rebind(tensor.raw_data());
      } else if (offsets_.carried[i] >= 0) {
        tensor.Rebind(memory_.Of(body_[feed.value].place, body_) + offsets_.carried[i]);
      }
    }
  }

  // ---- memory of the body: a value stays on its place

  void Zero(Tensor* tensor) const { Zero(tensor, tensor->byte_count()); }

  void Zero(Tensor* tensor, int64_t count) const {
    const auto bytes = static_cast<size_t>(count);
    const bool is_on_host = tensor->place().is_cpu();
    if (bytes > 0 && !is_on_host) link_.stream().Fill(tensor->raw_data(), 0, bytes);
    if (bytes > 0 && is_on_host) std::memset(tensor->raw_data(), 0, bytes);
    // Row 0 would be one that has changed.
    if (tensor->is_selected_rows()) std::ranges::fill(tensor->rows(), -1);
  }

  void CopyData(const Tensor& from, void* to) const {
    const auto bytes = static_cast<size_t>(from.byte_count());
    // A value that a carried one becomes may have been made in its place.
    if (bytes == 0 || from.raw_data() == to) return;
    if (from.place().is_cpu()) {
      std::memcpy(to, from.raw_data(), bytes);
    } else {
      link_.stream().Copy(to, body_.place, from.raw_data(), body_.place, bytes);
    }
  }

  // ---- a run

  int64_t KnownIterations(const KernelContext& context) const {
    if (loop_->iterations >= 0) return loop_->iterations;
    if (loop_->count_input >= 0) return *context.input(loop_->count_input).data<int64_t>();
    if (loop_->condition_input >= 0) {
      return *context.input(loop_->condition_input).data<bool>() ? 1 : 0;
    }
    return -1;
  }

  bool Continues() const {
    const LoopFeed& condition = loop_->feeds[static_cast<size_t>(loop_->condition_feed)];
    return *tensors_.Of(condition.value)->data<bool>();
  }

  const std::string& ConditionName() const {
    return body_[loop_->feeds[static_cast<size_t>(loop_->condition_feed)].value].name;
  }

  // Returns the address of a slot of a stack that the loop writes. Makes room for it if the number
  // of iterations isn't known.
  char* OutputSlot(const KernelContext& context, int output, int64_t slot, int64_t slot_bytes) {
    if (CountsBefore()) {
      return static_cast<char*>(context.output(output).raw_data()) + slot * slot_bytes;
    }
    return static_cast<char*>(
        context.output(output).array()->Make(slot, Shape({slot_bytes}), DType::kUint8).raw_data());
  }

  // Whether stacks have as many slots as the loop needs.
  bool CountsBefore() const { return loop_->iterations >= 0 || loop_->condition_input >= 0; }

  void Start(const KernelContext& context) {
    for (const auto& [index, place] : offsets_.batches) {
      Batch& batch = *steps_[index].batch;
      batch.rows->Clear();
      batch.added = 0;
      if (poison_) batch.rows->Poison();
    }
    for (const LoopFeed& feed : loop_->feeds) {
      if (feed.kind != LoopFeed::Kind::kCarried) continue;
      Tensor& tensor = *tensors_.Of(feed.value);
      if (feed.stack >= 0) {
        tensor.Rebind(OutputSlot(context, feed.stack, 0, StackSlotBytes(body_[feed.value])));
      }
      if (feed.input >= 0) {
        CopyData(context.input(feed.input), tensor.raw_data());
      } else {
        // All rows that are planned: the tensor still has those of the run before.
        Zero(&tensor, StorageBytes(body_[feed.value]));
      }
    }
  }

  // Runs the next iteration after `done` ones. `count`: of all, -1 if nobody knows.
  void RunIteration(const KernelContext& context, int64_t count, int64_t done) {
    // The part of outer stacks, and the slot of what the halves hand over.
    const int64_t t = loop_->descending ? count - 1 - done : done;
    const int64_t slot = loop_->is_gradient ? count - 1 - done : done;
    state_.seed = SeedOfIteration(*context.seed, slot);
    tensors_.ClearOwnArrays();
    StartRows(context, slot);
    MovePointers(context, t, slot);
    for (Step& step : steps_) {
      if (step.moves && !step.varies && step.kernel) step.kernel->Bind();
    }
    if (poison_) poison_->PoisonAll();
    for (size_t i = 0; i < steps_.size(); ++i) {
      try {
        const double start = is_timed_ ? SteadySeconds() : 0;
        if (steps_[i].batch) {
          RunBatch(context, count, done, &*steps_[i].batch);
        } else {
          rows_ ? RunWithRows(context, slot, i) : steps_[i].kernel->Run();
        }
        if (is_timed_) {
          link_.Wait();
          steps_[i].seconds += SteadySeconds() - start;
        }
        for (uint64_t* version : steps_[i].written_versions) ++*version;
        if (poison_) poison_->PoisonAfter(i);
      } catch (const Error& error) {
        const Instruction& instruction = body_.instructions[i];
        throw error
            .WithContext(DescribeOp(*instruction.op, instruction.block, instruction.position))
            .WithContext(StrCat("iteration ", slot));
      }
    }
    EndIteration(context, t, done);
    if (loop_->history >= 0 && !loop_->is_gradient) {
      rows_->Save(slot, context.output(loop_->history).array());
    }
  }

  // ---- batches

  void RunBatch(const KernelContext& context, int64_t count, int64_t done, Batch* batch) {
    LoopBatch& rows = *batch->rows;
    if (!batch->sums.empty()) {
      if (rows.Collect()) return;
      AddSums(context, batch);
      rows.Collect();
      return;
    }
    if (rows.rows_left() == 0) {
      rows.Clear();
      FillBatch(context, count, done, batch);
      rows.Run();
    }
    rows.Deal();
  }

  // Gives a batch the rows of this iteration and of as many later ones as fit.
  void FillBatch(const KernelContext& context, int64_t count, int64_t done, Batch* batch) const {
    if (batch->part != nullptr) {
      const int64_t rows = tensors_.Of(batch->part->value)->shape()[0];
      for (int64_t i = done; i < count; ++i) {
        const int64_t t = loop_->descending ? count - 1 - i : i;
        if (!batch->rows->Append(PartOf(context, *batch->part, t), rows)) return;
      }
      return;
    }
    const TensorArray& array = *tensors_.Of(batch->array)->array();
    for (int64_t i = *tensors_.Of(batch->index)->data<int64_t>();; ++i) {
      const Tensor* element = array.Find(i);
      const bool is_there = element != nullptr;
      if (!is_there || !batch->rows->Append(element->raw_data(), element->shape()[0])) return;
    }
  }

  // Adds what the rows of a batch sum up to to the results of the loop.
  void AddSums(const KernelContext& context, Batch* batch) {
    batch->rows->Run();
    for (const LoopFetch* fetch : batch->sums) {
      Add(*fetch, batch->added, &context.output(fetch->output));
    }
    ++batch->added;
    batch->rows->Clear();
  }

  void StartRows(const KernelContext& context, int64_t slot) {
    for (Stashed& stashed : stashed_) stashed.is_placed = false;
    if (!rows_) return;
    rows_->StartIteration();
    if (loop_->history >= 0 && loop_->is_gradient) {
      rows_->Restore(slot, *context.input(loop_->history).array());
    }
    rows_->Apply();
  }

  void RunWithRows(const KernelContext& context, int64_t slot, size_t index) {
    Step& step = steps_[index];
    BoundKernel* kernel = step.kernel.get();
    if (step.varies) rows_->CheckRules(index);
    if (step.varies && !kernel->accepts_fewer_rows()) {
      kernel = step.for_rows.Choose(body_.instructions[index], tensors_,
                                    [&] { return PrepareForRows(index); });
    }
    if (step.varies && (step.moves || step.reads_feed)) kernel->Bind();
    kernel->Run();
    if (!step.sets_rows || loop_->is_gradient) return;
    rows_->Note(body_.instructions[index]);
    KeepUnsized(context, slot, body_.instructions[index]);
    // Several ops in a row that set rows tell them together.
    if (index + 1 < steps_.size() && steps_[index + 1].sets_rows) return;
    rows_->Apply();
    PlaceStashes(context, slot);
  }

  std::unique_ptr<BoundKernel> PrepareForRows(size_t index) {
    // The kernel that this one takes the place of may still be at work.
    link_.Wait();
    const Plan& moment = rows_->CurrentBody(index);
    const Instruction& planned = body_.instructions[index];
    Instruction instruction = moment.instructions[index];
    KernelNames same;
    const KernelDef* def = steps_[index].kernel->def();
    if (def != nullptr) same.emplace(planned.op->type, def->name);
    PreparedKernel kernel = PrepareKernel(
        {.environment = environment_, .forced = same, .rows_vary = true}, moment, &instruction);
    return std::make_unique<BoundKernel>(std::move(kernel), instruction.workspace_bytes, body_,
                                         planned, RandomOpId(planned, environment_.trains),
                                         &tensors_, scope_, &state_);
  }

  // Moves an output whose rows are known now to its slot.
  void KeepUnsized(const KernelContext& context, int64_t slot, const Instruction& instruction) {
    for (const ValueId output : instruction.outputs) {
      if (!output || !offsets_.unsized.contains(output) || CountsBefore()) continue;
      const Tensor& tensor = *tensors_.Of(output);
      const auto stashed = std::ranges::find(stashed_, output, &Stashed::value);
      char* data = OutputSlot(context, stashed->stash.index, slot, tensor.byte_count());
      CopyData(tensor, data);
      MoveStorage(output, data);
    }
  }

  // Points all values of a stacked storage at its slot.
  void MoveStorage(ValueId root, void* data) {
    for (Stashed& stashed : stashed_) {
      if (stashed.stash.value != root) continue;
      tensors_.Of(stashed.value)->Rebind(data);
      stashed.is_placed = true;
    }
  }

  // Mixes the number of the iteration into the seed, so that each iteration draws other numbers.
  // Loops inside mix theirs into the result.
  static uint64_t SeedOfIteration(uint64_t seed, int64_t t) {
    // A step of SplitMix64 (Steele, Lea, Flood 2014).
    uint64_t mixed = seed + (static_cast<uint64_t>(t) + 1) * 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
  }

  // Returns the address of part t of the stack that a feed hands out.
  char* PartOf(const KernelContext& context, const LoopFeed& feed, int64_t t) const {
    const void* stack = context.input(feed.input).raw_data();
    return static_cast<char*>(const_cast<void*>(stack)) + t * tensors_.Of(feed.value)->byte_count();
  }

  void MovePointers(const KernelContext& context, int64_t t, int64_t slot) {
    for (const LoopFeed& feed : loop_->feeds) {
      if (feed.kind != LoopFeed::Kind::kPart) continue;
      tensors_.Of(feed.value)->Rebind(PartOf(context, feed, t));
    }
    PlaceStashes(context, slot);
  }

  // Gives the stacked values slots whose sizes are known by now.
  void PlaceStashes(const KernelContext& context, int64_t slot) {
    for (const Stashed& stashed : stashed_) {
      const ValueId root = stashed.stash.value;
      if (stashed.value != root || stashed.is_placed) continue;
      const auto [value, index, shift] = stashed.stash;
      if (body_[root].storage == Storage::kKernelOwned) {
        // The stack of a loop inside: an array of this iteration's own.
        TensorArray& arrays =
            *(loop_->is_gradient ? context.input(index) : context.output(index)).array();
        *tensors_.Of(root) = Tensor::OfArray(arrays.Nested(slot));
        continue;
      }
      if (loop_->is_gradient) {
        // The gradient half may overwrite a slot that it has read: nobody else will.
        MoveStorage(root, InputSlot(context, index, slot + shift, StackSlotBytes(body_[root])));
        continue;
      }
      const auto unsized = offsets_.unsized.find(root);
      if (unsized != offsets_.unsized.end() && !CountsBefore()) {
        // Until its kernel has run.
        for (const Stashed& same : stashed_) {
          if (same.stash.value == root) {
            tensors_.Of(same.value)->Rebind(memory_.Of(body_[root].place, body_) + unsized->second);
          }
        }
        continue;
      }
      const bool is_exact = stashed.varies && !CountsBefore();
      if (is_exact && !rows_->Knows(root)) continue;
      const int64_t bytes =
          is_exact ? tensors_.Of(root)->byte_count() : StackSlotBytes(body_[root]);
      MoveStorage(root, OutputSlot(context, index, slot + shift, bytes));
    }
  }

  static char* InputSlot(const KernelContext& context, int input, int64_t slot,
                         int64_t slot_bytes) {
    const Tensor& stack = context.input(input);
    if (stack.array() != nullptr) return static_cast<char*>(stack.array()->At(slot).raw_data());
    return static_cast<char*>(const_cast<void*>(stack.raw_data())) + slot * slot_bytes;
  }

  void EndIteration(const KernelContext& context, int64_t t, int64_t done) {
    for (const LoopFetch& fetch : loop_->fetches) {
      const Tensor& value = *tensors_.Of(fetch.value);
      if (rows_) CheckRows(context, fetch, value);
      switch (fetch.kind) {
        case LoopFetch::Kind::kCarried: {
          const LoopFeed& feed = loop_->feeds[static_cast<size_t>(fetch.feed)];
          Tensor& next = *tensors_.Of(feed.value);
          if (feed.stack >= 0) {
            next.Rebind(
                OutputSlot(context, feed.stack, done + 1, StackSlotBytes(body_[feed.value])));
          }
          CopyData(value, next.raw_data());
          break;
        }
        case LoopFetch::Kind::kPart:
          if (fetch.output >= 0) {
            char* stack = static_cast<char*>(context.output(fetch.output).raw_data());
            CopyData(value, stack + t * value.byte_count());
          }
          break;
        case LoopFetch::Kind::kLast:
          if (fetch.output >= 0) CopyData(value, context.output(fetch.output).raw_data());
          break;
        case LoopFetch::Kind::kSum:
          if (fetch.output >= 0 && !summed_after_.contains(&fetch)) {
            Add(fetch, done, &context.output(fetch.output));
          }
          break;
      }
    }
  }

  // A value that an iteration hands on must have the rows of what it becomes.
  void CheckRows(const KernelContext& context, const LoopFetch& fetch, const Tensor& value) const {
    if (value.is_selected_rows()) return;
    const bool is_carried = fetch.kind == LoopFetch::Kind::kCarried;
    if (!is_carried && fetch.output < 0) return;
    if (fetch.kind == LoopFetch::Kind::kPart) {
      const Shape& all = context.output(fetch.output).shape();
      const auto part = value.shape().dims();
      SKIFF_ENFORCE(std::equal(part.begin(), part.end(), all.dims().begin() + 1, all.dims().end()),
                    kUnimplemented, "\"", body_[fetch.value].name, "\" has the shape ",
                    value.shape(), " in an iteration, expected a part of ", all,
                    ": write to the elements of an array instead");
      return;
    }
    const Tensor& next = is_carried
                             ? *tensors_.Of(loop_->feeds[static_cast<size_t>(fetch.feed)].value)
                             : context.output(fetch.output);
    SKIFF_ENFORCE(value.shape() == next.shape(), kUnimplemented, "\"", body_[fetch.value].name,
                  "\" has the shape ", value.shape(), " in an iteration and ", next.shape(),
                  " in others or outside: expected an array, to whose elements iterations write");
  }

  void Add(const LoopFetch& fetch, int64_t done, Tensor* sum) {
    Tensor& value = *tensors_.Of(fetch.value);
    if (value.is_selected_rows()) {
      return CountsBefore() ? AppendRows(value, done, sum) : ScatterRows(value, done, sum);
    }
    // The first one is the sum so far: 0 + x would turn -0 into 0.
    if (done == 0) return CopyData(value, sum->raw_data());
    if (link_.has_device()) return device_sums_.at(&fetch).Add(state_.device, &value, sum);
    value.dtype() == DType::kFloat64 ? AddTo<double>(value, sum) : AddTo<float>(value, sum);
  }

  // The sum of selected rows has the rows of all, one after the other.
  static void AppendRows(const Tensor& value, int64_t done, Tensor* sum) {
    const int64_t rows = value.shape()[0];
    const int64_t bytes = value.element_count() * SizeOf(value.dtype());
    if (bytes > 0) {
      std::memcpy(static_cast<char*>(sum->raw_data()) + done * bytes, value.raw_data(),
                  static_cast<size_t>(bytes));
    }
    std::ranges::copy(value.rows(), sum->rows().begin() + done * rows);
  }

  // Each row of the sum has its place, which is unused until an iteration has that row.
  static void ScatterRows(const Tensor& value, int64_t done, Tensor* sum) {
    if (done == 0) std::ranges::fill(sum->rows(), -1);
    value.dtype() == DType::kFloat64 ? ScatterRows<double>(value, sum)
                                     : ScatterRows<float>(value, sum);
  }

  template <typename T>
  static void ScatterRows(const Tensor& value, Tensor* sum) {
    const int64_t rows = value.shape()[0];
    const int64_t width = rows == 0 ? 0 : value.element_count() / rows;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = value.rows()[static_cast<size_t>(i)];
      if (row < 0) continue;
      const T* from = value.data<T>() + i * width;
      T* to = sum->data<T>() + row * width;
      int64_t& place = sum->rows()[static_cast<size_t>(row)];
      for (int64_t k = 0; k < width; ++k) to[k] = place < 0 ? from[k] : to[k] + from[k];
      place = row;
    }
  }

  void Finish(const KernelContext& context, int64_t count) {
    for (const auto& [index, place] : offsets_.batches) {
      Batch& batch = *steps_[index].batch;
      // If no iteration had any rows, the sum is of none.
      const bool is_due = batch.rows->rows() > 0 || (batch.added == 0 && count > 0);
      if (batch.sums.empty() || !is_due) continue;
      const double start = is_timed_ ? SteadySeconds() : 0;
      AddSums(context, &batch);
      if (is_timed_) steps_[index].seconds += SteadySeconds() - start;
    }
    for (const LoopFetch& fetch : loop_->fetches) {
      if (fetch.output < 0) continue;
      Tensor& output = context.output(fetch.output);
      if (fetch.kind == LoopFetch::Kind::kCarried) {
        const LoopFeed& feed = loop_->feeds[static_cast<size_t>(fetch.feed)];
        CopyData(*tensors_.Of(feed.value), output.raw_data());
      } else if (count == 0 && fetch.kind == LoopFetch::Kind::kLast && fetch.input >= 0) {
        CopyData(context.input(fetch.input), output.raw_data());
      } else if (count == 0) {
        Zero(&output);
      }
    }
    if (loop_->count_output >= 0) *context.output(loop_->count_output).data<int64_t>() = count;
  }

  std::shared_ptr<const Loop> loop_;
  const Plan& body_;
  const std::unique_ptr<LoopRows> rows_;  // if rows vary
  const KernelEnvironment environment_;
  Scope* scope_;
  DeviceLink& link_;
  const BodyOffsets offsets_;
  BodyTensors tensors_;
  std::vector<std::vector<ValueId>> views_;  // of invariant feeds, by feed
  std::vector<PreparedKernel> prepared_;     // until the first Bind
  std::vector<Step> steps_;                  // by instruction of the body
  bool is_timed_ = false;
  std::vector<Stashed> stashed_;  // all values of each storage
  std::set<const LoopFetch*> summed_after_;
  std::map<const LoopFetch*, DeviceSum> device_sums_;
  std::optional<ArenaPoison> poison_;
  std::optional<PlanLoDs> lods_;  // if a feed is ragged
  std::vector<const LoD*> feed_lods_;
  RunLoDs next_lods_;
  RunState state_;
  std::unique_ptr<Buffer> host_memory_;  // of a body on a device
  BodyMemory memory_;
  const char* guards_at_ = nullptr;  // the memory that has them
};

// Returns nullptr if no rows vary.
std::unique_ptr<LoopRows> RowsOf(const KernelSelection& selection, const Instruction& instruction,
                                 const Loop& loop) {
  if (loop.joint_body == nullptr) return nullptr;
  std::vector<bool> varies;
  for (const int input : loop.joint_body_inputs) {
    const ValueId value = input < 0 ? ValueId() : instruction.inputs[static_cast<size_t>(input)];
    varies.push_back(value && selection.varies && selection.varies(value));
  }
  const bool any_varies = std::ranges::count(varies, true) > 0;
  if (!any_varies && std::ranges::none_of(loop.joint_body->instructions, &Instruction::sets_rows))
    return nullptr;
  return std::make_unique<LoopRows>(selection.environment.registry, loop, varies);
}

}  // namespace

std::unique_ptr<Kernel> PrepareLoop(const KernelSelection& selection, Instruction* instruction) {
  auto loop = std::make_shared<Loop>(*instruction->loop);
  std::unique_ptr<LoopRows> rows = RowsOf(selection, *instruction, *loop);
  const bool is_batched = std::ranges::any_of(
      loop->body.instructions,
      [](const Instruction& inner) { return inner.batching != Batching::kNone; });
  SKIFF_ENFORCE(loop->body.place.is_cpu() || !is_batched, kUnimplemented, "a loop on ",
                loop->body.place, ", in which the host would gather rows: expected it on the CPU");
  KernelSelection of_body = selection;
  of_body.is_body = true;
  of_body.rows_vary = selection.rows_vary || rows != nullptr;
  of_body.varies = [&](ValueId value) { return rows != nullptr && rows->Varies(value); };
  std::vector<PreparedKernel> kernels = PrepareKernels(of_body, &loop->body);
  for (size_t i = 0; i < kernels.size(); ++i) {
    Batching& batching = loop->body.instructions[i].batching;
    if (batching == Batching::kNone) continue;
    std::optional<PreparedKernel> kernel = PrepareBatch(of_body, i, loop.get());
    if (kernel) {
      kernels[i] = std::move(*kernel);
    } else {
      batching = Batching::kNone;
    }
  }
  // Forms that are kept from run to run would take memory in each plan for a batch of another size.
  for (PreparedKernel& kernel : kernels) {
    for (DerivedRequest& request : kernel.derived) {
      request.is_of_loop = request.workspace < 0;
    }
  }
  PlanStorage(&loop->body);
  instruction->workspace_bytes = {BodyOffsets(*loop, kernels).end};
  instruction->loop = loop;
  return std::make_unique<LoopKernel>(std::move(loop), std::move(kernels), std::move(rows),
                                      selection);
}

}  // namespace skiff
