// A loop runs its body by a PlanRunner of its own. Carried values are copied to their feeds at the
// end of an iteration, since a fetch may still be read while another feed takes its value.
#include "framework/executor/run/loop_kernel.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/device/device_link.h"
#include "framework/executor/rows/loop_rows.h"
#include "framework/executor/rows/plan_lods.h"
#include "framework/executor/run/body_memory.h"
#include "framework/executor/run/loop_batches.h"
#include "framework/executor/run/loop_stacks.h"
#include "framework/executor/run/loop_sums.h"
#include "framework/executor/run/plan_runner.h"
#include "framework/executor/run/timed_body.h"
#include "framework/executor/storage/guarded_memory.h"
#include "framework/executor/storage/storage.h"
#include "framework/plan/loop.h"
#include "framework/tensor/tensor_array.h"
#include "memory/places.h"

namespace skiff {
namespace {

class LoopKernel final : public Kernel, public TimedBody {
 public:
  LoopKernel(std::shared_ptr<const Loop> loop, std::vector<PreparedKernel> kernels,
             std::unique_ptr<LoopRows> rows, const KernelEnvironment& environment)
      : loop_(std::move(loop)),
        body_(loop_->body),
        rows_(std::move(rows)),
        environment_(environment),
        link_(environment_.LinkTo(body_.place)),
        offsets_(*loop_, kernels),
        tensors_(*loop_),
        stacks_(*loop_, offsets_, rows_.get(), &tensors_, &link_),
        sums_(*loop_, environment_.registry, &link_),
        prepared_(std::move(kernels)) {
    for (const LoopFeed& feed : loop_->feeds) {
      std::vector<ValueId>& views = views_.emplace_back();
      if (feed.kind != LoopFeed::Kind::kInvariant) continue;
      for (const ValueId id : body_.ids()) {
        if (body_[id].alias_of == feed.value) views.push_back(id);
      }
    }
  }

  void Bind(const KernelContext& context) override {
    if (offsets_.host_end > 0 && host_memory_ == nullptr) {
      host_memory_ = std::make_unique<Buffer>(AllocatorOf(Place::Cpu()), offsets_.host_end,
                                              AllocationOptions{.tag = MemoryTag::kArena});
    }
    const BodyMemory memory = {
        .on_place = static_cast<char*>(context.workspace(0)),
        .on_host = host_memory_ == nullptr ? nullptr : static_cast<char*>(host_memory_->data())};
    if (offsets_.is_guarded) PlaceGuards(memory.on_place);
    tensors_.Place(context, memory);
    PlaceFeeds(context);
    runner_ ? runner_->FollowArena() : MakeRunner(context);
    batches_->Place();
    StartForms();
    runner_->Bind();
  }

  void Run(const KernelContext& context) override {
    state_.step = *context.step;
    // What the device has to do before isn't the body's.
    if (runner_->is_timed()) link_.Wait();
    tensors_.ReleaseOutgrown(&link_);
    PlaceFeeds(context);
    runner_->BindFeedReaders();
    StartForms();
    rows_ ? rows_->NoteFeeds(context) : SetLoDs();
    const FeedRelease release{tensors_};
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

  void StartTiming() override { runner_->StartTiming(PlanRunner::Clock::kWaits); }
  std::vector<InstructionTime> StopTiming() override { return runner_->StopTiming(); }

 private:
  struct FeedRelease {
    ~FeedRelease() { tensors.ReleaseInvariants(); }
    const BodyTensors& tensors;
  };

  // ---- binding

  void PlaceGuards(char* memory) {
    if (std::exchange(guards_at_, memory) == memory) return;
    std::vector<ByteRange> used = offsets_.used;
    std::ranges::copy(UsedRanges(body_), std::back_inserter(used));
    GuardPart(memory, offsets_.end, used);
  }

  void MakeRunner(const KernelContext& context) {
    state_.device = context.device();
    state_.device_step = context.device_step;
    batches_.emplace(*loop_, offsets_, stacks_, &sums_, &tensors_);
    PlanRunner::Inputs inputs{.plan = body_,
                              .environment = environment_,
                              .values = &tensors_,
                              .state = &state_,
                              .values_of = [this](size_t i) { return batches_->ValuesOf(i); }};
    if (rows_) {
      inputs.varies = [this](const Instruction& instruction) { return rows_->Varies(instruction); };
      inputs.current_plan = [this](size_t i) -> const Plan& { return rows_->CurrentBody(i); };
    }
    runner_.emplace(inputs, std::move(prepared_));
    FindMoving();
    if (rows_) return rows_->Bind(&tensors_);
    const bool is_ragged = std::ranges::any_of(loop_->feeds, [&](const LoopFeed& feed) {
      return CountedLoD(body_[feed.value].meta) != nullptr;
    });
    if (!is_ragged) return;
    lods_.emplace(body_);
    lods_->Bind(&tensors_);
  }

  void FindMoving() {
    const auto moves = [this](ValueId value) { return stacks_.Moves(value); };
    for (size_t i = 0; i < body_.instructions.size(); ++i) {
      const Instruction& instruction = body_.instructions[i];
      moves_.push_back(std::ranges::any_of(instruction.inputs, moves) ||
                       std::ranges::any_of(instruction.outputs, moves));
      if (moves_[i] && !runner_->Varies(i) && !batches_->Has(i)) moving_.push_back(i);
    }
  }

  // Has the forms of this run made when they are needed first.
  void StartForms() {
    for (size_t i = 0; i < runner_->size(); ++i) {
      runner_->kernel(i).StartLoop(
          static_cast<char*>(tensors_.InArena(body_.place, offsets_.forms[i])));
    }
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

  // Points the feeds at the current inputs.
  void PlaceFeeds(const KernelContext& context) {
    for (size_t i = 0; i < loop_->feeds.size(); ++i) {
      const LoopFeed& feed = loop_->feeds[i];
      Tensor& tensor = *tensors_.Of(feed.value);
      if (feed.kind == LoopFeed::Kind::kInvariant) {
        tensor = context.input(feed.input);
        for (const ValueId view : views_[i]) tensors_.Of(view)->Rebind(tensor.raw_data());
      } else if (offsets_.carried[i] >= 0) {
        tensor.Rebind(tensors_.InArena(body_[feed.value].place, offsets_.carried[i]));
      }
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

  void Start(const KernelContext& context) {
    batches_->Start(environment_.poisons && body_.place.is_cpu());
    for (const LoopFeed& feed : loop_->feeds) {
      if (feed.kind != LoopFeed::Kind::kCarried) continue;
      Tensor& tensor = *tensors_.Of(feed.value);
      if (feed.stack >= 0) tensor.Rebind(stacks_.CarriedSlot(context, feed, 0));
      if (feed.input >= 0) {
        CopyOnPlace(context.input(feed.input), tensor.raw_data(), &link_);
      } else {
        // All rows that are planned: the tensor still has those of the run before.
        ZeroOnPlace(&tensor, StorageBytes(body_[feed.value]), &link_);
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
    stacks_.MoveParts(context, t);
    stacks_.Place(context, slot);
    for (const size_t i : moving_) runner_->kernel(i).Bind();
    runner_->Poison();
    RunBody(context, count, done, slot);
    EndIteration(context, t, done);
    if (loop_->history >= 0 && !loop_->is_gradient) {
      rows_->Save(slot, context.output(loop_->history).array());
    }
  }

  void RunBody(const KernelContext& context, int64_t count, int64_t done, int64_t slot) {
    try {
      for (size_t i = 0; i < runner_->size(); ++i) {
        runner_->Run(i, [&] {
          if (batches_->Has(i)) {
            return batches_->Run(context, i, count, done, &runner_->kernel(i));
          }
          rows_ ? RunWithRows(context, slot, i) : runner_->kernel(i).Run();
        });
      }
    } catch (const Error& error) {
      throw error.WithContext(StrCat("iteration ", slot));
    }
  }

  void StartRows(const KernelContext& context, int64_t slot) {
    stacks_.StartIteration();
    if (!rows_) return;
    rows_->StartIteration();
    if (loop_->history >= 0 && loop_->is_gradient) {
      rows_->Restore(slot, *context.input(loop_->history).array());
    }
    rows_->Apply();
  }

  void RunWithRows(const KernelContext& context, int64_t slot, size_t i) {
    if (runner_->Varies(i)) {
      rows_->CheckRules(i);
      runner_->ChooseKernel(i);
      if (moves_[i] || runner_->ReadsFeed(i)) runner_->kernel(i).Bind();
    }
    runner_->kernel(i).Run();
    const Instruction& instruction = body_.instructions[i];
    if (!instruction.sets_rows || loop_->is_gradient) return;
    rows_->Note(instruction);
    stacks_.KeepUnsized(context, slot, instruction);
    // Several ops in a row that set rows tell them together.
    if (i + 1 < runner_->size() && body_.instructions[i + 1].sets_rows) return;
    rows_->Apply();
    stacks_.Place(context, slot);
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

  void EndIteration(const KernelContext& context, int64_t t, int64_t done) {
    for (const LoopFetch& fetch : loop_->fetches) {
      Tensor& value = *tensors_.Of(fetch.value);
      if (rows_) CheckRows(context, fetch, value);
      switch (fetch.kind) {
        case LoopFetch::Kind::kCarried: {
          const LoopFeed& feed = loop_->feeds[static_cast<size_t>(fetch.feed)];
          Tensor& next = *tensors_.Of(feed.value);
          if (feed.stack >= 0) next.Rebind(stacks_.CarriedSlot(context, feed, done + 1));
          CopyOnPlace(value, next.raw_data(), &link_);
          break;
        }
        case LoopFetch::Kind::kPart:
          if (fetch.output >= 0) {
            char* stack = static_cast<char*>(context.output(fetch.output).raw_data());
            CopyOnPlace(value, stack + t * value.byte_count(), &link_);
          }
          break;
        case LoopFetch::Kind::kLast:
          if (fetch.output >= 0) {
            CopyOnPlace(value, context.output(fetch.output).raw_data(), &link_);
          }
          break;
        case LoopFetch::Kind::kSum:
          if (fetch.output >= 0 && !batches_->Sums(fetch)) {
            sums_.Add(fetch, done, &value, &context.output(fetch.output));
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

  void Finish(const KernelContext& context, int64_t count) {
    batches_->Finish(context, count, &*runner_);
    for (const LoopFetch& fetch : loop_->fetches) {
      if (fetch.output < 0) continue;
      Tensor& output = context.output(fetch.output);
      if (fetch.kind == LoopFetch::Kind::kCarried) {
        const LoopFeed& feed = loop_->feeds[static_cast<size_t>(fetch.feed)];
        CopyOnPlace(*tensors_.Of(feed.value), output.raw_data(), &link_);
      } else if (count == 0 && fetch.kind == LoopFetch::Kind::kLast && fetch.input >= 0) {
        CopyOnPlace(context.input(fetch.input), output.raw_data(), &link_);
      } else if (count == 0) {
        ZeroOnPlace(&output, output.byte_count(), &link_);
      }
    }
    if (loop_->count_output >= 0) *context.output(loop_->count_output).data<int64_t>() = count;
  }

  std::shared_ptr<const Loop> loop_;
  const Plan& body_;
  const std::unique_ptr<LoopRows> rows_;  // if rows vary
  const KernelEnvironment environment_;
  DeviceLink& link_;
  const BodyOffsets offsets_;
  BodyTensors tensors_;
  LoopStacks stacks_;
  LoopSums sums_;
  std::vector<std::vector<ValueId>> views_;  // of invariant feeds, by feed
  RunState state_;
  std::vector<PreparedKernel> prepared_;  // until the first Bind
  std::optional<LoopBatches> batches_;    // from then on
  std::optional<PlanRunner> runner_;
  std::vector<bool> moves_;       // by instruction: an argument is elsewhere in each iteration
  std::vector<size_t> moving_;    // these instructions, except where rows vary
  std::optional<PlanLoDs> lods_;  // if a feed is ragged
  std::vector<const LoD*> feed_lods_;
  RunLoDs next_lods_;
  std::unique_ptr<Buffer> host_memory_;  // of a body on a device
  const char* guards_at_ = nullptr;      // the memory that has them
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
                                      selection.environment);
}

}  // namespace skiff
