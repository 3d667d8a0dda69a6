// The definitions of two-dimensional convolutions and their "plain" kernels, the reference that the
// others are tested against. Forward is one loop nest per output plane, the gradient of the input
// one per input plane, and the gradient of the filter one sum per tap. So no two threads write the
// same element, and each sum has a fixed order.
#include "operators/nn/convolution/convolution.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/base/str_cat.h"
#include "framework/op/arguments.h"
#include "framework/op/grad.h"
#include "operators/nn/convolution/convolution_epilogue.h"
#include "operators/nn/convolution/convolution_geometry.h"

namespace skiff {
namespace {

std::vector<AttrDef> ConvolutionAttrs() {
  return {
      IntsAttrDef("strides", {1, 1}, "Steps of the window, for height and width."),
      IntsAttrDef("paddings", {0, 0},
                  "Zeros around the input: [height, width] or [top, bottom, left, right]."),
      PaddingAlgorithmAttr(),
      IntsAttrDef("dilations", {1, 1}, "Distance of the filter's taps; 1 under SAME."),
      {.name = "groups",
       .type = AttrType::kInt,
       .default_value = int32_t{1},
       .doc = "Output channel o sees only the input channels of its group."},
      ChannelOrderAttr("data_format"),
  };
}

void InferConvolution(OpContext& context) {
  const Convolution conv = ParseConvolution(context);
  context.SetOutputLike("Output", "Input");
  context.SetOutput("Output", ShapeOf(conv.output, conv.order), context.Input("Input").dtype);
}

// Output = max(0, slope[o] · sum + shift[o] + addend). Absent terms are left out.
template <typename T>
struct PlainEpilogue {
  const T* slope = nullptr;
  const T* shift = nullptr;
  const T* addend = nullptr;  // may be the output
  bool rectifies = false;
};

// The plain kernels visit the taps of a filter one after the other and add a whole row of pixels
// for each. The range of outputs whose input exists is computed per tap, so the innermost loop has
// no condition.
template <typename T>
class PlainConvolution {
 public:
  explicit PlainConvolution(const Convolution& conv)
      : conv_(conv),
        in_(StridesOf(conv.input, conv.order)),
        out_(StridesOf(conv.output, conv.order)) {}

  void Forward(const T* input, const T* filter, const PlainEpilogue<T>& epilogue, T* output) const {
    ParallelFor(conv_.input.batch * conv_.output.channels,
                GrainOf(OutputPixels() * conv_.group_inputs() * Taps()),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    ForwardPlane(i / conv_.output.channels, i % conv_.output.channels, input,
                                 filter, epilogue, output);
                  }
                });
  }

  void BackwardData(const T* output_gradient, const T* filter, T* input_gradient) const {
    // An input without pixels may have any batch. The kernel still runs, as the filter isn't empty.
    if (conv_.input.is_empty()) return;
    ParallelFor(conv_.input.batch * conv_.input.channels,
                GrainOf(OutputPixels() * conv_.group_outputs() * Taps()),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    BackwardDataPlane(i / conv_.input.channels, i % conv_.input.channels,
                                      output_gradient, filter, input_gradient);
                  }
                });
  }

  void BackwardFilter(const T* output_gradient, const T* input, T* filter_gradient) const {
    const int64_t taps = Taps();
    ParallelFor(conv_.filter_elements(), GrainOf(OutputPixels() * conv_.input.batch),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t channel = i / taps % conv_.group_inputs();
                    const int64_t out_channel = i / taps / conv_.group_inputs();
                    filter_gradient[i] = static_cast<T>(
                        TapGradient(out_channel, channel, i % taps, output_gradient, input));
                  }
                });
  }

 private:
  // The outputs for which a tap of the filter is on the input, and the tap's offset there.
  struct Tap {
    IndexRange rows;
    IndexRange columns;
    int64_t row_offset = 0;
    int64_t column_offset = 0;
  };

  int64_t OutputPixels() const { return conv_.output.size[0] * conv_.output.size[1]; }
  int64_t Taps() const { return conv_.window.kernel[0] * conv_.window.kernel[1]; }

  Tap TapAt(int64_t index) const {
    const Window& window = conv_.window;
    Tap tap;
    tap.row_offset = index / window.kernel[1] * window.dilation[0] - window.pad_begin[0];
    tap.column_offset = index % window.kernel[1] * window.dilation[1] - window.pad_begin[1];
    tap.rows =
        ValidOutputs(conv_.output.size[0], conv_.input.size[0], window.stride[0], tap.row_offset);
    tap.columns = ValidOutputs(conv_.output.size[1], conv_.input.size[1], window.stride[1],
                               tap.column_offset);
    return tap;
  }

  // Returns the offset, in a plane of the input, of the pixel that output pixel (row, column) sees
  // through the tap.
  int64_t InputOffset(const Tap& tap, int64_t row, int64_t column) const {
    return (row * conv_.window.stride[0] + tap.row_offset) * in_.size[0] +
           (column * conv_.window.stride[1] + tap.column_offset) * in_.size[1];
  }

  // Calls visit(offset in the plane) for each of its pixels.
  template <typename Visit>
  static void ForEachPixel(const ImageDims& image, const ImageStrides& strides,
                           const Visit& visit) {
    for (int64_t row = 0; row < image.size[0]; ++row) {
      for (int64_t column = 0; column < image.size[1]; ++column)
        visit(row * strides.size[0] + column * strides.size[1]);
    }
  }

  void ForwardPlane(int64_t n, int64_t out_channel, const T* input, const T* filter,
                    const PlainEpilogue<T>& epilogue, T* output) const {
    const int64_t plane_offset = n * out_.batch + out_channel * out_.channel;
    T* plane = output + plane_offset;
    const T* addend = epilogue.addend == nullptr ? nullptr : epilogue.addend + plane_offset;
    const T shift = epilogue.shift == nullptr ? T(0) : epilogue.shift[out_channel];
    const T slope = epilogue.slope == nullptr ? T(1) : epilogue.slope[out_channel];
    // Starts from the epilogue's terms. The output may be the addend, which is read here, before
    // the taps add to the plane.
    ForEachPixel(conv_.output, out_,
                 [&](int64_t i) { plane[i] = addend == nullptr ? shift : shift + addend[i]; });
    const int64_t first = out_channel / conv_.group_outputs() * conv_.group_inputs();
    const T* weights = filter + out_channel * conv_.group_inputs() * Taps();
    for (int64_t c = 0; c < conv_.group_inputs(); ++c) {
      const T* source = input + n * in_.batch + (first + c) * in_.channel;
      for (int64_t t = 0; t < Taps(); ++t)
        // The slope goes into the weights, as in the kernels that fold the filters.
        AddTap(TapAt(t), slope * weights[c * Taps() + t], source, plane);
    }
    if (!epilogue.rectifies) return;
    // The comparison keeps NaN.
    ForEachPixel(conv_.output, out_, [&](int64_t i) { plane[i] = plane[i] < 0 ? T(0) : plane[i]; });
  }

  void AddTap(const Tap& tap, T weight, const T* source, T* plane) const {
    const int64_t step = conv_.window.stride[1] * in_.size[1];
    for (int64_t row = tap.rows.begin; row < tap.rows.end; ++row) {
      const T* from = source + InputOffset(tap, row, tap.columns.begin);
      T* to = plane + row * out_.size[0] + tap.columns.begin * out_.size[1];
      for (int64_t i = 0; i < tap.columns.end - tap.columns.begin; ++i)
        to[i * out_.size[1]] += weight * from[i * step];
    }
  }

  void BackwardDataPlane(int64_t n, int64_t channel, const T* output_gradient, const T* filter,
                         T* input_gradient) const {
    T* plane = input_gradient + n * in_.batch + channel * in_.channel;
    ForEachPixel(conv_.input, in_, [plane](int64_t i) { plane[i] = 0; });
    const int64_t first = channel / conv_.group_inputs() * conv_.group_outputs();
    for (int64_t o = first; o < first + conv_.group_outputs(); ++o) {
      const T* source = output_gradient + n * out_.batch + o * out_.channel;
      const T* weights =
          filter + (o * conv_.group_inputs() + channel % conv_.group_inputs()) * Taps();
      for (int64_t t = 0; t < Taps(); ++t) SpreadTap(TapAt(t), weights[t], source, plane);
    }
  }

  void SpreadTap(const Tap& tap, T weight, const T* source, T* plane) const {
    const int64_t step = conv_.window.stride[1] * in_.size[1];
    for (int64_t row = tap.rows.begin; row < tap.rows.end; ++row) {
      const T* from = source + row * out_.size[0] + tap.columns.begin * out_.size[1];
      T* to = plane + InputOffset(tap, row, tap.columns.begin);
      for (int64_t i = 0; i < tap.columns.end - tap.columns.begin; ++i)
        to[i * step] += weight * from[i * out_.size[1]];
    }
  }

  // Returns the gradient of one tap. Sums in float64: batch × pixels may be millions of terms.
  double TapGradient(int64_t out_channel, int64_t channel, int64_t t, const T* output_gradient,
                     const T* input) const {
    const int64_t first = out_channel / conv_.group_outputs() * conv_.group_inputs();
    const int64_t step = conv_.window.stride[1] * in_.size[1];
    const Tap tap = TapAt(t);
    double sum = 0;
    // The batch of empty images may have any size.
    if (tap.rows.begin >= tap.rows.end || tap.columns.begin >= tap.columns.end) return sum;
    for (int64_t n = 0; n < conv_.input.batch; ++n) {
      const T* left = output_gradient + n * out_.batch + out_channel * out_.channel;
      const T* right = input + n * in_.batch + (first + channel) * in_.channel;
      for (int64_t row = tap.rows.begin; row < tap.rows.end; ++row) {
        const T* gradients = left + row * out_.size[0] + tap.columns.begin * out_.size[1];
        const T* pixels = right + InputOffset(tap, row, tap.columns.begin);
        for (int64_t i = 0; i < tap.columns.end - tap.columns.begin; ++i)
          sum += static_cast<double>(gradients[i * out_.size[1]]) * pixels[i * step];
      }
    }
    return sum;
  }

  Convolution conv_;
  ImageStrides in_;
  ImageStrides out_;
};

template <typename T>
std::unique_ptr<Kernel> PreparePlainForward(PrepareContext& context, const Convolution& conv) {
  const In<T> input(context, "Input");
  const In<T> filter(context, "Filter");
  const Out<T> output(context, "Output");
  const PlainConvolution<T> loops(conv);
  const std::optional<ConvolutionEpilogue> fused = EpilogueOf(context, conv);
  const int lines =
      fused ? context.RequestWorkspace(ByteCount(2 * conv.output.channels, kDTypeOf<T>)) : -1;
  return MakeKernel([=](const KernelContext& run) {
    PlainEpilogue<T> epilogue;
    if (fused) {
      T* slope = static_cast<T*>(run.workspace(lines));
      T* shift = slope + fused->channels();
      fused->Lines(run, slope, shift);
      epilogue = {slope, shift, fused->addend().template as<T>(run), fused->rectifies()};
    }
    loops.Forward(input(run), filter(run), epilogue, output(run));
  });
}

double Flop(const OpContext& context) { return ParseConvolution(context).flop(); }

}  // namespace

OpDef ConvolutionDef(StaticText type, StaticText doc) {
  OpDef def;
  def.type = type;
  def.doc = doc;
  def.inputs = {
      {.name = "Input", .doc = "Images, [N, C, H, W] or [N, H, W, C] (data_format)."},
      {.name = "Filter", .doc = "[output channels, C / groups, height, width] in either format."}};
  def.outputs = {{.name = "Output", .doc = "Images with as many channels as there are filters."}};
  def.attrs = ConvolutionAttrs();
  def.infer = InferConvolution;
  def.precision = Precision::kLow;
  def.flop = Flop;
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"Input", "Output"};
  return def;
}

OpDef ConvolutionGradDef(OpDef* forward) {
  OpDef def =
      GradientOf(forward, {"Input", "Filter", "Output@GRAD"}, {"Input@GRAD", "Filter@GRAD"});
  def.doc =
      StrCat("The gradients of ", forward->type,
             ": Input@GRAD is the transposed convolution of Output@GRAD with Filter, Filter@GRAD "
             "the correlation of Input with Output@GRAD.");
  def.flop = GradFlop(Flop, {"Input@GRAD", "Filter@GRAD"});
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"Input", "Output@GRAD", "Input@GRAD"};
  return def;
}

void AddConvolutionKernels(OpRegistry& registry, std::string_view type, KernelDef candidate,
                           KernelFactory forward, KernelFactory backward) {
  candidate.prepare = std::move(forward);
  registry.AddKernel(type, candidate);
  if (registry.Find(StrCat(type, "_grad")) == nullptr) return;
  candidate.prepare = std::move(backward);
  registry.AddKernel(StrCat(type, "_grad"), std::move(candidate));
}

void AddPlainConvolution(OpRegistry& registry, std::string_view type) {
  registry.AddCpuKernels<float, double>(type, []<typename T>(PrepareContext& context) {
    return PreparePlainForward<T>(context, ParseConvolution(context));
  });
  if (registry.Find(StrCat(type, "_grad")) == nullptr) return;
  registry.AddCpuKernels<float, double>(
      StrCat(type, "_grad"), []<typename T>(PrepareContext& context) {
        const In<T> input(context, "Input");
        const In<T> filter(context, "Filter");
        const In<T> output_gradient(context, "Output@GRAD");
        const Out<T> input_gradient(context, "Input@GRAD");
        const Out<T> filter_gradient(context, "Filter@GRAD");
        const PlainConvolution<T> loops(ParseConvolution(context));
        return MakeKernel([=](const KernelContext& run) {
          if (input_gradient.is_there()) {
            loops.BackwardData(output_gradient(run), filter(run), input_gradient(run));
          }
          if (filter_gradient.is_there()) {
            loops.BackwardFilter(output_gradient(run), input(run), filter_gradient(run));
          }
        });
      });
}

}  // namespace skiff
