#include "framework/training/stop_request.h"

#include <atomic>
#include <csignal>
#include <mutex>

namespace skiff::training {
namespace {

// A handler can't be given an object. Lock-free, so a handler may write it.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void NoteSignal(int signal) { received_signal.store(signal); }

// The handlers belong to the process, so all requests share them. Each that kept what it found
// would put back another one's handler if they don't go in the reverse order.
struct Shared {
  std::mutex mutex;
  int requests = 0;
  struct sigaction previous_interrupt {};
  struct sigaction previous_terminate {};
};

Shared& SharedByRequests() {
  static auto& shared = *new Shared;
  return shared;
}

}  // namespace

StopRequest::StopRequest() {
  Shared& shared = SharedByRequests();
  const std::lock_guard<std::mutex> lock(shared.mutex);
  if (shared.requests++ > 0) return;
  received_signal.store(0);
  struct sigaction action {};
  action.sa_handler = NoteSignal;
  sigemptyset(&action.sa_mask);
  // SA_RESETHAND: the second signal does what it does by default, in case the loop hangs.
  // SA_RESTART: a write to a checkpoint isn't interrupted.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &shared.previous_interrupt);
  sigaction(SIGTERM, &action, &shared.previous_terminate);
}

StopRequest::~StopRequest() {
  Shared& shared = SharedByRequests();
  const std::lock_guard<std::mutex> lock(shared.mutex);
  if (--shared.requests > 0) return;
  sigaction(SIGINT, &shared.previous_interrupt, nullptr);
  sigaction(SIGTERM, &shared.previous_terminate, nullptr);
}

int StopRequest::signal() const { return received_signal.load(); }

}  // namespace skiff::training
