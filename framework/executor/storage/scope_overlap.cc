#include "framework/executor/storage/scope_overlap.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

Range RangeOf(const Tensor& tensor) {
  const auto begin = reinterpret_cast<uintptr_t>(tensor.raw_data());
  return {.begin = begin, .end = begin + static_cast<uintptr_t>(tensor.byte_count())};
}

struct Held : Range {
  std::string name;
  bool is_written = false;
};

// Returns the plan's scope variables that have bytes, by address.
std::vector<Held> HeldVariables(const Plan& plan, Scope& scope) {
  std::map<std::string, bool> is_written;
  for (const PlanValue& value : plan.values) {
    // The elements of arrays are nobody else's.
    if (value.storage != Storage::kScope || value.meta.is_array) continue;
    is_written.emplace(value.name, false);
  }
  for (const Instruction& instruction : plan.instructions) {
    for (const ValueId output : instruction.outputs) {
      if (!output) continue;
      const PlanValue& value = plan[output];
      if (value.storage == Storage::kScope && !value.meta.is_array) is_written[value.name] = true;
    }
  }
  std::vector<Held> held;
  for (const auto& [name, written] : is_written) {
    const Tensor& tensor = *scope.FindMutable(name);
    const Range range = RangeOf(tensor);
    // Empty tensors share no byte with any other.
    if (range.begin < range.end) held.push_back({range, name, written});
  }
  std::ranges::sort(held, {}, &Held::begin);
  return held;
}

void Refuse(const Held& a, const Held& b) {
  const bool writes_a = a.is_written;
  Throw(ErrorCode::kFailedPrecondition, "variables \"", a.name, "\" and \"", b.name,
        "\" share memory in the scope, and the program writes \"", writes_a ? a.name : b.name,
        "\": give each a tensor of its own");
}

}  // namespace

bool ShareBytes(const Tensor& a, const Tensor& b) {
  const Range x = RangeOf(a);
  const Range y = RangeOf(b);
  return std::max(x.begin, y.begin) < std::min(x.end, y.end);
}

void CheckScopeOverlap(const Plan& plan, Scope& scope) {
  // A sweep by address, as in interval intersection: a variable overlaps an earlier one exactly if
  // it begins before the farthest end so far. Read-only variables may share memory, so a variable
  // that isn't written is compared only with written ones.
  const Held* farthest = nullptr;
  const Held* farthest_written = nullptr;
  const auto extend = [](const Held*& reach, const Held& held) {
    if (reach == nullptr || held.end > reach->end) reach = &held;
  };
  const std::vector<Held> all = HeldVariables(plan, scope);
  for (const Held& held : all) {
    const Held* before = held.is_written ? farthest : farthest_written;
    if (before != nullptr && held.begin < before->end) Refuse(*before, held);
    extend(farthest, held);
    if (held.is_written) extend(farthest_written, held);
  }
}

}  // namespace skiff
