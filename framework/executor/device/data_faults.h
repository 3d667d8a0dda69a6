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

// A word (KernelContext::fault) for each instruction on the device that checks data, also where
// another one has checked the same data before. Of these, the first is among those that Rollback
// counts on, so a fault is known before anything is written of which there is no copy.
class DataFaults {
 public:
  struct Found {
    size_t instruction = 0;
    DataFault fault;
  };

  // Takes the memory. Throws an Error (kResourceExhausted) if there is none. The link must outlive
  // the faults.
  DataFaults(const Plan& plan, DeviceLink* link);

  // Returns where the instruction notes a fault; nullptr if it refuses no data on the device.
  uint64_t* WordOf(size_t instruction) const;
  bool is_empty() const { return instructions_.empty(); }

  // Put into the stream: there are no faults as yet; and: the host wants to know of those up to
  // here.
  void Reset();
  void Collect();
  // Waits for what Collect has put into the stream. Returns the fault of the first instruction that
  // has one.
  std::optional<Found> Find() const;

 private:
  DeviceLink& link_;
  std::vector<size_t> instructions_;
  std::unique_ptr<Buffer> words_;       // on the device
  std::unique_ptr<Buffer> host_words_;  // what Collect copies
  std::unique_ptr<DeviceEvent> collected_;
};

}  // namespace skiff
