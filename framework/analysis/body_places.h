// The work of the host in the body of a loop on a device.
#pragma once

#include <span>
#include <utility>

#include "framework/op/registry.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns whether it is a dense tensor of one element, such as a counter.
bool IsOneElement(const TensorMeta& meta);

// Returns whether the host can run the instruction, an op or a copy, for itself: it reads and makes
// single elements, and draws no numbers.
bool CanMakeForHost(const OpRegistry& registry, const Plan& plan, const Instruction& instruction);

// Moves the whole body to the CPU.
void MoveBodyToCpu(Plan* body);

// Decides the places in a joint body on a device, before it is cut in two: the host keeps the
// values that are needed to issue an iteration, such as counters and the condition of the loop, and
// runs the ops of these values. All these ops must work on single elements, so that the host
// needn't wait for the device. Otherwise returns false and changes nothing.
//
// `condition`: of a `while`, else none. `carried`: pairs of values, of which one becomes the other
// when the next iteration begins.
bool PlaceBody(const OpRegistry& registry, ValueId condition,
               std::span<const std::pair<ValueId, ValueId>> carried, Plan* body);

}  // namespace skiff
