// Which passes must run before which: all constraints on the order, and their check.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace skiff {

// Where both run, `earlier` must run before `later`.
struct PassOrder {
  std::string_view earlier;
  std::string_view later;
  std::string_view reason;  // why, for people: completes "since ..."
};

// Returns all constraints. They name passes of default_pipelines.txt, which is one order that keeps
// to them.
std::span<const PassOrder> PassOrders();

// Throws an Error (kFailedPrecondition) that names both passes and the reason if one runs after a
// pass that it must run before. `passes` are the names of passes in the order in which they run.
// Passes that no constraint names may be anywhere.
void CheckPassOrder(const std::vector<std::string_view>& passes);

}  // namespace skiff
