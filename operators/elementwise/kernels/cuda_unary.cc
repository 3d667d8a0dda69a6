#include "operators/elementwise/kernels/cuda_unary.h"

#include <string>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_grid.h"
#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

struct Arguments {
  int saved = -1;
  int from = -1;
  int to = -1;
};

class CudaUnaryKernel final : public Kernel {
 public:
  CudaUnaryKernel(const OpContext& context, const Arguments& arguments, const CudaUnaryFacts& facts,
                  CudaUnaryLauncher launcher)
      : type_(context.op().type),
        arguments_(arguments),
        numbers_(NumbersOf(context, facts.op)),
        launcher_(launcher),
        throw_fault_(facts.throw_fault) {
    for (int i = 0; i < kMaxUnaryTensors; ++i) {
      tensors_[i] = facts.tensors[i] == nullptr ? -1 : context.InputIndex(facts.tensors[i]);
    }
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const Tensor& from = run.input(arguments_.from);
    const int64_t count = from.element_count();
    if (count == 0) return;
    CudaUnaryLaunch launch{.from = from.raw_data(),
                           .to = run.output(arguments_.to).raw_data(),
                           .count = count,
                           .numbers = numbers_,
                           .grid = GridOfVectors(run, count, SizeOf(from.dtype())),
                           .fault = run.fault};
    if (arguments_.saved >= 0) launch.saved = run.input(arguments_.saved).raw_data();
    for (int i = 0; i < kMaxUnaryTensors; ++i) {
      if (tensors_[i] < 0) continue;
      launch.tensors[i] = run.input(tensors_[i]).raw_data();
      launch.tensor_dtypes[i] = run.input(tensors_[i]).dtype();
    }
    const char* failure = launcher_(launch);
    SKIFF_ENFORCE(failure == nullptr, kIo, type_, ": launch failed: ", failure);
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    if (throw_fault_ != nullptr) throw_fault_(fault);
    Kernel::ThrowFault(fault);
  }

 private:
  std::string type_;
  Arguments arguments_;
  UnaryNumbers numbers_;
  int tensors_[kMaxUnaryTensors] = {};
  CudaUnaryLauncher launcher_;
  void (*throw_fault_)(const DataFault& fault);
};

}  // namespace

void AddCudaUnaryKernel(OpRegistry& registry, const CudaUnaryFacts& facts, DType dtype,
                        CudaUnaryLauncher launcher) {
  registry.AddCudaKernel(facts.op.type, dtype, [=](PrepareContext& context) {
    const Arguments arguments{.from = context.InputIndex("X"), .to = context.OutputIndex("Out")};
    return std::make_unique<CudaUnaryKernel>(context, arguments, facts, launcher);
  });
}

void AddCudaUnaryGradKernel(OpRegistry& registry, const CudaUnaryFacts& facts, DType dtype,
                            CudaUnaryLauncher launcher) {
  registry.AddCudaKernel(StrCat(facts.op.type, "_grad"), dtype, [=](PrepareContext& context) {
    const StaticText reads = facts.op.grad_reads;
    const Arguments arguments{.saved = context.InputIndex(reads.empty() ? "Out@GRAD" : reads),
                              .from = context.InputIndex("Out@GRAD"),
                              .to = context.OutputIndex("X@GRAD")};
    return std::make_unique<CudaUnaryKernel>(context, arguments, facts, launcher);
  });
}

}  // namespace skiff
