// Data that kernels on a device refuse: the host learns of it while the device goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "framework/executor/device/device_link.h"
#include "framework/op/data_fault.h"
#include "framework/plan/plan.h"
#include "memory/allocator.h"

namespace skiff {

// A word (KernelContext::fault) for each instruction on the device that checks data, even if an
// earlier instruction checks the same data. Rollback counts the first check of the data, so the
// host learns of a fault before the run writes a variable that has no copy.
class DataFaults {
 public:
  struct Found {
    size_t instruction = 0;
    DataFault fault;
  };

  // Takes the memory. Throws an Error (kResourceExhausted) if there is no memory. The link must
  // outlive the faults.
  DataFaults(const Plan& plan, DeviceLink* link);

  // Returns where the instruction notes a fault; nullptr if it refuses no data on the device.
  uint64_t* WordOf(size_t instruction) const;
  bool is_empty() const { return instructions_.empty(); }

  // Put work into the stream: Reset clears all words, Collect copies them to the host.
  void Reset();
  void Collect();
  // Waits for the copy of the last Collect. Returns the fault of the first instruction that has
  // refused data, or nothing.
  std::optional<Found> Find() const;

 private:
  DeviceLink& link_;
  std::vector<size_t> instructions_;
  std::unique_ptr<Buffer> words_;       // on the device
  std::unique_ptr<Buffer> host_words_;  // the copy of words_
  std::unique_ptr<DeviceEvent> collected_;
};

}  // namespace skiff
