// Adds up values of the iterations of a loop (LoopFetch::Kind::kSum).
#pragma once

#include <cstdint>
#include <map>

#include "framework/executor/device/device_link.h"
#include "framework/op/device_sum.h"
#include "framework/op/registry.h"
#include "framework/plan/loop.h"
#include "framework/tensor/tensor.h"

namespace skiff {

class LoopSums {
 public:
  // Throws an Error (kUnimplemented) if a sum would be of a dtype other than float32 and float64,
  // and the Errors of DeviceSum. `link` is to the body's place. All must outlive the sums.
  LoopSums(const Loop& loop, const OpRegistry& registry, DeviceLink* link);

  // Adds a value of the body to the sum of `done` values, which is an output of the loop.
  void Add(const LoopFetch& fetch, int64_t done, Tensor* value, Tensor* sum);

 private:
  const Loop& loop_;
  DeviceLink& link_;
  std::map<const LoopFetch*, DeviceSum> on_device_;
};

}  // namespace skiff
