// Convolution as a matrix product of gathered columns: float32, one group, images blocked by as
// many channels as a vector has lanes, the filter plain. For what Winograd's filtering doesn't
// take: windows of 1x1, and strides. No result depends on the number of threads.
#include <omp.h>

#include <memory>
#include <optional>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/kernel.h"
#include "operators/nn/convolution_epilogue_shared.h"
#include "operators/nn/convolution_shared.h"
#include "operators/nn/gemm_convolution_shared.h"
#include "operators/nn/norm_arguments_shared.h"
#include "operators/nn/tile_product_shared.h"

namespace skiff {
namespace {

// Beyond it, the pixels of a gradient fall into too many phases.
constexpr int64_t kMaxStride = 4;

// A correlation with its workspace and its packed filters.
class Correlation {
 public:
  Correlation(PrepareContext& context, const Convolution& conv, bool gradient_of_input)
      : epilogue_(EpilogueOf(context, conv)),
        correlation_(conv, gradient_of_input, epilogue_.has_value(), omp_get_max_threads()),
        workspace_(context.RequestWorkspace(correlation_.workspace_bytes())) {
    const int filter = context.InputIndex("Filter");
    filters_ = context.RequestDerivedForm(
        {.inputs = epilogue_ ? epilogue_->inputs() : std::vector<int>{filter},
         .bytes = correlation_.packed_bytes(),
         .refresh = [correlation = correlation_, filter, epilogue = epilogue_](
                        const KernelContext& run, void* derived) {
           std::vector<float> folded;
           if (epilogue) folded = epilogue->FoldFilters(run);
           correlation.PackFilters(epilogue ? folded.data() : run.input(filter).data<float>(),
                                   static_cast<float*>(derived));
         }});
    if (epilogue_) shifts_ = epilogue_->RequestShifts(context, FloatLanes());
  }

  void Run(const KernelContext& run, const Tensor& images, Tensor& outputs) const {
    PixelEpilogue epilogue;
    if (epilogue_) {
      epilogue = {.shift = static_cast<const float*>(run.derived(shifts_)),
                  .addend = InputData<float>(run, epilogue_->addend()),
                  .rectifies = epilogue_->rectifies()};
    }
    correlation_.Run(images.data<float>(), static_cast<const float*>(run.derived(filters_)),
                     epilogue, static_cast<float*>(run.workspace(workspace_)),
                     outputs.data<float>());
  }

 private:
  std::optional<ConvolutionEpilogue> epilogue_;
  GemmCorrelation correlation_;
  int workspace_;
  int filters_ = -1;  // derived
  int shifts_ = -1;   // derived, of the epilogue
};

class ForwardKernel final : public Kernel {
 public:
  explicit ForwardKernel(PrepareContext& context)
      : input_(context.InputIndex("Input")),
        output_(context.OutputIndex("Output")),
        correlation_(context, ParseConvolution(context), false) {}

  void Run(const KernelContext& run) override {
    correlation_.Run(run, run.input(input_), run.output(output_));
  }

 private:
  int input_;
  int output_;
  Correlation correlation_;
};

class FilterGradient {
 public:
  FilterGradient(PrepareContext& context, const Convolution& conv)
      : input_(context.InputIndex("Input")),
        output_gradient_(context.InputIndex("Output@GRAD")),
        filter_gradient_(context.OutputIndex("Filter@GRAD")),
        gradient_(conv, omp_get_max_threads()),
        workspace_(context.RequestWorkspace(gradient_.workspace_bytes())) {}

  void Run(const KernelContext& run) const {
    gradient_.Run(run.input(input_).data<float>(), run.input(output_gradient_).data<float>(),
                  static_cast<float*>(run.workspace(workspace_)),
                  run.output(filter_gradient_).data<float>());
  }

 private:
  int input_;
  int output_gradient_;
  int filter_gradient_;
  GemmFilterGradient gradient_;
  int workspace_;
};

class BackwardKernel final : public Kernel {
 public:
  explicit BackwardKernel(PrepareContext& context)
      : output_gradient_(context.InputIndex("Output@GRAD")),
        input_gradient_(context.OutputIndex("Input@GRAD")) {
    const Convolution conv = ParseConvolution(context);
    if (input_gradient_ >= 0) input_.emplace(context, conv, true);
    if (context.HasOutput("Filter@GRAD")) filter_.emplace(context, conv);
  }

  void Run(const KernelContext& run) override {
    if (input_) input_->Run(run, run.input(output_gradient_), run.output(input_gradient_));
    if (filter_) filter_->Run(run);
  }

 private:
  int output_gradient_;
  int input_gradient_;
  std::optional<Correlation> input_;
  std::optional<FilterGradient> filter_;
};

// Below a vector of channels the direct convolution, which can put pixels into lanes, is faster.
bool Pays(const OpContext& context) {
  const Convolution conv = ParseConvolution(context);
  return conv.input.channels >= FloatLanes() && conv.output.channels >= FloatLanes();
}

bool Accepts(const OpContext& context) {
  const Convolution conv = ParseConvolution(context);
  const Window& window = conv.window;
  if (conv.groups != 1 || window.kernel[0] > kMaxGemmTaps || window.kernel[1] > kMaxGemmTaps)
    return false;
  return window.kernel[0] * window.kernel[1] <= kMaxGemmTaps && window.stride[0] <= kMaxStride &&
         window.stride[1] <= kMaxStride && IsBlockedByLanes(context, conv, FloatLanes());
}

}  // namespace

void AddGemmConvolution(OpRegistry& registry, const std::string& type) {
  AddConvolutionKernels<ForwardKernel, BackwardKernel>(
      registry, type, {.name = "gemm", .accepts = Accepts, .pays = Pays, .priority = 15});
}

}  // namespace skiff
