#include "operators/elementwise/kernels/cuda_binary_kernel.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "operators/common/cuda/cuda_grid.h"

namespace skiff {
namespace {

void CheckFailure(std::string_view type, const char* failure) {
  SKIFF_ENFORCE(failure == nullptr, kIo, type, ": launch failed: ", failure);
}

CudaLoops<2> LoopsOf(const Broadcast& broadcast) {
  CudaLoops<2> loops;
  for (const BroadcastDim& dim : broadcast.dims()) {
    loops.Append(dim.size, {dim.x_stride, dim.y_stride});
  }
  return loops;
}

bool HasVectors(const Broadcast& broadcast, int64_t bytes) {
  return broadcast.dims().size() == 1 || broadcast.run().size % VectorSize(bytes) == 0;
}

class CudaBinaryKernel final : public Kernel {
 public:
  CudaBinaryKernel(const OpContext& context, CudaBinaryArguments arguments,
                   CudaBinaryLauncher launcher, ThrowBinaryFault throw_fault)
      : type_(context.op().type),
        arguments_(std::move(arguments)),
        launcher_(launcher),
        throw_fault_(throw_fault) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const Tensor& x = run.input(arguments_.x);
    const Tensor& y = run.input(arguments_.y);
    const Broadcast broadcast = arguments_.loops_of(x, y);
    if (broadcast.count() == 0) return;
    const int64_t bytes = SizeOf(x.dtype());
    const bool has_vectors = HasVectors(broadcast, bytes);
    CheckFailure(type_,
                 launcher_({.x = x.raw_data(),
                            .y = y.raw_data(),
                            .out = run.output(arguments_.out).raw_data(),
                            .loops = LoopsOf(broadcast),
                            .has_vectors = has_vectors,
                            .x_step = static_cast<int>(broadcast.run().x_stride),
                            .y_step = static_cast<int>(broadcast.run().y_stride),
                            .grid = has_vectors ? GridOfVectors(run, broadcast.count(), bytes)
                                                : GridOf(run, broadcast.count()),
                            .fault = run.fault}));
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    if (throw_fault_ != nullptr) throw_fault_(type_, fault.position);
    Kernel::ThrowFault(fault);
  }

 private:
  std::string type_;
  CudaBinaryArguments arguments_;
  CudaBinaryLauncher launcher_;
  ThrowBinaryFault throw_fault_;
};

// Returns the reduction of Out@GRAD to the gradient of an operand.
CudaFoldView SumOf(const Broadcast& broadcast, BroadcastOperand operand) {
  CudaFoldView view;
  for (const BroadcastDim& dim : std::ranges::reverse_view(broadcast.dims())) {
    const int64_t stride = operand == BroadcastOperand::kX ? dim.x_stride : dim.y_stride;
    view.AddOutside(dim.size, stride == 0);
  }
  return view;
}

class CudaBinaryGradKernel final : public Kernel {
 public:
  CudaBinaryGradKernel(PrepareContext& context, CudaBinaryGradArguments arguments,
                       CudaBinaryGradLauncher launcher)
      : type_(context.op().type), arguments_(std::move(arguments)), launcher_(launcher) {
    const Broadcast broadcast = arguments_.loops_of(context.Input("Out@GRAD").shape);
    const int64_t bytes = std::max(WorkspaceBytes(broadcast, BroadcastOperand::kX),
                                   WorkspaceBytes(broadcast, BroadcastOperand::kY));
    if (bytes > 0) workspace_ = context.RequestWorkspace(bytes);
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const BinaryGradInputs& inputs = arguments_.inputs;
    const Tensor& dout = run.input(inputs.dout);
    const Broadcast broadcast = arguments_.loops_of(dout.shape());
    const int64_t bytes = SizeOf(dout.dtype());
    const bool has_vectors = HasVectors(broadcast, bytes);
    const auto data = [&](int input) {
      return input < 0 ? nullptr : std::as_const(run.input(input)).raw_data();
    };
    CudaBinaryGradLaunch launch{.x = data(inputs.x),
                                .y = data(inputs.y),
                                .out = data(inputs.out),
                                .dout = dout.raw_data(),
                                .of_x = GradientOf(run, broadcast, BroadcastOperand::kX),
                                .of_y = GradientOf(run, broadcast, BroadcastOperand::kY),
                                .x_is_repeated = IsRepeated(broadcast, BroadcastOperand::kX),
                                .y_is_repeated = IsRepeated(broadcast, BroadcastOperand::kY),
                                .has_vectors = has_vectors,
                                .x_step = static_cast<int>(broadcast.run().x_stride),
                                .y_step = static_cast<int>(broadcast.run().y_stride),
                                .grid = has_vectors ? GridOfVectors(run, broadcast.count(), bytes)
                                                    : GridOf(run, broadcast.count()),
                                .workspace = workspace_ < 0 ? nullptr : run.workspace(workspace_)};
    if (broadcast.count() > 0) launch.loops = LoopsOf(broadcast);
    CheckFailure(type_, launcher_(launch));
  }

 private:
  static int64_t CountOf(const Broadcast& broadcast, BroadcastOperand operand) {
    return operand == BroadcastOperand::kX ? broadcast.x_count() : broadcast.y_count();
  }

  static bool IsRepeated(const Broadcast& broadcast, BroadcastOperand operand) {
    return CountOf(broadcast, operand) != broadcast.count();
  }

  int Output(BroadcastOperand operand) const {
    return operand == BroadcastOperand::kX ? arguments_.dx : arguments_.dy;
  }

  int64_t WorkspaceBytes(const Broadcast& broadcast, BroadcastOperand operand) const {
    if (Output(operand) < 0 || !IsRepeated(broadcast, operand)) return 0;
    return CudaFoldCut::MostResults(broadcast.count()) * int64_t{sizeof(double)};
  }

  CudaOperandGradient GradientOf(const KernelContext& run, const Broadcast& broadcast,
                                 BroadcastOperand operand) const {
    // Empty: a tensor without elements has no memory, or any.
    if (Output(operand) < 0 || CountOf(broadcast, operand) == 0) return {};
    CudaOperandGradient gradient{.gradient = run.output(Output(operand)).raw_data(),
                                 .is_sum = IsRepeated(broadcast, operand)};
    if (gradient.is_sum) gradient.sum = SumOf(broadcast, operand);
    return gradient;
  }

  std::string type_;
  CudaBinaryGradArguments arguments_;
  CudaBinaryGradLauncher launcher_;
  int workspace_ = -1;
};

}  // namespace

std::unique_ptr<Kernel> MakeCudaBinaryKernel(const OpContext& context,
                                             CudaBinaryArguments arguments,
                                             CudaBinaryLauncher launcher,
                                             ThrowBinaryFault throw_fault) {
  return std::make_unique<CudaBinaryKernel>(context, std::move(arguments), launcher, throw_fault);
}

std::unique_ptr<Kernel> MakeCudaBinaryGradKernel(PrepareContext& context,
                                                 CudaBinaryGradArguments arguments,
                                                 CudaBinaryGradLauncher launcher) {
  return std::make_unique<CudaBinaryGradKernel>(context, std::move(arguments), launcher);
}

}  // namespace skiff
