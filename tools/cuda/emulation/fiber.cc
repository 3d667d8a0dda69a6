#include "tools/cuda/emulation/fiber.h"

#include <sys/mman.h>

#include <cstring>

#include "tools/cuda/emulation/failures.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef SKIFF_FIBER_UCONTEXT
// Leaves what the ABI wants kept on the stack, and goes on with another one. (swapcontext asks the
// kernel for signal masks: 30 times as long.)
asm(R"(
  .pushsection .text
  .type SkiffSwitchStack, @function
SkiffSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size SkiffSwitchStack, . - SkiffSwitchStack
  .popsection
)");
extern "C" void SkiffSwitchStack(void** from_top, void* to_top);
#endif

namespace skiff::cuda_emulation {
namespace {

constexpr size_t kPage = 4096;

thread_local Fiber* arriving = nullptr;
thread_local Fiber* leaving = nullptr;

}  // namespace

Fiber::~Fiber() {
  if (stack_ != nullptr) munmap(stack_ - kPage, kStackBytes + kPage);
}

void Fiber::Start(void (*main)()) {
  if (stack_ == nullptr) {
    // Below it a page that nobody may touch.
    void* pages = mmap(nullptr, kStackBytes + kPage, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) Die("no memory for the stack of a thread");
    stack_ = static_cast<char*>(pages) + kPage;
    mprotect(stack_, kStackBytes, PROT_READ | PROT_WRITE);
  }
  bottom_ = stack_;
  bytes_ = kStackBytes;
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
#ifdef SKIFF_FIBER_UCONTEXT
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStackBytes;
  makecontext(&context_, main, 0);
#else
  // Six registers, then where to go on; there the stack is as behind a call.
  auto* top = reinterpret_cast<void**>(stack_ + kStackBytes) - 8;
  std::memset(top, 0, 8 * sizeof(void*));
  top[6] = reinterpret_cast<void*>(main);
  top_ = top;
#endif
}

void Fiber::SwitchTo(Fiber* to) {
  arriving = to;
  leaving = this;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&fake_stack_, to->bottom_, to->bytes_);
#endif
#ifdef SKIFF_FIBER_UCONTEXT
  swapcontext(&context_, &to->context_);
#else
  SkiffSwitchStack(&top_, to->top_);
#endif
  Arrive();
}

void Fiber::Arrive() {
#ifdef __SANITIZE_ADDRESS__
  Fiber* from = leaving;
  __sanitizer_finish_switch_fiber(arriving->fake_stack_, &from->bottom_, &from->bytes_);
  arriving->fake_stack_ = nullptr;
#endif
}

}  // namespace skiff::cuda_emulation
