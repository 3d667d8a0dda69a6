#include "operators/elementwise/kernels/cuda_binary.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "operators/common/cuda_grid.h"
#include "operators/elementwise/kernels/binary.h"

namespace skiff {
namespace {

void CheckFailure(const std::string& type, const char* failure) {
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
  CudaBinaryKernel(const OpContext& context, CudaBinaryLauncher launcher,
                   ThrowBinaryFault throw_fault)
      : type_(context.op().type),
        loops_(context),
        x_(context.InputIndex("X")),
        y_(context.InputIndex("Y")),
        out_(context.OutputIndex("Out")),
        launcher_(launcher),
        throw_fault_(throw_fault) {}

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const Tensor& x = run.input(x_);
    const Tensor& y = run.input(y_);
    const Broadcast broadcast = loops_.Of(x, y);
    if (broadcast.count() == 0) return;
    const int64_t bytes = SizeOf(x.dtype());
    const bool has_vectors = HasVectors(broadcast, bytes);
    CheckFailure(type_,
                 launcher_({.x = x.raw_data(),
                            .y = y.raw_data(),
                            .out = run.output(out_).raw_data(),
                            .loops = LoopsOf(broadcast),
                            .has_vectors = has_vectors,
                            .x_step = static_cast<int>(broadcast.run().x_stride),
                            .y_step = static_cast<int>(broadcast.run().y_stride),
                            .grid = has_vectors ? GridOfVectors(run, broadcast.count(), bytes)
                                                : GridOf(run, broadcast.count()),
                            .fault = run.fault}));
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    if (throw_fault_ != nullptr) throw_fault_(type_.c_str(), fault.position);
    Kernel::ThrowFault(fault);
  }

 private:
  std::string type_;
  RunBroadcast loops_;
  int x_;
  int y_;
  int out_;
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
  CudaBinaryGradKernel(PrepareContext& context, CudaBinaryGradLauncher launcher)
      : type_(context.op().type),
        loops_(context),
        inputs_(FindBinaryGradInputs(context)),
        x_gradient_(context.OutputIndex("X@GRAD")),
        y_gradient_(context.OutputIndex("Y@GRAD")),
        launcher_(launcher) {
    const Broadcast broadcast = loops_.Of(context.Input("Out@GRAD").shape, Layout::Plain());
    const int64_t bytes = std::max(WorkspaceBytes(broadcast, BroadcastOperand::kX),
                                   WorkspaceBytes(broadcast, BroadcastOperand::kY));
    if (bytes > 0) workspace_ = context.RequestWorkspace(bytes);
  }

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const Tensor& dout = run.input(inputs_.dout);
    const Broadcast broadcast = loops_.Of(dout.shape(), Layout::Plain());
    const int64_t bytes = SizeOf(dout.dtype());
    const bool has_vectors = HasVectors(broadcast, bytes);
    const auto data = [&](int input) {
      return input < 0 ? nullptr : std::as_const(run.input(input)).raw_data();
    };
    CudaBinaryGradLaunch launch{.x = data(inputs_.x),
                                .y = data(inputs_.y),
                                .out = data(inputs_.out),
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
    return operand == BroadcastOperand::kX ? x_gradient_ : y_gradient_;
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
  RunGradBroadcast loops_;
  BinaryGradInputs inputs_;
  int x_gradient_;
  int y_gradient_;
  CudaBinaryGradLauncher launcher_;
  int workspace_ = -1;
};

template <typename Prepare>
void AddKernel(OpRegistry& registry, const std::string& type, DType dtype, Prepare prepare) {
  registry.AddKernel(type, {.name = "cuda",
                            .place = PlaceKind::kCuda,
                            .dtype = dtype,
                            .prepare = std::move(prepare),
                            .accepts = {}});
}

}  // namespace

void AddCudaBinaryKernel(OpRegistry& registry, const char* type, DType dtype,
                         CudaBinaryLauncher launcher, ThrowBinaryFault throw_fault) {
  AddKernel(registry, type, dtype, [=](PrepareContext& context) {
    return std::make_unique<CudaBinaryKernel>(context, launcher, throw_fault);
  });
}

void AddCudaBinaryGradKernel(OpRegistry& registry, const char* type, DType dtype,
                             CudaBinaryGradLauncher launcher) {
  AddKernel(registry, std::string(type) + "_grad", dtype, [=](PrepareContext& context) {
    return std::make_unique<CudaBinaryGradKernel>(context, launcher);
  });
}

}  // namespace skiff
