// Stretches of a plan on a device that need nothing of the host: captured once as graphs, each of
// which is then launched in place of its steps.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "framework/executor/device_link.h"

namespace skiff {

class DeviceGraphs {
 public:
  // `can_capture` says of each step whether it may be part of a graph; it must then put the same
  // work into the stream, at the same addresses, in each run until Clear is called. No stretch goes
  // beyond one of the `cuts`: the host looks after the device before these steps. The link must
  // outlive the graphs.
  DeviceGraphs(DeviceLink* link, const std::vector<bool>& can_capture,
               const std::vector<size_t>& cuts);
  // Waits for the device if there are graphs.
  ~DeviceGraphs();
  DeviceGraphs(const DeviceGraphs&) = delete;
  DeviceGraphs& operator=(const DeviceGraphs&) = delete;

  // Runs the stretch that begins at this step, calling run(i) for its steps if they must be run one
  // by one or captured. Returns the step after it: `step` itself if no stretch begins there. Throws
  // what run(i) throws, and Error (kIo) if the device can't make a graph of what a step does.
  size_t Run(size_t step, const std::function<void(size_t)>& run);
  // Must come when addresses have changed.
  void Clear();
  // The number of stretches that are graphs now.
  int64_t count() const;

 private:
  struct Stretch {
    size_t begin = 0;
    size_t end = 0;
    bool has_run = false;  // step by step, since Clear: kernels prepare things in a first run
    std::unique_ptr<DeviceGraph> graph = nullptr;
  };

  void Capture(const std::function<void(size_t)>& run, Stretch* stretch);

  DeviceLink& link_;
  std::vector<Stretch> stretches_;
};

}  // namespace skiff
