// Runs a function once on each of several ranks, which are threads.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/comm/threads_communicator.h"

namespace skiff {

// Calls function(communicator) for each rank, each in a thread. A rank ends, and its communicator
// is destroyed, when its call returns or throws. Returns by rank what the exception says that the
// call throws; "" without an exception.
inline std::vector<std::string> RunOnRanks(std::vector<std::shared_ptr<Communicator>> ranks,
                                           const std::function<void(Communicator*)>& function) {
  std::vector<std::string> errors(ranks.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back(
        [&function, error = &errors[rank], own = std::move(ranks[rank])]() mutable {
          try {
            function(own.get());
          } catch (const std::exception& caught) {
            *error = caught.what();
          }
          own.reset();
        });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Does the same with `size` new ranks.
inline std::vector<std::string> RunOnThreadRanks(
    int32_t size, const ThreadRanksOptions& options,
    const std::function<void(Communicator*)>& function) {
  return RunOnRanks(MakeThreadRanks(size, options), function);
}

}  // namespace skiff
