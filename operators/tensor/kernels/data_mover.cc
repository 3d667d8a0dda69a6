#include "operators/tensor/kernels/data_mover.h"

#include <atomic>

#include "framework/base/error.h"
#include "operators/tensor/kernels/part_copy.h"

namespace skiff {
namespace {

class HostMover final : public DataMover {
 public:
  void Copy(const KernelContext&, const StridedCopy& box, const void* source,
            void* target) const override {
    box.Run(source, target);
  }
  void Join(const KernelContext&, const AxisParts& parts, void* whole) const override {
    for (const AxisPart& part : parts.parts) {
      PartCopy(parts.whole, parts.axis, part.offset, part.extent, parts.dtype, /*from_part=*/true)
          .Run(part.data, whole);
    }
  }
  void Split(const KernelContext&, const AxisParts& parts, const void* whole) const override {
    for (const AxisPart& part : parts.parts) {
      PartCopy(parts.whole, parts.axis, part.offset, part.extent, parts.dtype, /*from_part=*/false)
          .Extract(whole, part.data);
    }
  }
};

// Registries may be filled by several threads.
constinit std::atomic<const DataMover*> device_mover = nullptr;

}  // namespace

const DataMover& MoverOf(const KernelContext& run) {
  static const HostMover host;
  if (run.device().place.is_cpu()) return host;
  const DataMover* mover = device_mover.load(std::memory_order_acquire);
  SKIFF_ENFORCE(mover != nullptr, kFailedPrecondition, "nothing moves data on ",
                run.device().place);
  return *mover;
}

void SetDeviceMover(const DataMover* mover) {
  device_mover.store(mover, std::memory_order_release);
}

}  // namespace skiff
