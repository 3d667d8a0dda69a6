// The threads of a block, each on a stack of its own: each runs until it waits for others.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tools/cuda/emulation/fiber.h"
#include "tools/cuda/emulation/launch.h"
#include "tools/cuda/emulation/options.h"
#include "tools/cuda/emulation/races.h"

namespace skiff::cuda_emulation {

// Runs all blocks of a launch on a device, by the calling thread of the CPU, one after the other in
// an order that is drawn. If a thread does something wrong, the mistake is reported (failures.h),
// and the rest of the launch doesn't run. The caller has opened the device's memory
// (DeviceMemory::Open).
void RunLaunch(const KernelCall& call, int device);

// Runs blocks, one after the other, and keeps their stacks and shared memory from one to the next.
// One thread of the CPU at a time uses it.
class Block {
 public:
  // Returns the block whose threads the calling thread of the CPU runs; nullptr outside of kernels.
  static Block* Running() { return running_block_; }

  // Runs all threads of the block that has this index in the grid. They run in an order drawn from
  // the seed or, if the seed is 0, as numbered. Returns false, with the failure reported, if a
  // thread did something wrong or if none could go on.
  bool Run(const KernelCall& call, int device, uint3 index, uint64_t seed);

  // Returns the device that the block runs on.
  int device() const { return device_; }

  // The next five are for the running thread of the block. device.h declares them as SyncThreads,
  // Exchange, SharedVariable, DynamicSharedMemory and LaneId.
  void SyncThreads(Where where);
  void Exchange(unsigned mask, const char* function, const void* value, size_t bytes, int lane,
                void* result, Where where);
  void* Shared(const void* key, size_t bytes, const char* name);
  void* DynamicShared() const { return shared_.get(); }
  unsigned LaneId() const { return static_cast<unsigned>(running_) % kLanes; }

  // Makes Running return nullptr, so that nothing the calling thread of the CPU does is checked any
  // more. Code that is about to call Fail calls it first.
  static void StopChecks() { running_block_ = nullptr; }
  // Reports the mistake of the running thread, and ends the launch: no thread of it goes on.
  [[noreturn]] void Fail(const std::string& what);

  // Returns whether all of the bytes are in the running thread's stack, or in the launch's
  // arguments.
  bool IsThreadsOwn(const void* address, size_t bytes) const {
    return IsIn(address, bytes, stack_, Fiber::kStackBytes) ||
           IsIn(address, bytes, arguments_, call_->argument_bytes);
  }
  // Returns whether all of the bytes are in one shared variable, or in the dynamic shared memory.
  bool IsShared(const void* address, size_t bytes) const {
    if (IsIn(address, bytes, shared_.get(), call_->shape.shared_bytes)) return true;
    return std::ranges::any_of(variables_, [&](const SharedVariable& variable) {
      return IsIn(address, bytes, shared_.get() + variable.begin, variable.bytes);
    });
  }
  // Returns which shared variable is nearest to the address and how far from its beginning that is,
  // for messages; empty if the address isn't in the block's shared memory nor between its
  // variables.
  std::string SharedNear(const void* address) const;
  // Notes an access of the running thread to shared memory of the block or else to memory of the
  // device. Returns false if it races with an earlier one; races().race() then says with which.
  // Always returns true without Options::finds_races.
  bool Access(const void* address, size_t bytes, bool is_write, bool is_shared) {
    return !finds_races_ ||
           races_.Access(address, bytes, is_write, is_shared,
                         {running_, warp_epochs_[static_cast<size_t>(running_) / kLanes]});
  }
  // Returns the detector of races in the accesses of the block and of blocks that ran before.
  RaceDetector& races() { return races_; }

 private:
  static constexpr unsigned kLanes = 32;
  static constexpr size_t kValueBytes = 8;

  enum class State : uint8_t { kUnstarted, kReady, kAtBarrier, kInWarp, kEnded };

  struct Thread {
    State state = State::kUnstarted;
    Fiber* fiber = nullptr;
    Where where;  // of the call in which it waits
    // The arguments of its Exchange.
    const char* function = nullptr;
    unsigned mask = 0;
    int lane = 0;
    void* result = nullptr;
    unsigned char value[kValueBytes];
  };

  struct SharedVariable {
    const void* key;
    const char* name;
    size_t begin;
    size_t bytes;
  };

  // Returns whether all of the bytes are among the `count` that begin at `from`.
  static bool IsIn(const void* address, size_t bytes, const void* from, size_t count) {
    const auto offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(from);
    return offset < count && bytes <= count - offset;
  }

  // The scheduler runs on the stack of Run's caller, and threads run on fibers. A fiber runs
  // threads one after the other; if a thread waits, it keeps the fiber until the thread ends.

  // The scheduler: runs threads until all have ended. If none can go on, it reports that. After a
  // failure it returns at once: the other threads never go on, and their fibers are free.
  void Schedule();
  // Goes from the scheduler to a fiber. Returns when a thread on the fiber waits, or when the fiber
  // has run all possible threads.
  void SwitchTo(Fiber* fiber);
  // Goes from the scheduler to a thread that is ready. Returns as SwitchTo does.
  void Resume(int thread);
  // Code of a new fiber.
  static void FiberMain();
  // Runs threads on the fiber that runs until all threads have begun; then goes to the scheduler.
  // Never returns, and runs threads again when the scheduler comes back.
  void RunThreads();
  // Makes a thread the running one, as far as LaneId, ThreadIdx and the checks go. Calls no code of
  // it.
  void Begin(int thread);
  // Goes from the running thread to the scheduler. Returns when that resumes the thread.
  void Wait();

  // Makes all threads ready, which have come to a barrier; or reports that they came to several.
  void ReleaseBarrier();
  // Returns whether a thread waits in an exchange with this mask and function.
  bool IsInExchange(int thread, unsigned mask, const char* function) const;
  // Ends an exchange to which all lanes of the mask have come, in the warp that begins with thread
  // `first_of_warp`: gives each lane its result, and makes waiting lanes ready.
  void Deliver(int first_of_warp, unsigned mask, size_t bytes);

  // Reports a failure of the block, and makes the scheduler return.
  void Report(const std::string& what);
  // Returns, for messages, why no thread can go on: a waiting thread, and a thread that it waits
  // for.
  std::string WhyStuck() const;
  // Returns, for messages, which thread it is, and why it waits.
  std::string Describe(int thread) const;

  // Puts threads in an order that is drawn, unless Run's seed is 0.
  void Shuffle(std::vector<int>* threads);
  // Returns the next number that is drawn from Run's seed.
  uint64_t Random();

  static constinit thread_local Block* running_block_;

  const KernelCall* call_ = nullptr;
  int device_ = 0;
  const bool finds_races_ = TheOptions().finds_races;
  uint64_t random_ = 0;
  bool is_shuffled_ = false;
  bool has_failed_ = false;
  std::vector<Thread> threads_;
  int running_ = 0;         // the thread that runs
  std::vector<int> order_;  // in which threads begin
  size_t begun_ = 0;        // threads that have begun
  size_t ended_ = 0;        // threads that have ended
  size_t at_barrier_ = 0;   // threads that wait at a barrier
  std::vector<int> ready_;  // threads that may go on; the last one goes first
  RaceDetector races_;
  std::vector<unsigned> warp_epochs_;    // how often each warp has passed __syncwarp
  std::vector<unsigned> waiting_lanes_;  // of each warp, a bit for each lane in an exchange
  std::vector<int> woken_;               // Deliver's

  Fiber scheduler_;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> free_fibers_;  // whose RunThreads has no thread, or hasn't begun
  Fiber* fiber_ = nullptr;           // the one that runs
  const void* stack_ = nullptr;      // its stack
  const void* arguments_ = nullptr;  // the launch's

  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };
  std::unique_ptr<unsigned char[], Free> shared_;
  size_t shared_bytes_ = 0;
  std::vector<SharedVariable> variables_;
};

}  // namespace skiff::cuda_emulation
