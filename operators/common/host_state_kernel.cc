// Ops that keep their states in host memory. Each device has one more stream, the host lane, for
// all of them, in all plans. In each run:
//
//   the program's stream   … writes the inputs ─┐            ┌─ goes on, may write them again …
//   the host lane                               └─ copies ───┴─ CPU kernel ─ …
//
// The inputs are copied into pinned memory; contiguous inputs, such as flat parameters, in one
// copy. The program's stream waits for the copies even if this plan doesn't write the inputs again:
// another plan with the same parameters, for a batch of another shape, may write them, and knows
// nothing of this kernel.
//
// The CPU kernel is a call in the lane, not work for a thread of ours that such a call wakes. So
// runs happen in the order of the lane, and no copy overwrites data that is still being read. If
// the CPU takes longer than a step, the copies of the next step wait for it, and the device with
// them, instead of work piling up. A device of CUDA makes the call on a thread that has no other
// calls to make; it may use OpenMP's threads as any thread does.
#include "operators/common/host_state_kernel.h"

#include <omp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/op/background_kernel.h"
#include "framework/op/host_slots.h"
#include "memory/allocator.h"
#include "memory/device.h"
#include "memory/places.h"
#include "operators/common/staged_copies.h"

namespace skiff {
namespace {

// The host lane of a device: its stream, and the first failure on it. Thread-safe.
class HostLane final : public PendingWrites {
 public:
  // Never destroyed, since scopes of static lifetime may use it at exit.
  static HostLane& Of(Place place) {
    static std::mutex mutex;
    static auto& lanes = *new std::map<int32_t, HostLane*>;
    const std::lock_guard lock(mutex);
    HostLane*& lane = lanes[place.index];
    if (lane == nullptr) lane = new HostLane(place);
    return *lane;
  }

  // Calls `append` with the stream, which no other thread uses meanwhile.
  template <class Append>
  void Use(const Append& append) {
    const std::lock_guard lock(stream_mutex_);
    append(*stream_);
  }

  void Wait() override {
    WaitForWork();
    ThrowFailure();
  }

  // Waits, and leaves failures of runs to the next Wait. The lane may be used meanwhile.
  void WaitForWork() {
    const std::unique_ptr<DeviceEvent> event = device_.MakeEvent();
    Use([&](DeviceStream& stream) { stream.Record(event.get()); });
    event->Wait();
  }

  // The same for destructors.
  void WaitQuietly() noexcept {
    try {
      WaitForWork();
    } catch (const Error&) {
      // A device that has failed says so in each call.
    }
  }

  // Throws each failure once.
  void ThrowFailure() {
    std::exception_ptr failure;
    {
      const std::lock_guard lock(failure_mutex_);
      failure = std::exchange(failure_, nullptr);
    }
    if (failure != nullptr) std::rethrow_exception(failure);
  }

  // In the lane: calls the function unless an earlier one has failed and that failure hasn't been
  // thrown yet.
  template <class Function>
  void Call(const Function& function) noexcept {
    if (HasFailure()) return;
    try {
      function();
    } catch (...) {
      const std::lock_guard lock(failure_mutex_);
      failure_ = std::current_exception();
    }
  }

 private:
  explicit HostLane(Place place) : device_(DeviceOf(place)), stream_(device_.MakeStream()) {}

  bool HasFailure() {
    const std::lock_guard lock(failure_mutex_);
    return failure_ != nullptr;
  }

  Device& device_;
  std::mutex stream_mutex_;
  const std::unique_ptr<DeviceStream> stream_;
  std::mutex failure_mutex_;  // never held while work runs
  std::exception_ptr failure_;
};

// Lets the thread that makes the call use as many threads as an op of the program would.
class ThreadCount {
 public:
  explicit ThreadCount(int count) { omp_set_num_threads(count); }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  const int before_ = omp_get_max_threads();
};

class HostStateKernel final : public BackgroundKernel {
 public:
  HostStateKernel(const PrepareContext& context, const OpRegistry& registry)
      : type_(context.op().type),
        device_(DeviceOf(context.place())),
        lane_(HostLane::Of(context.place())),
        inputs_written_(device_.MakeEvent()),
        inputs_copied_(device_.MakeEvent()) {
    AddInputs(context);
    PrepareContext on_host(context.op(), context.def(), MetasOf(context.inputs()),
                           MetasOf(context.outputs()), Place::Cpu());
    kernel_ = registry.SelectKernel(on_host).prepare(on_host);
    SKIFF_ENFORCE(on_host.derived_forms().empty(), kFailedPrecondition, type_,
                  ": its kernel requests a derived form, which isn't made in host memory");
    for (const int64_t bytes : on_host.workspace_bytes()) {
      workspaces_.push_back(std::make_unique<Buffer>(AllocatorOf(Place::Cpu()), bytes));
      run_.workspaces.push_back(workspaces_.back()->data());
    }
    run_.device_context = &host_;
  }

  // Waits, since the issued work points to this object.
  ~HostStateKernel() override { lane_.WaitQuietly(); }

  PendingWrites* pending() const override { return &lane_; }

  void Bind(const KernelContext& run) override {
    lane_.WaitForWork();
    for (const Tensor* output : run.outputs) CheckOnHost(*output);
    std::vector<StagedTensor> tensors;
    for (const size_t i : copied_inputs_) {
      const Tensor& input = *run.inputs[i];
      tensors.push_back({.from = static_cast<const char*>(input.raw_data()),
                         .bytes = input.byte_count(),
                         .buffer = input.buffer().get()});
    }
    plan_ = PlanStagedCopies(tensors, kLargestGap);
    if (staging_ == nullptr || staging_->bytes() < plan_.bytes) {
      staging_ = std::make_unique<Buffer>(device_.pinned_allocator(), plan_.bytes);
    }
    run_.inputs = run.inputs;
    run_.outputs = run.outputs;
    staged_.clear();
    staged_.reserve(copied_inputs_.size());
    for (size_t k = 0; k < copied_inputs_.size(); ++k) {
      const Tensor& input = *run.inputs[copied_inputs_[k]];
      staged_.push_back(
          Tensor::Borrow(Staged(plan_.offsets[k]), input.shape(), input.dtype(), Place::Cpu()));
      run_.inputs[copied_inputs_[k]] = &staged_.back();
    }
    for (const Tensor* input : run_.inputs) {
      if (input != nullptr) CheckOnHost(*input);
    }
    kernel_->Bind(run_);
  }

  void Run(const KernelContext& run) override {
    lane_.ThrowFailure();
    DeviceStream& program = *run.device().stream;
    threads_ = omp_get_max_threads();
    lane_.Use([&](DeviceStream& lane) {
      program.Record(inputs_written_.get());
      lane.WaitFor(*inputs_written_);
      for (const StagedCopies::Copy& copy : plan_.copies) {
        lane.Copy(Staged(copy.to), Place::Cpu(), copy.from, run.device().place,
                  static_cast<size_t>(copy.bytes));
      }
      lane.Record(inputs_copied_.get());
      program.WaitFor(*inputs_copied_);
      lane.Call(RunOnHost, this);
    });
  }

 private:
  // Gaps between flat parameters are smaller.
  static constexpr int64_t kLargestGap = 256;

  static std::vector<TensorMeta> MetasOf(std::span<const TensorMeta> metas) {
    return {metas.begin(), metas.end()};
  }

  static void RunOnHost(void* self) {
    auto& kernel = *static_cast<HostStateKernel*>(self);
    kernel.lane_.Call([&] {
      const ThreadCount threads(kernel.threads_);
      try {
        kernel.kernel_->Run(kernel.run_);
      } catch (const Error& error) {
        // Reported elsewhere: in a later run, perhaps of another op.
        throw error.WithContext(StrCat(kernel.type_, " of an earlier run, in host memory"));
      }
    });
  }

  void AddInputs(const PrepareContext& context) {
    const auto place_of = [&](const SlotDef& slot) {
      return PlaceOfSlot(context.def(), context.op(), slot.name, context.place());
    };
    size_t index = 0;
    for (const SlotDef& slot : context.def().inputs) {
      const bool is_copied = !place_of(slot).is_cpu();
      for (size_t i = 0; i < context.op().Input(slot.name).size(); ++i, ++index) {
        if (is_copied && context.InputIndex(slot.name, i) >= 0) copied_inputs_.push_back(index);
      }
    }
    for (const SlotDef& slot : context.def().outputs) {
      SKIFF_ENFORCE(place_of(slot).is_cpu() || context.OutputCount(slot.name) == 0,
                    kFailedPrecondition, type_, ": ", slot.name, " is on ", context.place(),
                    ", expected all outputs in host memory");
    }
  }

  void CheckOnHost(const Tensor& tensor) const {
    SKIFF_ENFORCE(tensor.place().is_cpu(), kFailedPrecondition, type_, ": a state is on ",
                  tensor.place(), ", expected ", Place::Cpu(), ", as ", kOnHostAttr, " = true");
  }

  void* Staged(int64_t offset) const { return static_cast<char*>(staging_->data()) + offset; }

  const std::string type_;
  Device& device_;
  HostLane& lane_;
  const std::unique_ptr<DeviceEvent> inputs_written_;  // by the program
  const std::unique_ptr<DeviceEvent> inputs_copied_;   // by the lane
  std::vector<size_t> copied_inputs_;                  // inputs on the device
  StagedCopies plan_;
  std::unique_ptr<Buffer> staging_;
  std::vector<Tensor> staged_;  // by copied_inputs_
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::unique_ptr<Buffer>> workspaces_;
  DeviceContext host_;
  KernelContext run_;  // of kernel_
  std::atomic<int> threads_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> PrepareHostStateKernel(const PrepareContext& context,
                                               const OpRegistry& registry) {
  return std::make_unique<HostStateKernel>(context, registry);
}

}  // namespace skiff
