// Restores the scope if a run fails.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/executor/device/device_link.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/plan/plan.h"
#include "framework/tensor/tensor.h"

namespace skiff {

// Copies of the scope variables that a run writes before an instruction that may refuse its data
// (labels, ids): running statistics and counters as a rule, parameters only where a first check of
// data comes after an update. If a later segment may refuse data, copies of all variables that the
// run writes.
class Rollback {
 public:
  // Takes the memory for the copies. Throws an Error (kResourceExhausted) if there is none.
  // `values` and `link` must outlive the rollback.
  Rollback(const Plan& plan, const BoundValues& values, bool is_last_segment, DeviceLink* link);

  // Returns the instruction after the last check of data that no earlier instruction has checked
  // (the number of instructions if segments follow). Variables written only from there on aren't
  // saved.
  size_t end() const { return end_; }

  // Copies the variables as they are now.
  void Save();
  // Restores the variables that Save has copied.
  void Restore() const;

  int64_t bytes() const;

 private:
  struct Copy {
    Tensor* live = nullptr;
    Tensor saved;
  };

  const BoundValues& values_;
  DeviceLink& link_;
  size_t end_;
  std::vector<Copy> copies_;
};

}  // namespace skiff
