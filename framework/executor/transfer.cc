#include "framework/executor/transfer.h"

#include "framework/base/error.h"

namespace skiff {
namespace {

class Transfer final : public Kernel {
 public:
  explicit Transfer(DeviceLink* link) : link_(*link) {}

  void Run(const KernelContext& run) override {
    const Tensor& from = run.input(0);
    Tensor& to = run.output(0);
    SKIFF_ENFORCE(from.byte_count() == to.byte_count() && from.layout() == to.layout(),
                  kFailedPrecondition, "a copy from ", from.place(), " to ", to.place(), " of ",
                  from.shape(), " to ", to.shape(), ": expected equal bytes");
    // A rank table has one that its kernel has set.
    to.ShareLoD(from.shared_lod());
    if (from.byte_count() == 0) return;
    link_.stream().Copy(to.raw_data(), to.place(), from.raw_data(), from.place(),
                        static_cast<size_t>(from.byte_count()));
    if (from.place().is_cpu() || to.place().is_cpu()) link_.NoteUseOfHost();
  }
  bool TakesFewerRows() const override { return true; }

 private:
  DeviceLink& link_;
};

}  // namespace

std::unique_ptr<Kernel> MakeTransfer(DeviceLink* link) { return std::make_unique<Transfer>(link); }

}  // namespace skiff
