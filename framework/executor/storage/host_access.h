// Which instructions of a plan on a device have the host itself read or write memory that the
// device's work may still use.
#pragma once

#include <cstddef>
#include <vector>

#include "framework/executor/device/device_link.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns whether the host runs the instruction, and doesn't only issue it to a device.
bool RunsOnHost(const Plan& plan, const Instruction& instruction);

class HostAccess {
 public:
  // `values` and `link` must outlive it.
  HostAccess(const Plan& plan, const BoundValues& values, DeviceLink* link);

  // Must come before the host runs the instruction, or issues it to the device: waits until all
  // memory that the host reads or writes for the instruction is free. Throws Error (kIo) if the
  // device has failed, and the Error of a kernel that wrote a variable in the background.
  void AwaitBefore(size_t instruction) const {
    if (!uses_.empty()) Await(uses_[instruction]);
  }

 private:
  // Of one instruction.
  struct Use {
    bool uses_arena = false;           // on the CPU
    std::vector<const Tensor*> reads;  // variables of the scope on the CPU
  };

  std::vector<const Tensor*> ReadsOf(const Plan& plan, const Instruction& instruction) const;
  void Await(const Use& use) const;

  const BoundValues& values_;
  DeviceLink& link_;
  std::vector<Use> uses_;  // by instruction; empty without a device
};

}  // namespace skiff
