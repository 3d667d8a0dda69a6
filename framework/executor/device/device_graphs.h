// Stretches of a plan on a device that need nothing of the host: captured once as graphs, each of
// which is then launched in place of its steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "framework/executor/device/device_link.h"

namespace skiff {

class DeviceGraphs {
 public:
  // `launches`: how many kernels each step launches, about; 0 if it can't be part of a graph. Other
  // steps must put the same work into the stream, at the same addresses, in each run until Clear is
  // called. No stretch goes beyond one of the `cuts`: the host looks after the device before these
  // steps. The link must outlive the graphs.
  DeviceGraphs(DeviceLink* link, const std::vector<int64_t>& launches,
               const std::vector<size_t>& cuts);
  // Waits for the device if there are graphs.
  ~DeviceGraphs();
  DeviceGraphs(const DeviceGraphs&) = delete;
  DeviceGraphs& operator=(const DeviceGraphs&) = delete;

  // If a stretch begins at `step`, runs the stretch: launches its graph, or calls run(i) for each
  // step, for the first run and to capture the graph. Returns the step after the stretch, or `step`
  // if no stretch begins there. Throws the Errors of run(i), and Error (kIo) if the device can't
  // make a graph of the steps.
  size_t Run(size_t step, const std::function<void(size_t)>& run);
  // Must come when addresses have changed.
  void Clear();
  // The number of stretches that are graphs now.
  int64_t count() const;

 private:
  struct Stretch {
    size_t begin = 0;
    size_t end = 0;
    // Step by step, since Clear: preparations of kernels in a first run can't be captured.
    bool has_run = false;
    std::unique_ptr<DeviceGraph> graph = nullptr;
  };

  void Capture(const std::function<void(size_t)>& run, Stretch* stretch);

  DeviceLink& link_;
  std::vector<Stretch> stretches_;
};

}  // namespace skiff
