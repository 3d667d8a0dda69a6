// Convolution by Winograd's minimal filtering: float32, 3x3, stride 1, images blocked by as many
// channels as a vector has lanes, the filter plain. winograd.h has the formulas, winograd_passes.h
// how the work is cut; this file connects them to the op.
//
// The largest error, as a share of the largest value, is 2e-6 (F(4x4, 3x3)) or 6e-7 (F(2x2, 3x3));
// docs/convolution.md lists it by shape. The option CompileOptions::kernels {"conv2d", "onednn"}
// (and {"conv2d_grad", "onednn"}) turns it off.
#include <omp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/kernel.h"
#include "operators/nn/kernels/convolution.h"
#include "operators/nn/kernels/convolution_epilogue.h"
#include "operators/nn/kernels/norm_arguments.h"
#include "operators/nn/kernels/winograd_passes.h"

namespace skiff {
namespace {

// A correlation with its workspace and, if they are worth keeping, its transformed filters as a
// derived form. If they aren't but there is an epilogue, the form holds the folded filters, plain.
class Correlation {
 public:
  Correlation(PrepareContext& context, const Convolution& conv, bool gradient_of_input)
      : correlation_(conv, gradient_of_input,
                     WinogradTileSide(gradient_of_input ? conv.input.size : conv.output.size),
                     omp_get_max_threads()),
        filter_(context.InputIndex("Filter")),
        workspace_(context.RequestWorkspace(correlation_.workspace_bytes())) {
    epilogue_ = EpilogueOf(context, conv);
    if (epilogue_) shifts_ = epilogue_->RequestShifts(context, WinogradLanes());
    keeps_transformed_ = correlation_.derived_bytes() > 0;
    if (!keeps_transformed_ && !epilogue_) return;
    filters_ = context.RequestDerivedForm(
        {.inputs = epilogue_ ? epilogue_->inputs() : std::vector<int>{filter_},
         .bytes = keeps_transformed_ ? correlation_.derived_bytes()
                                     : ByteCount(conv.filter_elements(), DType::kFloat32),
         .refresh = [correlation = correlation_, filter = filter_, epilogue = epilogue_,
                     transforms = keeps_transformed_](const KernelContext& run, void* derived) {
           std::vector<float> folded;
           if (epilogue) folded = epilogue->FoldFilters(run);
           const float* filters = epilogue ? folded.data() : run.input(filter).data<float>();
           auto* to = static_cast<float*>(derived);
           if (transforms) {
             correlation.TransformAllFilters(filters, to);
           } else {
             std::ranges::copy(folded, to);
           }
         }});
  }

  void Run(const KernelContext& run, const Tensor& images, Tensor& outputs) const {
    const auto* kept = filters_ < 0 ? nullptr : static_cast<const float*>(run.derived(filters_));
    const float* plain = run.input(filter_).data<float>();
    if (epilogue_ && !keeps_transformed_) plain = kept;
    PixelEpilogue epilogue;
    if (epilogue_) {
      epilogue = {.shift = static_cast<const float*>(run.derived(shifts_)),
                  .addend = InputData<float>(run, epilogue_->addend()),
                  .rectifies = epilogue_->rectifies()};
    }
    correlation_.Run(images.data<float>(), plain, keeps_transformed_ ? kept : nullptr,
                     static_cast<float*>(run.workspace(workspace_)), epilogue,
                     outputs.data<float>());
  }

 private:
  WinogradCorrelation correlation_;
  int filter_;
  int workspace_;
  std::optional<ConvolutionEpilogue> epilogue_;
  bool keeps_transformed_ = false;
  int filters_ = -1;  // derived: transformed, or only folded
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
        gradient_(conv, WinogradTileSide(conv.output.size), omp_get_max_threads()),
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
  WinogradFilterGradient gradient_;
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

// With fewer channels than lanes, the direct convolution is faster, since it can put pixels into
// lanes. So it is with few tiles, which each transformed filter is shared by.
bool Pays(const OpContext& context) {
  const Convolution conv = ParseConvolution(context);
  const int64_t lanes = WinogradLanes();
  const int64_t tiles =
      conv.input.batch * ((conv.output.size[0] + 3) / 4) * ((conv.output.size[1] + 3) / 4);
  return conv.input.channels >= lanes && conv.output.channels >= lanes && tiles >= 16;
}

// Whether all images of the op, or of its gradient op, are blocked by the lanes of a vector, and
// its filters are plain.
bool IsBlockedByLanes(const OpContext& context, const Convolution& conv) {
  const int64_t lanes = WinogradLanes();
  const auto is_blocked = [&](const TensorMeta& image) {
    return image.layout.channel_block == lanes;
  };
  if (lanes < 8 || conv.is_empty() || conv.order != ChannelOrder::kFirst ||
      !context.Input("Filter").layout.is_plain() || !is_blocked(context.Input("Input"))) {
    return false;
  }
  if (context.def().FindInput("Output@GRAD") == nullptr) {
    const bool adds = ConvolutionEpilogue::IsIn(context) && context.HasInput("Z");
    return is_blocked(context.Output("Output")) && (!adds || is_blocked(context.Input("Z")));
  }
  return is_blocked(context.Input("Output@GRAD")) &&
         (!context.HasOutput("Filter@GRAD") || context.Output("Filter@GRAD").layout.is_plain()) &&
         (!context.HasOutput("Input@GRAD") || is_blocked(context.Output("Input@GRAD")));
}

bool Accepts(const OpContext& context) {
  const Convolution conv = ParseConvolution(context);
  return IsWinogradConvolution(conv) && IsBlockedByLanes(context, conv);
}

}  // namespace

void AddWinogradConvolution(OpRegistry& registry, std::string_view type) {
  AddConvolutionKernels<ForwardKernel, BackwardKernel>(
      registry, type, {.name = "winograd", .accepts = Accepts, .pays = Pays, .priority = 20});
}

}  // namespace skiff
