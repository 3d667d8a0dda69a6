// Stacks that take turns on one thread of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__) || defined(SKIFF_CUDA_EMULATION_UCONTEXT)
#define SKIFF_FIBER_UCONTEXT 1
#include <ucontext.h>
#endif

namespace skiff::cuda_emulation {

// A stack, new or of a thread of the CPU, and the place where the code goes on. Only one thread of
// the CPU at a time uses a fiber and the fibers that it switches to.
class Fiber {
 public:
  // Stands for the calling thread's own stack, until Start gives the fiber another one.
  Fiber() = default;
  // Frees the fiber's own stack, which no code may be running on.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Makes the next SwitchTo to this fiber begin `main`, which calls Arrive first and never returns.
  // The fiber gets a stack if it has none; ends the process if there is no memory. What ran on the
  // stack before is forgotten: no destructors run.
  void Start(void (*main)());

  // Called on this fiber's stack: keeps where its code is, and goes on with `to`. Returns when
  // another fiber switches back.
  void SwitchTo(Fiber* to);

  // Ends a switch, for AddressSanitizer. The `main` of Start calls it.
  static void Arrive();

  // Returns the lowest address of the fiber's own stack, of kStackBytes; nullptr if it has none.
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
