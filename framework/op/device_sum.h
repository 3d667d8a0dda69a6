// Adds up tensors on a device, by its kernel of the op `sum`.
#pragma once

#include <memory>

#include "framework/op/kernel.h"
#include "framework/op/registry.h"

namespace skiff {

class DeviceSum {
 public:
  // Returns whether the registry has a kernel at the place for tensors like `x`.
  static bool IsPossible(const OpRegistry& registry, const TensorMeta& x, Place place);

  // Throws Error if it isn't possible. The registry must outlive it.
  DeviceSum(const OpRegistry& registry, const TensorMeta& x, Place place);

  // Puts into the device's stream: *sum += x, element by element.
  void Add(const DeviceContext& device, Tensor* x, Tensor* sum);

 private:
  static PrepareContext ContextOf(const OpRegistry& registry, const Op& op, const TensorMeta& x,
                                  Place place);

  Op op_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace skiff
