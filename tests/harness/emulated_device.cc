#include "tests/harness/emulated_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/op/host_slots.h"
#include "memory/places.h"
#include "operators/common/host_state_kernel.h"
#include "operators/common/memory_mover.h"

namespace skiff::harness {
namespace {

// One stretch of addresses, of which nothing is given twice: what uses freed memory finds zeros.
class HiddenMemory {
 public:
  HiddenMemory()
      : base_(static_cast<char*>(
            mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    SKIFF_ENFORCE(base_ != MAP_FAILED, kResourceExhausted, "no addresses for an emulated device");
  }

  void* Take(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const int64_t pages = (bytes + kPage - 1) / kPage * kPage;
    if (pages > kBytes - used_) return nullptr;
    char* block = base_ + used_;
    used_ += pages;
    return block;
  }
  void GiveBack(void* block, int64_t bytes) {
    madvise(block, static_cast<size_t>(bytes), MADV_DONTNEED);
  }
  // Throws an Error (kFailedPrecondition) if the address isn't in this memory.
  void Check(const void* address) const {
    const auto* at = static_cast<const char*>(address);
    SKIFF_ENFORCE(at >= base_ && at < base_ + kBytes, kFailedPrecondition,
                  "the device would use memory of the host as its own");
  }
  // Runs `work` while the memory can be used.
  template <typename Work>
  void Open(const Work& work) {
    const std::lock_guard lock(open_);
    RunWith(PROT_READ | PROT_WRITE, PROT_NONE, work);
  }
  // Runs `work`, called by what Open runs, while the memory can't be used.
  template <typename Work>
  void Close(const Work& work) {
    RunWith(PROT_NONE, PROT_READ | PROT_WRITE, work);
  }

 private:
  static constexpr int64_t kPage = 4096;
  static constexpr int64_t kBytes = int64_t{1} << 38;

  template <typename Work>
  void RunWith(int protection, int afterwards, const Work& work) {
    Protect(protection);
    try {
      work();
    } catch (...) {
      Protect(afterwards);
      throw;
    }
    Protect(afterwards);
  }
  // Ends the process if that fails: whoever touches the memory next would tell nothing.
  void Protect(int protection) {
    if (mprotect(base_, static_cast<size_t>(used_), protection) != 0) std::abort();
  }

  char* const base_;
  std::mutex mutex_;
  std::mutex open_;
  int64_t used_ = 0;
};

class HiddenAllocator final : public Allocator {
 public:
  explicit HiddenAllocator(HiddenMemory* memory) : memory_(*memory) {}
  Place place() const override { return EmulatedPlace(); }
  void* Allocate(int64_t bytes, const AllocationOptions&) override {
    SKIFF_ENFORCE(bytes >= 0, kInvalidArgument, bytes, " bytes");
    if (bytes == 0) return nullptr;
    void* block = memory_.Take(bytes);
    SKIFF_ENFORCE(block != nullptr, kResourceExhausted, "the emulated device has no ", bytes,
                  " bytes");
    return block;
  }
  void Free(void* block, int64_t bytes) noexcept override {
    if (block != nullptr) memory_.GiveBack(block, bytes);
  }
  void ReleaseCached() override {}
  void SetLimit(int64_t) override {
    Throw(ErrorCode::kUnimplemented, "a limit of an emulated device");
  }
  AllocatorStatistics statistics() const override { return {}; }
  void ResetPeaks() override {}

 private:
  HiddenMemory& memory_;
};

using Work = std::function<void()>;

// When a stream runs its work on its own.
class Eagerness {
 public:
  // As late as possible: only when somebody waits.
  Eagerness() = default;
  explicit Eagerness(uint64_t seed) : draws_(seed), chance_(draws_() % 3) {}

  // Draws whether the stream runs now. Always, in half of the cases, or never.
  bool IsNow() { return chance_ == 2 || (chance_ == 1 && draws_() % 2 == 0); }

 private:
  std::mt19937_64 draws_;
  uint64_t chance_ = 0;
};

std::optional<std::mt19937_64>& SeedsOfStreams() {
  static std::optional<std::mt19937_64> seeds;
  return seeds;
}

Eagerness NextEagerness() {
  return SeedsOfStreams() ? Eagerness((*SeedsOfStreams())()) : Eagerness();
}

class LateGraph final : public DeviceGraph {
 public:
  explicit LateGraph(std::vector<Work> work) : work_(std::move(work)) {}
  const std::vector<Work>& work() const { return work_; }

 private:
  const std::vector<Work> work_;
};

// The work of a stream, in order. Events may outlive the stream.
class LateQueue {
 public:
  explicit LateQueue(HiddenMemory* memory) : memory_(*memory) {}

  int64_t appended() const { return appended_; }
  int64_t ran() const { return ran_; }
  void Append(Work work) {
    work_.push_back(std::move(work));
    ++appended_;
  }
  // Runs what is left of the first `count` pieces of work. Throws what one of them, the first that
  // did, has thrown since the last call.
  void RunUpTo(int64_t count) {
    if (ran_ < count) memory_.Open([&] { RunOpenUpTo(count); });
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  // Runs all work, and leaves what is thrown to RunUpTo.
  void RunQuietly() {
    memory_.Open([&] { RunOpenUpTo(appended_); });
  }
  // The same for a caller that is itself work of a stream: what is thrown is left to RunUpTo.
  void RunOpenUpTo(int64_t count) {
    while (ran_ < count) {
      const Work work = std::move(work_.front());
      work_.pop_front();
      ++ran_;
      try {
        work();
      } catch (...) {
        if (failure_ == nullptr) failure_ = std::current_exception();
      }
    }
  }

 private:
  HiddenMemory& memory_;
  std::deque<Work> work_;
  int64_t appended_ = 0;
  int64_t ran_ = 0;
  std::exception_ptr failure_;
};

class LateStream final : public DeviceStream {
 public:
  LateStream(HiddenMemory* memory, std::set<LateStream*>* all)
      : memory_(*memory), queue_(std::make_shared<LateQueue>(memory)), all_(*all) {
    all_.insert(this);
  }
  ~LateStream() override {
    try {
      Wait();
    } catch (const Error&) {
      // As on a device, nobody hears of it.
    }
    all_.erase(this);
  }

  void* handle() const override { return const_cast<LateStream*>(this); }
  void Copy(void* to, Place to_place, const void* from, Place from_place, size_t bytes) override {
    if (!to_place.is_cpu()) memory_.Check(to);
    if (!from_place.is_cpu()) memory_.Check(from);
    Append([=] { std::memmove(to, from, bytes); });
  }
  void Fill(void* to, unsigned char byte, size_t bytes) override {
    memory_.Check(to);
    Append([=] { std::memset(to, byte, bytes); });
  }
  void Record(DeviceEvent* event) override;
  void WaitFor(const DeviceEvent& event) override;
  void Call(void (*function)(void*), void* argument) override {
    // A graph may outlive the stream.
    Append([=, &memory = memory_] { memory.Close([=] { function(argument); }); });
  }
  void Launch(const DeviceGraph& graph) override {
    for (const Work& work : static_cast<const LateGraph&>(graph).work()) Append(work);
  }
  void BeginCapture() override {
    SKIFF_ENFORCE(!captured_, kFailedPrecondition, "the stream is captured already");
    captured_.emplace();
  }
  std::unique_ptr<DeviceGraph> EndCapture() override {
    SKIFF_ENFORCE(captured_, kFailedPrecondition, "no capture has begun");
    auto graph = std::make_unique<LateGraph>(std::move(*captured_));
    captured_.reset();
    return graph;
  }
  void Wait() override {
    SKIFF_ENFORCE(!captured_, kFailedPrecondition, "a wait while the stream is captured");
    queue_->RunUpTo(queue_->appended());
  }

  void Append(Work work) {
    if (captured_) return captured_->push_back(std::move(work));
    queue_->Append(std::move(work));
    if (eagerness_.IsNow()) queue_->RunQuietly();
  }
  const HiddenMemory& memory() const { return memory_; }

 private:
  HiddenMemory& memory_;
  const std::shared_ptr<LateQueue> queue_;
  std::set<LateStream*>& all_;
  Eagerness eagerness_ = NextEagerness();
  std::optional<std::vector<Work>> captured_;
};

class LateEvent final : public DeviceEvent {
 public:
  void Wait() override {
    if (queue_ != nullptr) queue_->RunUpTo(after_);
  }
  // Whoever asks again and again waits: each time, one piece of work runs.
  bool HasPassed() override {
    if (queue_ == nullptr) return true;
    const int64_t ran = queue_->ran();
    queue_->RunUpTo(std::min(ran + 1, after_));
    return ran >= after_;
  }
  double SecondsSince(const DeviceEvent& earlier) const override {
    return *seconds_ - *static_cast<const LateEvent&>(earlier).seconds_;
  }
  void Set(const std::shared_ptr<LateQueue>& queue) {
    queue_ = queue;
    queue->Append([seconds = seconds_] { *seconds = SteadySeconds(); });
    after_ = queue->appended();
  }
  // Returns work that has the event passed when it has run.
  Work Passing() const {
    if (queue_ == nullptr) return [] {};
    return [queue = queue_, after = after_] { queue->RunOpenUpTo(after); };
  }

 private:
  std::shared_ptr<LateQueue> queue_;  // nullptr: never recorded
  int64_t after_ = 0;
  // When it has passed; shared with the queue, which may outlive the event.
  const std::shared_ptr<double> seconds_ = std::make_shared<double>(0);
};

void LateStream::Record(DeviceEvent* event) {
  SKIFF_ENFORCE(!captured_, kFailedPrecondition, "an event while the stream is captured");
  static_cast<LateEvent*>(event)->Set(queue_);
}

void LateStream::WaitFor(const DeviceEvent& event) {
  SKIFF_ENFORCE(!captured_, kFailedPrecondition, "an event while the stream is captured");
  Append(static_cast<const LateEvent&>(event).Passing());
}

class EmulatedDevice final : public Device {
 public:
  Allocator& allocator() override { return allocator_; }
  Allocator& pinned_allocator() override { return AllocatorOf(Place::Cpu()); }
  std::unique_ptr<DeviceStream> MakeStream() override {
    return std::make_unique<LateStream>(&memory_, &streams_);
  }
  std::unique_ptr<DeviceEvent> MakeEvent() override { return std::make_unique<LateEvent>(); }
  void CopyNow(void* to, Place, const void* from, Place, size_t bytes) override {
    for (LateStream* stream : streams_) stream->Wait();
    memory_.Open([&] { std::memmove(to, from, bytes); });
  }

 private:
  HiddenMemory memory_;
  HiddenAllocator allocator_{&memory_};
  std::set<LateStream*> streams_;
};

LateStream& StreamOf(const KernelContext& run) {
  return *static_cast<LateStream*>(run.device().stream);
}

// The arguments of a run as they are now, for a kernel of the CPU that runs later.
class Arguments {
 public:
  explicit Arguments(const KernelContext& run) : seed_(*run.seed), step_(*run.step), context_(run) {
    // Their addresses are in context_, so none may move.
    tensors_.reserve(run.inputs.size() + run.outputs.size());
    for (Tensor*& input : context_.inputs) {
      input = OnCpu(input);
      // The LoD as it is now: the host may change it before the device gets there.
      if (input != nullptr) input->ShareLoD(std::make_shared<LoD>(input->lod()));
    }
    for (Tensor*& output : context_.outputs) output = OnCpu(output);
    context_.device_context = &device_;
    context_.seed = &seed_;
    context_.step = &step_;
    context_.device_step = nullptr;
    device_step_ = run.device_step;
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // While the device runs.
  const KernelContext& context() {
    if (device_step_ != nullptr) step_ = *device_step_;
    return context_;
  }

 private:
  // Returns a tensor on the same memory that says that it is on the CPU.
  Tensor* OnCpu(const Tensor* tensor) {
    if (tensor == nullptr) return nullptr;
    Tensor& copy = tensors_.emplace_back();
    if (tensor->has_data()) {
      void* data = const_cast<void*>(tensor->raw_data());
      copy = Tensor(tensor->shape(), tensor->dtype(),
                    std::make_shared<Buffer>(data, tensor->byte_count(), Place::Cpu()), 0,
                    tensor->layout());
    }
    copy.ShareLoD(tensor->shared_lod());
    return &copy;
  }

  DeviceContext device_;
  uint64_t seed_;
  uint64_t step_;
  const uint64_t* device_step_ = nullptr;
  std::vector<Tensor> tensors_;
  KernelContext context_;
};

// Puts the runs of a kernel of the CPU into the stream.
class LateKernel final : public Kernel {
 public:
  // `reads_data`: of each input; else the kernel reads its shape only.
  LateKernel(std::shared_ptr<Kernel> kernel, std::vector<bool> reads_data)
      : kernel_(std::move(kernel)), reads_data_(std::move(reads_data)) {}

  void Run(const KernelContext& run) override {
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      if (reads_data_[i]) Check(run, run.inputs[i]);
    }
    for (const Tensor* output : run.outputs) Check(run, output);
    const auto arguments = std::make_shared<Arguments>(run);
    StreamOf(run).Append([this, kernel = kernel_, arguments, fault = run.fault] {
      try {
        const KernelContext& context = arguments->context();
        kernel->Bind(context);
        kernel->Run(context);
      } catch (const Error&) {
        if (fault == nullptr) throw;
        refusal_ = std::current_exception();
        *fault = DataFaultWord(0, 0);
      }
    });
  }
  [[noreturn]] void ThrowFault(const DataFault&) const override {
    std::rethrow_exception(refusal_);
  }
  bool AcceptsFewerRows() const override { return kernel_->AcceptsFewerRows(); }

 private:
  // Throws Error if a tensor of the device lies elsewhere.
  static void Check(const KernelContext& run, const Tensor* tensor) {
    if (tensor == nullptr || tensor->place().is_cpu() || tensor->byte_count() == 0) return;
    StreamOf(run).memory().Check(tensor->raw_data());
  }

  std::shared_ptr<Kernel> kernel_;
  const std::vector<bool> reads_data_;
  std::exception_ptr refusal_;
};

// Moves memory of the device as late as its streams run.
class LateMover final : public MemoryMover {
 public:
  void CopyBytes(const KernelContext& run, const void* source, void* target,
                 int64_t bytes) const override {
    const MemoryRun all{.from = source, .to = target, .bytes = bytes};
    if (source != target) CopyRuns(run, {&all, 1});
  }
  void ZeroBytes(const KernelContext& run, void* target, int64_t bytes) const override {
    const MemoryRun all{.from = nullptr, .to = target, .bytes = bytes};
    CopyRuns(run, {&all, 1});
  }
  void CopyRuns(const KernelContext& run, std::span<const MemoryRun> runs) const override {
    StreamOf(run).Append(
        [list = ListOf(run, runs)] { MemoryMoverOf(OnHost()).CopyRuns(OnHost(), list); });
  }
  void AddRuns(const KernelContext& run, DType dtype,
               std::span<const MemoryRun> runs) const override {
    StreamOf(run).Append([dtype, list = ListOf(run, runs)] {
      MemoryMoverOf(OnHost()).AddRuns(OnHost(), dtype, list);
    });
  }

 private:
  static std::vector<MemoryRun> ListOf(const KernelContext& run, std::span<const MemoryRun> runs) {
    for (const MemoryRun& one : runs) {
      if (one.bytes > 0) StreamOf(run).memory().Check(one.to);
      if (one.bytes > 0 && one.from != nullptr) StreamOf(run).memory().Check(one.from);
    }
    return {runs.begin(), runs.end()};
  }
  static const KernelContext& OnHost() {
    static const DeviceContext device;
    static const KernelContext context = [] {
      KernelContext made;
      made.device_context = &device;
      return made;
    }();
    return context;
  }
};

// Returns whether the host reads some of the arguments when it issues the work of the op, which
// then only moves memory.
bool IsIssuedByHost(const OpDef& def) {
  const auto is_of_host = [](const SlotDef& slot) { return slot.on_host || slot.array; };
  return std::ranges::any_of(def.inputs, is_of_host) ||
         std::ranges::any_of(def.outputs, is_of_host);
}

std::unique_ptr<Kernel> PrepareLate(const KernelFactory& prepare, PrepareContext& context) {
  PrepareContext on_cpu(context.op(), context.def(),
                        {context.inputs().begin(), context.inputs().end()},
                        {context.outputs().begin(), context.outputs().end()}, Place::Cpu());
  on_cpu.set_rows_vary(context.rows_vary());
  on_cpu.set_math(context.math());
  std::shared_ptr<Kernel> kernel = prepare(on_cpu);
  for (const int64_t bytes : on_cpu.workspace_bytes()) context.RequestWorkspace(bytes);
  for (const DerivedForm& form : on_cpu.derived_forms()) {
    context.RequestDerivedForm({.inputs = form.inputs,
                                .bytes = form.bytes,
                                .refresh = [form](const KernelContext& run, void* derived) {
                                  const auto arguments = std::make_shared<Arguments>(run);
                                  StreamOf(run).Append([form, arguments, derived] {
                                    form.refresh(arguments->context(), derived);
                                  });
                                }});
  }
  std::vector<bool> reads_data;
  for (const SlotDef& slot : context.def().inputs) {
    reads_data.insert(reads_data.end(), context.op().Input(slot.name).size(), !slot.shape_only);
  }
  return std::make_unique<LateKernel>(std::move(kernel), std::move(reads_data));
}

}  // namespace

Place EmulatedPlace() {
  static const Place place = [] {
    const Place made = Place::Cuda(1000);
    AddDevice(made, std::make_unique<EmulatedDevice>());
    static const LateMover mover;
    SetMemoryMover(made, &mover);
    return made;
  }();
  return place;
}

void DrawWhenStreamsRun(std::optional<uint64_t> seed) {
  SeedsOfStreams() = seed ? std::optional<std::mt19937_64>(*seed) : std::nullopt;
}

std::unique_ptr<OpRegistry> RegistryWithEmulation(
    const OpRegistry& registry, const std::function<bool(const OpDef&)>& leave_out) {
  EmulatedPlace();
  auto made = std::make_unique<OpRegistry>();
  for (const std::string& type : registry.Types()) {
    const OpDef& def = registry.Get(type);
    made->Add(def);
    for (const KernelDef& kernel : registry.Kernels(type)) {
      if (kernel.place != PlaceKind::kCpu) continue;
      made->AddKernel(type, kernel);
      if (leave_out && leave_out(def)) continue;
      KernelDef late = kernel;
      late.place = PlaceKind::kCuda;
      if (IsIssuedByHost(def)) {
        // A collective kernel of the CPU issues no work to the device.
        if (def.collective) continue;
        made->AddKernel(type, std::move(late));
        continue;
      }
      late.prepare = [prepare = kernel.prepare, made = made.get()](PrepareContext& context) {
        const bool keeps_states_on_host =
            context.def().FindAttr(kOnHostAttr) != nullptr && context.Attr<bool>(kOnHostAttr);
        return keeps_states_on_host ? PrepareHostStateKernel(context, *made)
                                    : PrepareLate(prepare, context);
      };
      made->AddKernel(type, std::move(late));
    }
  }
  return made;
}

}  // namespace skiff::harness
