#include "operators/common/staged_copies.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "memory/allocator.h"

namespace skiff {
namespace {

int64_t AlignedUp(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

}  // namespace

StagedCopies PlanStagedCopies(const std::vector<StagedTensor>& tensors, int64_t largest_gap) {
  StagedCopies plan;
  plan.offsets.resize(tensors.size());
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return std::less<const char*>()(tensors[a].from, tensors[b].from);
  });
  const void* buffer = nullptr;  // of the last copy
  for (const size_t i : order) {
    const StagedTensor& tensor = tensors[i];
    if (tensor.bytes == 0) continue;
    // A copy costs far more than some bytes between two tensors: the gap is copied, too.
    const bool joins =
        !plan.copies.empty() && tensor.buffer == buffer &&
        tensor.from - (plan.copies.back().from + plan.copies.back().bytes) <= largest_gap;
    if (!joins) {
      plan.copies.push_back({.from = tensor.from, .bytes = 0, .to = AlignedUp(plan.bytes)});
      buffer = tensor.buffer;
    }
    StagedCopies::Copy& copy = plan.copies.back();
    const int64_t begin = tensor.from - copy.from;
    copy.bytes = std::max(copy.bytes, begin + tensor.bytes);
    plan.offsets[i] = copy.to + begin;
    plan.bytes = copy.to + copy.bytes;
  }
  return plan;
}

}  // namespace skiff
