// The fetches of a plan: the tensors to which its runs copy the values that are fetched.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "framework/executor/device/device_link.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/plan/plan.h"
#include "framework/tensor/tensor.h"

namespace skiff {

class PlanFetches {
 public:
  // Throws Error (kIo) if the device gives no event. All must outlive the fetches.
  PlanFetches(const Plan& plan, const BoundValues& values, DeviceLink* link);

  // Makes tensors for the fetches. Reuses a tensor of the last run if it has room for the current
  // rows. Throws an Error (kResourceExhausted) if there is no memory.
  void Make();
  // Copies the values. On a device, its stream holds the copies then.
  void Copy();
  // Waits for the copies. Throws Error (kIo) if the device has failed.
  void Await() { link_.Await(copied_.get()); }

  const std::vector<Tensor>& tensors() const { return fetches_; }
  // Gives the tensors to the caller.
  std::vector<Tensor> Take();

 private:
  void MakeOne(const PlanValue& planned, const Tensor& value, Tensor* fetch);
  // Gives a fetch the LoD of its value.
  void CopyLoD(const Tensor& value, size_t index);

  const Plan& plan_;
  const BoundValues& values_;
  DeviceLink& link_;
  std::unique_ptr<DeviceEvent> copied_;
  std::vector<Tensor> fetches_;
  std::vector<std::shared_ptr<LoD>> lods_;  // of fetches_, where they are ragged
};

}  // namespace skiff
