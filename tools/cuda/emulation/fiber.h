// Stacks that take turns on one thread of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) || defined(SKIFF_CUDA_EMULATION_UCONTEXT)
#define SKIFF_FIBER_UCONTEXT 1
#include <ucontext.h>
#endif

namespace skiff::cuda_emulation {

// One side of a switch: a stack of its own, or the thread's.
class Fiber {
 public:
  Fiber() = default;  // what runs now
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // `main` begins with the next switch to the fiber, whatever it was at. It never returns.
  void Start(void (*main)());

  // Goes on with `to`, until somebody switches back.
  void SwitchTo(Fiber* to);

  // First thing on a new stack.
  static void Arrive();

  // Of kStackBytes; nullptr: the thread's.
  const void* stack() const { return stack_; }
  static constexpr size_t kStackBytes = size_t{256} << 10;

 private:
  char* stack_ = nullptr;  // nullptr: the thread's
#ifdef SKIFF_FIBER_UCONTEXT
  ucontext_t context_;
#else
  void* top_ = nullptr;
#endif
  // For AddressSanitizer.
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace skiff::cuda_emulation
