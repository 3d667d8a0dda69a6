#include "framework/op/kernel_choice.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "framework/tensor/layout.h"

namespace skiff {
namespace {

// Below this, scratch memory is small beside any plan in which it could be a burden.
constexpr int64_t kAlwaysModestBytes = int64_t{4} << 20;
// Transformed images and filters take about as much as the tensors that they are made of.
constexpr int64_t kModestShare = 2;
// On a device, Winograd's algorithm keeps all tiles at once, which takes four times the filter and
// 2.25 times the images; a copy of the filter may add to it. It costs VGG-16 36 MB of 138 and
// ResNet-50 34 of 4,266, batch 64; docs/benchmarks.md has what it saves.
constexpr int64_t kModestShareOnDevice = 5;

int64_t BytesOf(std::span<const TensorMeta> metas) {
  int64_t bytes = 0;
  for (const TensorMeta& meta : metas) bytes += StorageBytes(meta.shape, meta.dtype, meta.layout);
  return bytes;
}

bool IsWorthwhile(const KernelDef& kernel, const OpContext& context) {
  return !kernel.is_worthwhile || kernel.is_worthwhile(context);
}

}  // namespace

// Only the factory knows what it requests, so it has to run. The kernel that it makes is dropped.
int64_t ScratchBytes(const KernelDef& kernel, const OpContext& context, MathMode math) {
  PrepareContext prepare(context.op(), context.def(),
                         {context.inputs().begin(), context.inputs().end()},
                         {context.outputs().begin(), context.outputs().end()}, context.place());
  prepare.set_math(math);
  kernel.prepare(prepare);
  int64_t bytes = 0;
  for (const int64_t workspace : prepare.workspace_bytes()) bytes += workspace;
  for (const DerivedForm& form : prepare.derived_forms()) bytes += form.bytes;
  return bytes;
}

int64_t ModestScratchBytes(int64_t argument_bytes, Place place) {
  const int64_t share = place.is_cpu() ? kModestShare : kModestShareOnDevice;
  return share * argument_bytes + kAlwaysModestBytes;
}

int64_t ModestScratchBytes(const OpContext& context) {
  return ModestScratchBytes(BytesOf(context.inputs()) + BytesOf(context.outputs()),
                            context.place());
}

const KernelDef& KernelByRule(const OpRegistry& registry, const OpContext& context, MathMode math) {
  const KernelDef& first = registry.SelectKernel(context);
  std::vector<const KernelDef*> others = registry.AcceptingKernels(context);
  std::erase_if(others,
                [&](const KernelDef* kernel) { return kernel == &first || kernel->is_reference; });
  // Most ops have one kernel besides the reference. For those nothing is prepared in vain.
  if (others.empty()) return first;
  const int64_t modest = ModestScratchBytes(context);
  if (ScratchBytes(first, context, math) <= modest) return first;
  // Stable, so that of equals the one registered first stays first.
  std::ranges::stable_sort(others, std::greater(), [&](const KernelDef* kernel) {
    return std::pair(IsWorthwhile(*kernel, context), kernel->priority);
  });
  for (const KernelDef* kernel : others) {
    if (ScratchBytes(*kernel, context, math) <= modest) return *kernel;
  }
  return first;
}

}  // namespace skiff
