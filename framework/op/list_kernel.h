// Kernels over lists of arrays, several of which may run in step: block by block, one on what
// another has just written while that is still in the first cache.
#pragma once

#include <cstdint>
#include <span>

#include "framework/op/kernel.h"

namespace skiff {

// Elements that stay in the first cache from one kernel to the next, and those that pay for a
// thread.
inline constexpr int64_t kListBlock = 2048;
inline constexpr int64_t kListGrain = 4 * kListBlock;

// The kernel of an op that treats the elements of its lists one by one. Its elements are those of
// all arrays of a list, one array behind the other; a list has as many as any other. What it does
// to element i depends on elements i of its arguments, on single numbers, and on what Begin makes
// of the whole. In step with others Begin and End touch no element that these touch, but for what
// begins_with_elements says, and for copies of what isn't computed in place.
class ListKernel : public Kernel {
 public:
  // Begin, all elements, End; or nothing more, if Begin says so.
  void Run(const KernelContext& run) final;

  // Whether Begin reads elements: then no kernel that writes these can run in step before.
  virtual bool begins_with_elements() const { return false; }
  // What comes before the elements; false if there is nothing to do for them, nor an End.
  virtual bool Begin(const KernelContext& run) = 0;
  // Of the run that has begun.
  virtual int64_t element_count() const = 0;
  // Elements [begin, end), at most kListBlock, from any thread. Must not throw.
  virtual void RunElements(const KernelContext& run, int64_t begin, int64_t end) const = 0;
  virtual void End(const KernelContext&) {}
};

// A kernel and its arguments.
struct ListStep {
  ListKernel* kernel = nullptr;
  const KernelContext* context = nullptr;
};

// Runs kernels of as many elements each: all of them on a block before the next one. Each sees what
// those before it have written to its arguments, but for its Begin, which comes before all elements
// of any of them. At most kMaxListSteps.
inline constexpr size_t kMaxListSteps = 8;
void RunInStep(std::span<const ListStep> steps);

}  // namespace skiff
