#include "framework/executor/device/rank_wait.h"

#include <chrono>
#include <thread>

#include "framework/base/steady_seconds.h"

namespace skiff {

void AwaitEvent(DeviceEvent* event, Communicator* communicator) {
  // A step of usual length ends before: its wait costs no sleep, and asks nobody.
  constexpr double kPatience = 0.1;
  const double start = SteadySeconds();
  while (!event->HasPassed()) {
    const double waited = SteadySeconds() - start;
    if (waited < kPatience) {
      std::this_thread::yield();
    } else {
      communicator->CheckWait(waited);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
}

}  // namespace skiff
