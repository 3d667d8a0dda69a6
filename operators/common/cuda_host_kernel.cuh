// Runs the CPU's kernel of an op on what the op keeps in the memory of the host (host_slots.h),
// beside a program on a device.
//
// Everything is given to streams, and the CPU waits for nothing. Per device there is one more
// stream, the host lane, for all such ops of all plans. Per run:
//
//   the program's stream   … writes the inputs ─┐            ┌─ goes on, may write them again …
//   the host lane                               └─ copies ───┴─ CPU kernel ─ …
//
// The inputs are copied into pinned memory; what lies one behind the other, as parameters do that
// are flat, in one copy. The program's stream goes on behind the copies and not only where the
// inputs are written again: another plan of the same parameters, for a batch of another shape, may
// be what writes them, and knows nothing of this kernel.
//
// The CPU kernel is a host function of the lane, and no work of a thread of ours that such a
// function wakes: so runs are in the order of the lane, no copy overwrites what is still being
// read, and if the CPU takes longer than a step, the copies of the next one wait for it and with
// them the device, instead of work piling up. The thread that CUDA calls it on has nobody else's
// functions to call, and OpenMP's threads it may use as any thread does.
#pragma once

#include <cuda_runtime.h>
#include <omp.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/background_kernel.h"
#include "framework/op/host_slots.h"
#include "framework/op/registry.h"
#include "memory/allocator.h"
#include "operators/common/cuda_launch.h"
#include "operators/common/staged_copies.h"

namespace skiff {

inline void CheckHostLane(cudaError_t status, const char* call) {
  SKIFF_ENFORCE(status == cudaSuccess, kIo, "work on what lies in host memory: ", call, ": ",
                cudaGetErrorString(status));
}

// The host lane of a device: its stream, and the first failure on it.
class CudaHostLane final : public PendingWrites {
 public:
  // Never destroyed: scopes of static lifetime may ask it at exit.
  static CudaHostLane& Of(Place place) {
    static std::mutex mutex;
    static auto& lanes = *new std::map<int32_t, CudaHostLane*>;
    const std::lock_guard lock(mutex);
    CudaHostLane*& lane = lanes[place.index];
    if (lane == nullptr) lane = new CudaHostLane;
    return *lane;
  }

  cudaStream_t stream() const { return stream_; }

  void Wait() override {
    CheckHostLane(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    ThrowFailure();
  }

  // Once for each failure.
  void ThrowFailure() {
    std::exception_ptr failure;
    {
      const std::lock_guard lock(mutex_);
      failure = std::exchange(failure_, nullptr);
    }
    if (failure != nullptr) std::rethrow_exception(failure);
  }

  // On the lane: calls the function unless an earlier one has failed and nobody knows it yet.
  template <class Function>
  void Call(const Function& function) noexcept {
    if (HasFailure()) return;
    try {
      function();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
  }

 private:
  // On the device that is current, as all that kernels do. Not ordered by the default stream: that
  // waits for the copies by events.
  CudaHostLane() {
    CheckHostLane(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                  "cudaStreamCreateWithFlags");
  }

  bool HasFailure() {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr;
  }

  cudaStream_t stream_ = nullptr;
  std::mutex mutex_;  // of failure_, never held while work runs
  std::exception_ptr failure_;
};

class CudaEvent {
 public:
  CudaEvent() {
    CheckHostLane(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming),
                  "cudaEventCreateWithFlags");
  }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  // What is given to `later` from now on comes behind what `earlier` has been given.
  void Order(cudaStream_t earlier, cudaStream_t later) const {
    CheckHostLane(cudaEventRecord(event_, earlier), "cudaEventRecord");
    CheckHostLane(cudaStreamWaitEvent(later, event_, 0), "cudaStreamWaitEvent");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaHostKernel final : public BackgroundKernel {
 public:
  // Of an op all whose outputs lie in host memory.
  CudaHostKernel(const PrepareContext& context, const OpRegistry& registry)
      : type_(context.op().type), lane_(CudaHostLane::Of(context.place())) {
    AddInputs(context);
    PrepareContext on_host(context.op(), context.def(), MetasOf(context.inputs()),
                           MetasOf(context.outputs()), Place::Cpu());
    kernel_ = registry.SelectKernel(on_host).prepare(on_host);
    SKIFF_ENFORCE(on_host.derived_forms().empty(), kFailedPrecondition, type_,
                  ": its kernel wants a derived form, which isn't made in host memory");
    for (const int64_t bytes : on_host.workspace_bytes()) {
      workspaces_.push_back(std::make_unique<Buffer>(AllocatorOf(Place::Cpu()), bytes));
      run_.workspaces.push_back(workspaces_.back()->data());
    }
    run_.device_context = &host_;
  }

  // What was given points to this object.
  ~CudaHostKernel() override { cudaStreamSynchronize(lane_.stream()); }

  PendingWrites* pending() const override { return &lane_; }

  void Bind(const KernelContext& run) override {
    CheckHostLane(cudaStreamSynchronize(lane_.stream()), "cudaStreamSynchronize");
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
      staging_ = std::make_unique<Buffer>(PinnedAllocator(), plan_.bytes);
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
    const cudaStream_t program = StreamOf(run);
    inputs_written_.Order(program, lane_.stream());
    for (const StagedCopies::Copy& copy : plan_.copies) {
      CheckHostLane(cudaMemcpyAsync(Staged(copy.to), copy.from, static_cast<size_t>(copy.bytes),
                                    cudaMemcpyDeviceToHost, lane_.stream()),
                    "cudaMemcpyAsync");
    }
    inputs_copied_.Order(lane_.stream(), program);
    threads_ = omp_get_max_threads();
    CheckHostLane(cudaLaunchHostFunc(lane_.stream(), RunOnHost, this), "cudaLaunchHostFunc");
  }

 private:
  // Between parameters that lie flat there is less.
  static constexpr int64_t kLargestGap = 256;

  static std::vector<TensorMeta> MetasOf(std::span<const TensorMeta> metas) {
    return {metas.begin(), metas.end()};
  }

  // By a thread of CUDA's, where nothing of CUDA may be called.
  static void RunOnHost(void* self) {
    auto& kernel = *static_cast<CudaHostKernel*>(self);
    kernel.lane_.Call([&] {
      // As many threads as an op of the program would have.
      omp_set_num_threads(kernel.threads_);
      try {
        kernel.kernel_->Run(kernel.run_);
      } catch (const Error& error) {
        // It is told elsewhere: in a later run, of another op perhaps.
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
                    kFailedPrecondition, type_, ": ", slot.name, " lies on ", context.place(),
                    ", expected all outputs in host memory");
    }
  }

  void CheckOnHost(const Tensor& tensor) const {
    SKIFF_ENFORCE(tensor.place().is_cpu(), kFailedPrecondition, type_, ": what it keeps is on ",
                  tensor.place(), ", expected ", Place::Cpu(), ", as ", kOnHostAttr, " = true");
  }

  void* Staged(int64_t offset) const { return static_cast<char*>(staging_->data()) + offset; }

  std::string type_;
  CudaHostLane& lane_;
  CudaEvent inputs_written_;           // by the program
  CudaEvent inputs_copied_;            // by the lane
  std::vector<size_t> copied_inputs_;  // inputs that lie on the device
  StagedCopies plan_;
  std::unique_ptr<Buffer> staging_;
  std::vector<Tensor> staged_;  // by copied_inputs_
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::unique_ptr<Buffer>> workspaces_;
  DeviceContext host_;
  KernelContext run_;  // of kernel_
  std::atomic<int> threads_ = 1;
};

}  // namespace skiff
