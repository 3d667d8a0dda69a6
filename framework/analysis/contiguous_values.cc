#include "framework/analysis/contiguous_values.h"

#include <bit>

#include "framework/base/dtype.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

// The planner's limit.
constexpr int64_t kMaxAlignment = int64_t{1} << 32;

class SliceFinder {
 public:
  // One finder serves all lists of a plan: a storage belongs to the first list that takes it.
  explicit SliceFinder(const Plan& plan)
      : plan_(plan), is_written_(plan.values.size(), false), is_taken_(plan.values.size(), false) {
    for (const Instruction& instruction : plan.instructions) {
      for (const ValueId output : instruction.outputs) {
        if (output) is_written_[output] = true;
      }
    }
  }

  std::vector<ContiguousSlice> Find(const ContiguousValues& list) {
    const int64_t alignment = list.alignment_bytes;
    SKIFF_ENFORCE(alignment > 0 && alignment <= kMaxAlignment &&
                      std::has_single_bit(static_cast<uint64_t>(alignment)),
                  kInvalidArgument, "contiguous values aligned to ", alignment,
                  " bytes: expected a power of two, at most ", kMaxAlignment);
    // Offsets follow from the slices that take part, so a list stays without gaps where a pass has
    // dropped a value.
    std::vector<ContiguousSlice> slices;
    int64_t end = 0;
    for (const ValueId value : list.values) {
      SKIFF_ENFORCE(value, kInvalidArgument, "contiguous values: one of them is no value");
      SKIFF_ENFORCE(plan_.values.contains(value), kInvalidArgument, "contiguous value ", value,
                    ": the plan has ", plan_.values.size(), " values");
      const ValueId root = plan_.StorageOf(value);
      if (!TakesPart(value, root)) continue;
      is_taken_[root] = true;
      CheckElementSize(root, alignment);
      slices.push_back({.value = value, .root = root, .offset = RoundUp(end, alignment)});
      end = slices.back().offset + StorageBytes(ValueOf(root));
    }
    return slices;
  }

 private:
  const PlanValue& ValueOf(ValueId value) const { return plan_[value]; }

  bool TakesPart(ValueId value, ValueId root) const {
    // Passes may have dropped a value or given it another storage. Such values simply don't take
    // part.
    return ValueOf(root).storage == Storage::kArena && is_written_[value] && !is_taken_[root] &&
           StorageBytes(ValueOf(value)) == StorageBytes(ValueOf(root));
  }

  void CheckElementSize(ValueId root, int64_t alignment) const {
    const int64_t element_bytes = SizeOf(ValueOf(root).meta.dtype);
    SKIFF_ENFORCE(alignment >= element_bytes, kInvalidArgument, "contiguous value \"",
                  ValueOf(root).name, "\" (", root, ") of ", DTypeName(ValueOf(root).meta.dtype),
                  " aligned to ", alignment, " bytes: expected at least ", element_bytes);
  }

  const Plan& plan_;
  ValueTable<bool> is_written_;
  ValueTable<bool> is_taken_;  // by root: in a list
};

}  // namespace

std::vector<std::vector<ContiguousSlice>> ContiguousSlices(const Plan& plan) {
  std::vector<std::vector<ContiguousSlice>> lists;
  if (plan.contiguous.empty()) return lists;
  SliceFinder finder(plan);
  for (const ContiguousValues& list : plan.contiguous) lists.push_back(finder.Find(list));
  return lists;
}

}  // namespace skiff
