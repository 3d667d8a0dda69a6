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

// Returns all constraints. They name passes of default_pipelines.txt, whose order obeys all
// constraints.
std::span<const PassOrder> PassOrders();

// Throws an Error (kFailedPrecondition) if a pass must run before another but runs after it. The
// message names both and the reason. `passes` are the names of passes in the order in which they
// run. Passes that no constraint names may be anywhere.
void CheckPassOrder(const std::vector<std::string_view>& passes);

}  // namespace skiff
