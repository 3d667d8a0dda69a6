#include "framework/training/stop_request.h"

#include <atomic>

namespace skiff::training {
namespace {

// A handler can't be given an object. Lock-free, so a handler may write it.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void NoteSignal(int signal) { received_signal.store(signal); }

}  // namespace

StopRequest::StopRequest() {
  received_signal.store(0);
  struct sigaction action {};
  action.sa_handler = NoteSignal;
  sigemptyset(&action.sa_mask);
  // SA_RESETHAND: the second signal does what it does by default, in case the loop hangs.
  // SA_RESTART: a write to a checkpoint isn't interrupted.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &previous_interrupt_);
  sigaction(SIGTERM, &action, &previous_terminate_);
}

StopRequest::~StopRequest() {
  sigaction(SIGINT, &previous_interrupt_, nullptr);
  sigaction(SIGTERM, &previous_terminate_, nullptr);
}

int StopRequest::signal() const { return received_signal.load(); }

}  // namespace skiff::training
