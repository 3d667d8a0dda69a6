#include "framework/analysis/contiguous_values.h"

#include <bit>

#include "framework/base/dtype.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

// That of the planner.
constexpr int64_t kMaxAlignment = int64_t{1} << 32;

class SliceFinder {
 public:
  explicit SliceFinder(const Plan& plan)
      : plan_(plan), is_written_(plan.values.size(), false), is_taken_(plan.values.size(), false) {
    for (const Instruction& instruction : plan.instructions) {
      for (const int32_t output : instruction.outputs) {
        if (output >= 0) is_written_[static_cast<size_t>(output)] = true;
      }
    }
  }

  std::vector<ContiguousSlice> Find(const ContiguousValues& list) {
    const int64_t alignment = list.alignment_bytes;
    SKIFF_ENFORCE(alignment > 0 && alignment <= kMaxAlignment &&
                      std::has_single_bit(static_cast<uint64_t>(alignment)),
                  kInvalidArgument, "contiguous values aligned to ", alignment,
                  " bytes: expected a power of two, at most ", kMaxAlignment);
    std::vector<ContiguousSlice> slices;
    int64_t end = 0;
    for (const int32_t value : list.values) {
      SKIFF_ENFORCE(value >= 0 && static_cast<size_t>(value) < plan_.values.size(),
                    kInvalidArgument, "contiguous value #", value, ": the plan has ",
                    plan_.values.size(), " values");
      const int32_t root = plan_.StorageOf(value);
      if (!TakesPart(value, root)) continue;
      is_taken_[static_cast<size_t>(root)] = true;
      CheckElementSize(root, alignment);
      slices.push_back({.value = value, .root = root, .offset = RoundUp(end, alignment)});
      end = slices.back().offset + StorageBytes(ValueOf(root));
    }
    return slices;
  }

 private:
  const PlanValue& ValueOf(int32_t value) const { return plan_.values[static_cast<size_t>(value)]; }

  bool TakesPart(int32_t value, int32_t root) const {
    return ValueOf(root).storage == Storage::kArena && is_written_[static_cast<size_t>(value)] &&
           !is_taken_[static_cast<size_t>(root)] &&
           StorageBytes(ValueOf(value)) == StorageBytes(ValueOf(root));
  }

  void CheckElementSize(int32_t root, int64_t alignment) const {
    const int64_t element_bytes = SizeOf(ValueOf(root).meta.dtype);
    SKIFF_ENFORCE(alignment >= element_bytes, kInvalidArgument, "contiguous value \"",
                  ValueOf(root).name, "\" (#", root, ") of ", DTypeName(ValueOf(root).meta.dtype),
                  " aligned to ", alignment, " bytes: expected at least ", element_bytes);
  }

  const Plan& plan_;
  std::vector<bool> is_written_;  // by value
  std::vector<bool> is_taken_;    // by root: in a list
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
