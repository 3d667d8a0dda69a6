// Convolution by Winograd's minimal filtering: float32 or bfloat16, 3x3, stride 1, images blocked
// by as many channels as a vector has lanes, the filter plain. winograd.h has the formulas,
// winograd_passes.h how the work is cut; this file connects them to the op.
//
// The largest error, as a share of the largest value, is 2e-6 (F(4x4, 3x3)) or 6e-7 (F(2x2, 3x3));
// docs/convolution.md lists it by shape. The option CompileOptions::kernels {"conv2d", "onednn"}
// (and {"conv2d_grad", "onednn"}) turns it off.
#include <omp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/arguments.h"
#include "framework/op/kernel.h"
#include "operators/nn/convolution/convolution.h"
#include "operators/nn/convolution/convolution_epilogue.h"
#include "operators/nn/convolution/convolution_geometry.h"
#include "operators/nn/convolution/winograd_passes.h"

namespace skiff {
namespace {

// A correlation with its workspace and, if they are worth keeping, its transformed filters as a
// derived form. If they aren't but there is an epilogue, the form holds the folded filters, plain.
template <typename T>
class Correlation {
 public:
  Correlation(PrepareContext& context, const Convolution& conv, bool gradient_of_input)
      : correlation_(conv, gradient_of_input,
                     WinogradTileSide(gradient_of_input ? conv.input.size : conv.output.size),
                     omp_get_max_threads()),
        filter_(context, "Filter"),
        workspace_(context.RequestWorkspace(correlation_.workspace_bytes())) {
    epilogue_ = EpilogueOf(context, conv);
    if (epilogue_) shifts_ = epilogue_->RequestShifts(context, WinogradLanes());
    keeps_transformed_ = correlation_.derived_bytes() > 0;
    if (!keeps_transformed_ && !epilogue_) return;
    filters_ = context.RequestDerivedForm(
        {.inputs = epilogue_ ? epilogue_->inputs() : std::vector<int>{filter_.index()},
         .bytes = keeps_transformed_ ? correlation_.derived_bytes()
                                     : ByteCount(conv.filter_elements(), DType::kFloat32),
         .refresh = [correlation = correlation_, filter = filter_, epilogue = epilogue_,
                     transforms = keeps_transformed_](const KernelContext& run, void* derived) {
           auto* to = static_cast<float*>(derived);
           if (!epilogue) return correlation.TransformAllFilters(filter(run), to);
           if constexpr (std::is_same_v<T, float>) {
             const std::vector<float> folded = epilogue->FoldFilters(run);
             if (transforms) return correlation.TransformAllFilters(folded.data(), to);
             std::ranges::copy(folded, to);
           }
         }});
  }

  void Run(const KernelContext& run, const T* images, T* outputs) const {
    const auto* kept = filters_ < 0 ? nullptr : static_cast<const float*>(run.derived(filters_));
    const T* plain = filter_(run);
    if constexpr (std::is_same_v<T, float>) {
      if (epilogue_ && !keeps_transformed_) plain = kept;
    }
    PixelEpilogue epilogue;
    if (epilogue_) {
      epilogue = {.shift = static_cast<const float*>(run.derived(shifts_)),
                  .addend = epilogue_->addend().as<float>(run),
                  .rectifies = epilogue_->rectifies()};
    }
    correlation_.Run(images, plain, keeps_transformed_ ? kept : nullptr,
                     static_cast<float*>(run.workspace(workspace_)), epilogue, outputs);
  }

 private:
  WinogradCorrelation<T> correlation_;
  In<T> filter_;
  int workspace_;
  std::optional<ConvolutionEpilogue> epilogue_;  // of float32
  bool keeps_transformed_ = false;
  int filters_ = -1;  // derived: transformed, or only folded
  int shifts_ = -1;   // derived, of the epilogue
};

template <typename T>
std::unique_ptr<Kernel> PrepareForward(PrepareContext& context) {
  return MakeKernel(
      [input = In<T>(context, "Input"), output = Out<T>(context, "Output"),
       correlation = Correlation<T>(context, ParseConvolution(context), false)](
          const KernelContext& run) { correlation.Run(run, input(run), output(run)); });
}

template <typename T>
class FilterGradient {
 public:
  FilterGradient(PrepareContext& context, const Convolution& conv)
      : input_(context, "Input"),
        output_gradient_(context, "Output@GRAD"),
        filter_gradient_(context, "Filter@GRAD"),
        gradient_(conv, WinogradTileSide(conv.output.size), omp_get_max_threads()),
        workspace_(context.RequestWorkspace(gradient_.workspace_bytes())) {}

  void Run(const KernelContext& run) const {
    gradient_.Run(input_(run), output_gradient_(run),
                  static_cast<float*>(run.workspace(workspace_)), filter_gradient_(run));
  }

 private:
  In<T> input_;
  In<T> output_gradient_;
  Out<T> filter_gradient_;
  WinogradFilterGradient<T> gradient_;
  int workspace_;
};

template <typename T>
std::unique_ptr<Kernel> PrepareBackward(PrepareContext& context) {
  const Convolution conv = ParseConvolution(context);
  const In<T> output_gradient(context, "Output@GRAD");
  const Out<T> input_gradient(context, "Input@GRAD");
  std::optional<Correlation<T>> to_input;
  std::optional<FilterGradient<T>> to_filter;
  if (input_gradient.is_there()) to_input.emplace(context, conv, true);
  if (context.HasOutput("Filter@GRAD")) to_filter.emplace(context, conv);
  return MakeKernel([=, to_input = std::move(to_input),
                     to_filter = std::move(to_filter)](const KernelContext& run) {
    if (to_input) to_input->Run(run, output_gradient(run), input_gradient(run));
    if (to_filter) to_filter->Run(run);
  });
}

// With fewer channels than lanes, the direct convolution is faster, since it can put pixels into
// lanes. So it is with few tiles, which each transformed filter is shared by.
bool IsWorthwhile(const OpContext& context) {
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

// An epilogue needs folded filters, which only float32 has.
bool AcceptsBFloat16(const OpContext& context) {
  return !ConvolutionEpilogue::IsIn(context) && Accepts(context);
}

}  // namespace

void AddWinogradConvolution(OpRegistry& registry, std::string_view type) {
  AddConvolutionKernels(
      registry, type,
      {.name = "winograd", .accepts = Accepts, .is_worthwhile = IsWorthwhile, .priority = 20},
      PrepareForward<float>, PrepareBackward<float>);
  AddConvolutionKernels(registry, type,
                        {.name = "winograd",
                         .dtype = DType::kBFloat16,
                         .accepts = AcceptsBFloat16,
                         .is_worthwhile = IsWorthwhile,
                         .priority = 20},
                        PrepareForward<BFloat16>, PrepareBackward<BFloat16>);
}

}  // namespace skiff
