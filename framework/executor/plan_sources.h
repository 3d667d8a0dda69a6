// The inputs of all plans of a compiled program.
#pragma once

#include <memory>

#include "framework/analysis/collective_order.h"
#include "framework/base/place.h"
#include "framework/executor/api/compile_options.h"
#include "framework/executor/api/plan_statistics.h"
#include "framework/executor/device/comm_link.h"
#include "framework/executor/device/device_link.h"
#include "framework/executor/lowering/lowering_inputs.h"
#include "framework/executor/storage/shared_arena.h"
#include "framework/ir/program.h"
#include "framework/op/registry.h"
#include "framework/tensor/scope.h"

namespace skiff {

struct PlanSources {
  const OpRegistry* registry = nullptr;
  std::shared_ptr<const Program> program;  // after the program passes
  Place place;
  Scope* scope = nullptr;
  OpPositions positions;  // in the program as the user gave it
  CompileOptions options;
  bool trains = false;                                    // whether the program has optimizer ops
  std::shared_ptr<DeviceLink> link = DeviceLink::Host();  // to `place`
  // The communication stream of all plans; nullptr: there is none.
  std::shared_ptr<CommLink> comm = {};
  // Of the ranks; nullptr: there is one rank.
  std::shared_ptr<CollectiveAgreement> agreement = {};
  std::shared_ptr<SharedArena> arena;
  std::shared_ptr<PreparationStatistics> statistics = std::make_shared<PreparationStatistics>();
};

}  // namespace skiff
