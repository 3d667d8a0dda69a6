#include "framework/executor/device/transfer.h"

#include <optional>

#include "framework/base/error.h"
#include "framework/executor/device/staged_copy.h"

namespace skiff {
namespace {

class Transfer final : public Kernel {
 public:
  Transfer(DeviceLink* link, int64_t staged_bytes) : link_(*link), staged_bytes_(staged_bytes) {}

  // Not before: a plan that is only compared with others takes no memory.
  void Bind(const KernelContext&) override {
    if (staged_bytes_ > 0 && !staged_) staged_.emplace(&link_, staged_bytes_);
  }

  void Run(const KernelContext& run) override {
    const Tensor& from = run.input(0);
    Tensor& to = run.output(0);
    SKIFF_ENFORCE(from.byte_count() == to.byte_count() && from.layout() == to.layout(),
                  kFailedPrecondition, "a copy from ", from.place(), " to ", to.place(), " of ",
                  from.shape(), " to ", to.shape(), ": expected equal bytes");
    // A rank table has one that its kernel has set.
    to.ShareLoD(from.shared_lod());
    if (from.byte_count() == 0) return;
    const auto bytes = static_cast<size_t>(from.byte_count());
    if (staged_) return staged_->Copy(to.raw_data(), from.raw_data(), bytes);
    link_.stream().Copy(to.raw_data(), to.place(), from.raw_data(), from.place(), bytes);
    if (from.place().is_cpu() || to.place().is_cpu()) link_.NoteUseOfHost();
  }
  bool AcceptsFewerRows() const override { return true; }

 private:
  DeviceLink& link_;
  const int64_t staged_bytes_;
  std::optional<StagedCopy> staged_;
};

}  // namespace

std::unique_ptr<Kernel> MakeTransfer(DeviceLink* link, int64_t staged_bytes) {
  return std::make_unique<Transfer>(link, staged_bytes);
}

}  // namespace skiff
