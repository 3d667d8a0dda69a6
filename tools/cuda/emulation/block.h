// The threads of a block, each on a stack of its own: one runs until it waits for others.
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

// Runs all blocks of a launch. What a thread does wrong is reported, and ends the launch.
void RunLaunch(const KernelCall& call);

class Block {
 public:
  // The one whose threads the calling thread of the CPU runs; nullptr outside of kernels.
  static Block* Running() { return running_block_; }

  // False if a thread failed.
  bool Run(const KernelCall& call, uint3 index, uint64_t seed);

  // By its threads.
  void SyncThreads(Where where);
  void Exchange(unsigned mask, const char* function, const void* value, size_t bytes, int lane,
                void* result, Where where);
  void* Shared(const void* key, size_t bytes, const char* name);
  void* DynamicShared() const { return shared_.get(); }
  unsigned LaneId() const { return static_cast<unsigned>(running_) % kLanes; }
  // Nothing that the calling thread of the CPU does from now on is checked, since the launch fails.
  static void StopChecks() { running_block_ = nullptr; }
  // Reports what the running thread did, which runs no more, as all of the launch.
  [[noreturn]] void Fail(const std::string& what);
  // Of the running thread's stack, and of the launch's arguments.
  bool IsThreadsOwn(const void* address, size_t bytes) const {
    return IsIn(address, bytes, stack_, Fiber::kStackBytes) ||
           IsIn(address, bytes, arguments_, call_->argument_bytes);
  }
  bool IsShared(const void* address, size_t bytes) const {
    if (IsIn(address, bytes, shared_.get(), call_->shape.shared_bytes)) return true;
    return std::ranges::any_of(variables_, [&](const SharedVariable& variable) {
      return IsIn(address, bytes, shared_.get() + variable.begin, variable.bytes);
    });
  }
  // What lies nearest in shared memory, for messages; empty if it isn't shared memory.
  std::string SharedNear(const void* address) const;
  // By the running thread to memory that others see. False if it races; races().race() says how.
  bool Access(const void* address, size_t bytes, bool is_write, bool is_shared) {
    return !finds_races_ ||
           races_.Access(address, bytes, is_write, is_shared,
                         {running_, warp_epochs_[static_cast<size_t>(running_) / kLanes]});
  }
  RaceDetector& races() { return races_; }

 private:
  static constexpr unsigned kLanes = 32;
  static constexpr size_t kValueBytes = 8;

  enum class State : uint8_t { kUnstarted, kReady, kAtBarrier, kInWarp, kEnded };

  struct Thread {
    State state = State::kUnstarted;
    Fiber* fiber = nullptr;
    Where where;
    // In a warp's exchange.
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

  static bool IsIn(const void* address, size_t bytes, const void* from, size_t count) {
    const auto offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(from);
    return offset < count && bytes <= count - offset;
  }
  static void FiberMain();
  void RunThreads();
  void SwitchTo(Fiber* fiber);

  void Begin(int thread);
  void Wait();
  void Resume(int thread);
  void Schedule();
  void ReleaseBarrier();
  bool IsComplete(int thread, unsigned mask, const char* function) const;
  void Deliver(int first_of_warp, unsigned mask, size_t bytes);
  // Of the block as a whole.
  void Report(const std::string& what);
  std::string WhyStuck() const;
  std::string Describe(int thread) const;
  void Shuffle(std::vector<int>* threads);
  uint64_t Random();

  static constinit thread_local Block* running_block_;

  const KernelCall* call_ = nullptr;
  const bool finds_races_ = TheOptions().finds_races;
  uint64_t random_ = 0;
  bool is_shuffled_ = false;
  bool has_failed_ = false;
  std::vector<Thread> threads_;
  int running_ = 0;
  std::vector<int> order_;  // of beginning
  size_t begun_ = 0;
  size_t ended_ = 0;
  size_t at_barrier_ = 0;
  std::vector<int> ready_;  // the last one goes first
  RaceDetector races_;
  std::vector<unsigned> warp_epochs_;    // how often each has passed __syncwarp
  std::vector<unsigned> waiting_lanes_;  // of each warp in its exchanges, a bit each
  std::vector<int> woken_;               // by the exchange that is complete

  Fiber scheduler_;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> free_fibers_;  // at the end of RunThreads, or not started
  Fiber* fiber_ = nullptr;           // that runs
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
