#include "framework/comm/polling.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "framework/base/steady_seconds.h"

namespace skiff {

Polling::Polling(double time_limit) : time_limit_(time_limit), start_(SteadySeconds()) {}

bool Polling::Wait() {
  constexpr double kBusySeconds = 0.02;
  constexpr double kFraction = 1.0 / 64;
  constexpr double kLongestSleep = 0.001;
  const double waited = SteadySeconds() - start_;
  if (waited > time_limit_) return false;
  if (waited < kBusySeconds) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::min(waited * kFraction, kLongestSleep)));
  }
  return true;
}

void Polling::Restart() { start_ = SteadySeconds(); }

}  // namespace skiff
