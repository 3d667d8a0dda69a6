#include "operators/nn/convolution/convolution_epilogue.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "framework/base/element_count.h"
#include "operators/common/half_arrays.h"
#include "operators/nn/normalization/norm_arguments.h"

namespace skiff {

std::vector<SlotDef> EpilogueSlots() {
  return {{.name = "Scale",
           .doc = "[output channels]; 1 if absent.",
           .dispensable = true,
           .keeps_float32 = true},
          {.name = "Bias",
           .doc = "[output channels]; 0 if absent.",
           .dispensable = true,
           .keeps_float32 = true},
          {.name = "Mean", .doc = "[output channels], the running mean.", .keeps_float32 = true},
          {.name = "Variance",
           .doc = "[output channels], the running variance.",
           .keeps_float32 = true},
          {.name = "Z", .doc = "The addend, like Output; 0 if absent.", .dispensable = true}};
}

std::vector<AttrDef> EpilogueAttrs() {
  return {EpsilonAttr(), ChoiceAttr("act_type", "identity", {"identity", "relu"},
                                    "The activation: identity or relu.")};
}

bool ConvolutionEpilogue::IsIn(const OpContext& context) {
  return context.def().FindInput("Variance") != nullptr;
}

ConvolutionEpilogue::ConvolutionEpilogue(const OpContext& context, const Convolution& conv)
    : channels_(conv.output.channels),
      channel_elements_(conv.group_inputs() * conv.window.kernel[0] * conv.window.kernel[1]),
      filter_(context, "Filter"),
      scale_(context, "Scale"),
      bias_(context, "Bias"),
      mean_(context, "Mean"),
      variance_(context, "Variance"),
      addend_(context, "Z"),
      epsilon_(context.Attr<float>("epsilon")),
      rectifies_(context.Attr<std::string>("act_type") == "relu") {}

std::vector<int> ConvolutionEpilogue::inputs() const {
  std::vector<int> present;
  for (const In<>& input : {filter_, scale_, bias_, mean_, variance_}) {
    if (input.is_there()) present.push_back(input.index());
  }
  return present;
}

template <typename T>
void ConvolutionEpilogue::Lines(const KernelContext& run, T* slope, T* shift) const {
  const T* scale = scale_.as<T>(run);
  const T* bias = bias_.as<T>(run);
  const T* mean = mean_.as<T>(run);
  const T* variance = variance_.as<T>(run);
  // In float64, and rounded once: the factor multiplies every weight, and the mean may be much
  // larger than the deviation.
  for (int64_t c = 0; c < channels_; ++c) {
    const double root = std::sqrt(static_cast<double>(variance[c]) + epsilon_);
    const double factor = (scale == nullptr ? 1.0 : static_cast<double>(scale[c])) / root;
    const double start = bias == nullptr ? 0.0 : static_cast<double>(bias[c]);
    slope[c] = static_cast<T>(factor);
    shift[c] = static_cast<T>(start - static_cast<double>(mean[c]) * factor);
  }
}

template void ConvolutionEpilogue::Lines(const KernelContext&, float*, float*) const;
template void ConvolutionEpilogue::Lines(const KernelContext&, double*, double*) const;

std::vector<float> ConvolutionEpilogue::FoldFilters(const KernelContext& run) const {
  std::vector<float> slope(static_cast<size_t>(channels_));
  std::vector<float> shift(static_cast<size_t>(channels_));
  Lines(run, slope.data(), shift.data());
  std::vector<float> folded(static_cast<size_t>(channels_ * channel_elements_));
  if (IsHalf(filter_.tensor(run).dtype())) {
    HalfArraysOf(filter_.tensor(run).dtype())
        .to_floats(static_cast<const uint16_t*>(filter_(run)), std::ssize(folded), folded.data());
  } else {
    std::copy_n(filter_.as<float>(run), folded.size(), folded.begin());
  }
  for (int64_t c = 0; c < channels_; ++c) {
    float* filter = folded.data() + c * channel_elements_;
    const float factor = slope[static_cast<size_t>(c)];
    for (int64_t i = 0; i < channel_elements_; ++i) filter[i] *= factor;
  }
  return folded;
}

// A derived form, so the plan computes the shifts once and again only when a parameter has changed.
// The closure holds a copy of the epilogue, since the form outlives the kernel's constructor.
int ConvolutionEpilogue::RequestShifts(PrepareContext& context, int64_t block) const {
  const int64_t count = RoundUp(channels_, block);
  return context.RequestDerivedForm(
      {.inputs = inputs(),
       .bytes = ByteCount(count, DType::kFloat32),
       .refresh = [epilogue = *this, count](const KernelContext& run, void* derived) {
         std::vector<float> slope(static_cast<size_t>(epilogue.channels_));
         auto* shifts = static_cast<float*>(derived);
         epilogue.Lines(run, slope.data(), shifts);
         std::fill(shifts + epilogue.channels_, shifts + count, 0.0f);
       }});
}

std::optional<ConvolutionEpilogue> EpilogueOf(const OpContext& context, const Convolution& conv) {
  if (!ConvolutionEpilogue::IsIn(context)) return std::nullopt;
  return ConvolutionEpilogue(context, conv);
}

}  // namespace skiff
