// Decides, for a program on a device, where each instruction runs, and inserts the copies between
// places that this takes:
//
//   y = lookup(w, ids)            ids_d = copy(ids)           # a feed is on the CPU
//   z = unique(y)           →     y = lookup(w, ids_d)
//                                 y_h = copy(y)
//                                 z = unique(y_h)             # on the CPU
//
// An op runs on the device if it has a kernel there for its shapes. Ops with output shapes that
// depend on data, and ops that work on the host (OpDef::is_on_host), run on the CPU. So do ops on
// single elements with the host as the only reader. An array is on the device if all its users can
// run there. A loop runs on the device if its whole body can (body_places.h), without refusing
// data; other loops, and branches, run on the CPU. A value is copied to a place at most once. If an
// instruction on the CPU writes a variable that the scope holds on the device, it writes to a
// temporary, and a copy to the variable follows. Does nothing to a plan on the CPU, nor to a body,
// which runs where its loop does.
#pragma once

#include "framework/transpiler/pass.h"

namespace skiff {

class PlacementPass final : public PlanPass {
 public:
  std::string_view name() const override { return "placement"; }
  // Feeds are on the CPU, and not every op has a kernel for the device.
  bool IsRequiredBy(const Plan& plan) const override { return !plan.place.is_cpu(); }
  // `changes`: instructions that run on the CPU, and copies between places.
  PassReport Apply(const PassContext& context, Plan* plan) const override;
};

}  // namespace skiff
