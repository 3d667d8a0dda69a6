// A row of the columns is what a tap sees of a channel at all points, so rows are split among
// threads. A sum is made by the thread that has the channel, tap by tap.
#include "operators/nn/convolution/unfolding.h"

#include <algorithm>
#include <memory>
#include <string>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/nn/convolution/window_taps.h"
#include "operators/nn/kernels/window_values.h"

namespace skiff {
namespace {

constexpr VolumeAxes kAxes = VolumeAxes::kImage;

// Sets window and output of a convolution whose input is set.
void SetWindows(const OpContext& context, VolumeConvolution* conv) {
  VolumeWindow& window = conv->window;
  window.kernel = ParseVolumeExtents(context, "kernel_sizes", kAxes);
  window.stride = ParseVolumeExtents(context, "strides", kAxes);
  window.dilation = ParseVolumeExtents(context, "dilations", kAxes);
  const std::vector<int64_t> paddings = context.IntsAttr("paddings");
  SKIFF_ENFORCE(paddings.size() == 4 && AreWindowValues(paddings, 0), kInvalidArgument,
                context.op().type, ": paddings = [", Join(paddings, ", "),
                "], expected [top, left, bottom, right] of 0 or more");
  window.pad_begin = {0, paddings[0], paddings[1]};
  window.pad_end = {0, paddings[2], paddings[3]};
  conv->output = {.batch = conv->input.batch, .channels = 1};
  for (size_t axis = 1; axis < 3; ++axis) {
    conv->output.size[axis] =
        VolumeWindowCount(context, window, axis, conv->input.size[axis], /*round_up=*/false);
  }
}

// Returns the product, -1 if one is unknown.
int64_t KnownProduct(int64_t a, int64_t b) { return a < 0 || b < 0 ? -1 : MultiplyCounts(a, b); }

int64_t PointsOf(const VolumeConvolution& conv) {
  return KnownProduct(conv.output.size[1], conv.output.size[2]);
}

template <typename T>
std::unique_ptr<Kernel> PrepareColumns(PrepareContext& context, const UnfoldingKernel& kernel) {
  const VolumeConvolution conv = kernel.parse(context);
  return MakeRowsKernel([conv, in = StridesOf(conv.input, conv.order),
                         images = In<T>(context, kernel.from),
                         columns = Out<T>(context, kernel.to)](const KernelContext& run) {
    const int64_t taps = conv.window.taps();
    const int64_t points = conv.output.points();
    const int64_t rows = columns.shape(run)[0] * conv.input.channels * taps;
    ParallelFor(rows, GrainOf(points),
                [&, from = images(run), to = columns(run)](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const T* channel = from + row / taps * in.channel;
                    T* line = to + row * points;
                    // The points at which the tap is outside the image keep the 0.
                    std::fill_n(line, points, T{});
                    VisitTap(conv, in, row % taps, 0, points,
                             [=](int64_t at, int64_t seen, int64_t count, int64_t step) {
                               if (step == 1) {
                                 std::copy_n(channel + seen, count, line + at);
                                 return;
                               }
                               for (int64_t i = 0; i < count; ++i)
                                 line[at + i] = channel[seen + i * step];
                             });
                  }
                });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareImages(PrepareContext& context, const UnfoldingKernel& kernel) {
  const VolumeConvolution conv = kernel.parse(context);
  const int64_t pixels = conv.input.points();
  const ThreadScratch<T> sums(context, conv.input.batch * conv.input.channels, /*rows=*/1, pixels);
  return MakeRowsKernel([=, in = StridesOf(conv.input, conv.order),
                         columns = In<T>(context, kernel.from),
                         images = Out<T>(context, kernel.to)](const KernelContext& run) {
    const int64_t taps = conv.window.taps();
    const int64_t points = conv.output.points();
    const int64_t channels = images.shape(run)[0] * conv.input.channels;
    sums.ForEach(run, channels, GrainOf(taps * points),
                 [&, from = columns(run), to = images(run)](int64_t i, const WideRows<T>& wide) {
                   WideType<T>* sum = PlaceOfRow(to, i * pixels, wide[0]);
                   std::fill_n(sum, pixels, WideType<T>{0});
                   for (int64_t tap = 0; tap < taps; ++tap) {
                     const T* line = from + (i * taps + tap) * points;
                     VisitTap(conv, in, tap, 0, points,
                              [=](int64_t at, int64_t seen, int64_t count, int64_t step) {
                                for (int64_t k = 0; k < count; ++k)
                                  sum[seen + k * step] += static_cast<WideType<T>>(line[at + k]);
                              });
                   }
                   WriteRow(sum, pixels, to, i * pixels);
                 });
  });
}

AttrDef RequiredInts(StaticText name, StaticText doc) {
  return {.name = name, .type = AttrType::kInts, .default_value = std::nullopt, .doc = doc};
}

}  // namespace

std::vector<AttrDef> UnfoldingAttrs() {
  return {RequiredInts("kernel_sizes", "Height and width of the window."),
          RequiredInts("strides", "Steps of the window, down and across."),
          RequiredInts("paddings", "Zeros around the image: [top, left, bottom, right]."),
          RequiredInts("dilations", "Steps from tap to tap of the window, down and across.")};
}

VolumeConvolution ParseUnfold(const OpContext& context) {
  VolumeConvolution conv;
  conv.input = VolumeOf(context, "X", context.Input("X").shape, ChannelOrder::kFirst, kAxes);
  SetWindows(context, &conv);
  return conv;
}

VolumeConvolution ParseFold(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(x.rank() == 3, kInvalidArgument, context.op().type, ": X of shape ", x,
                ", expected rank 3, [N, C * taps, points]");
  VolumeConvolution conv;
  conv.input = {.batch = x[0], .channels = x[1]};
  conv.input.size = ParseVolumeExtents(context, "output_sizes", kAxes);
  SetWindows(context, &conv);
  const int64_t taps = conv.window.taps();
  SKIFF_ENFORCE(x[1] < 0 || x[1] % taps == 0, kInvalidArgument, context.op().type, ": X of shape ",
                x, ", expected a multiple of the window's ", taps, " taps as its second dim");
  if (x[1] >= 0) conv.input.channels = x[1] / taps;
  SKIFF_ENFORCE(x[2] < 0 || x[2] == PointsOf(conv), kInvalidArgument, context.op().type,
                ": X of shape ", x, ", expected ", conv.output.size[1], " * ", conv.output.size[2],
                " points as its last dim");
  return conv;
}

Shape ColumnsShape(const VolumeConvolution& conv) {
  return {conv.input.batch, KnownProduct(conv.input.channels, conv.window.taps()), PointsOf(conv)};
}

void AddUnfoldingKernels(OpRegistry& registry, std::string_view type) {
  for (const UnfoldingKernel& kernel : kUnfoldingKernels) {
    if (!kernel.type.starts_with(type)) continue;
    registry.AddCpuKernels<float, double, BFloat16, Float16>(
        kernel.type, [kernel]<typename T>(PrepareContext& context) {
          return kernel.result == UnfoldingResult::kColumns ? PrepareColumns<T>(context, kernel)
                                                            : PrepareImages<T>(context, kernel);
        });
  }
}

}  // namespace skiff
