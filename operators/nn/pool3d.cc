// pool3d: the maximum or the average of each window of a volume, channel by channel.
//
//   Out[n, c, p] = max (or mean) of X[n, c, q] over p · s - padding <= q < p · s - padding + k
//   along each axis, as far as q is a point of X
//
// The mean divides by the number of points on X (exclusive) or by the window's size, where the
// window ends at the size of X plus the padding before it. Adaptive: ksize is the output's size,
// and window p covers [floor(p · size / ksize), ceil((p + 1) · size / ksize)). A window of padding
// only gives the lowest number (max) or 0 (avg). The maximum of a window with a NaN is NaN. In the
// gradient of the maximum, the first of equal points, in row-major order, takes all; if there are
// NaNs, the first NaN.
//
// Source: Fluid's pool3d (PaddlePaddle 2.6).
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/nn/pooling/volume_pooling.h"

namespace skiff {
namespace {

constexpr VolumeAxes kAxes = VolumeAxes::kVolume;

void Infer(OpContext& context) {
  const VolumePooling pooling = ParseVolumePooling(context);
  for (size_t axis = 0; axis < 3; ++axis) {
    WarnOfEmptyWindows(WindowsAlong(pooling, axis), kVolumeAxisNames[axis]);
  }
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", ShapeOf(pooling.output, pooling.order, kAxes), context.Input("X").dtype);
}

void InferGrad(OpContext& context) {
  const VolumePooling pooling = ParseVolumePooling(context);
  const Shape expected = ShapeOf(pooling.output, pooling.order, kAxes);
  for (const char* slot : {"Out", "Out@GRAD"}) {
    CheckInputLike(context, slot, expected, context.Input("X").dtype);
  }
  context.SetOutputLike("X@GRAD", "X");
}

// Direct loops with any strides. Each channel of a volume is the work of one thread: in the
// gradient, overlapping windows add to the same points.
template <typename T>
class PoolingLoops {
 public:
  explicit PoolingLoops(const OpContext& context)
      : pooling_(ParseVolumePooling(context)),
        in_(StridesOf(pooling_.input, pooling_.order)),
        out_(StridesOf(pooling_.output, pooling_.order)) {
    int64_t work = 1;
    for (size_t axis = 0; axis < 3; ++axis) {
      spans_[axis] = WindowSpans(context, WindowsAlong(pooling_, axis));
      int64_t covered = 0;
      for (const WindowSpan& span : spans_[axis]) covered += span.end - span.begin;
      work *= covered;
    }
    grain_ = GrainOf(work);
  }

  void Forward(const T* input, T* output) const {
    ForEachChannel([&](int64_t in_offset, int64_t out_offset) {
      ForEachWindow([&](const Window3& window, int64_t offset) {
        output[out_offset + offset] = pooling_.is_max ? Maximum(input + in_offset, window)
                                                      : Average(input + in_offset, window);
      });
    });
  }

  void Backward(const T* input, const T* output, const T* output_gradient,
                T* input_gradient) const {
    ForEachChannel([&](int64_t in_offset, int64_t out_offset) {
      T* channel = input_gradient + in_offset;
      Clear(channel);
      ForEachWindow([&](const Window3& window, int64_t offset) {
        const T gradient = output_gradient[out_offset + offset];
        if (pooling_.is_max) {
          const int64_t place = PlaceOf(input + in_offset, output[out_offset + offset], window);
          if (place >= 0) channel[place] += gradient;
        } else {
          Spread(window, gradient, channel);
        }
      });
    });
  }

 private:
  // The spans along depth, height and width.
  using Window3 = std::array<WindowSpan, 3>;

  template <typename Visit>
  void ForEachChannel(const Visit& visit) const {
    const int64_t channels = pooling_.input.channels;
    ParallelFor(pooling_.input.batch * channels, grain_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / channels;
        const int64_t c = i % channels;
        visit(n * in_.batch + c * in_.channel, n * out_.batch + c * out_.channel);
      }
    });
  }

  template <typename Visit>
  void ForEachWindow(const Visit& visit) const {
    const auto& [depth, height, width] = spans_;
    for (size_t z = 0; z < depth.size(); ++z) {
      for (size_t y = 0; y < height.size(); ++y) {
        for (size_t x = 0; x < width.size(); ++x) {
          visit({depth[z], height[y], width[x]}, static_cast<int64_t>(z) * out_.size[0] +
                                                     static_cast<int64_t>(y) * out_.size[1] +
                                                     static_cast<int64_t>(x) * out_.size[2]);
        }
      }
    }
  }

  // Calls visit(offset) for the points of a window.
  template <typename Visit>
  void ForEachPoint(const Window3& window, const Visit& visit) const {
    for (int64_t z = window[0].begin; z < window[0].end; ++z) {
      for (int64_t y = window[1].begin; y < window[1].end; ++y) {
        const int64_t row = z * in_.size[0] + y * in_.size[1];
        for (int64_t x = window[2].begin; x < window[2].end; ++x) visit(row + x * in_.size[2]);
      }
    }
  }

  int64_t Divisor(const Window3& window) const {
    int64_t divisor = 1;
    for (const WindowSpan& span : window) {
      divisor *= pooling_.exclusive ? span.end - span.begin : span.extent;
    }
    return divisor;
  }

  T Maximum(const T* channel, const Window3& window) const {
    const bool is_empty =
        std::ranges::any_of(window, [](const WindowSpan& span) { return span.begin >= span.end; });
    // Fluid's start value. A window with points starts at -infinity instead, so that a window of
    // nothing but -infinity gives -infinity.
    if (is_empty) return std::numeric_limits<T>::lowest();
    T best = -std::numeric_limits<T>::infinity();
    ForEachPoint(window, [&](int64_t at) { best = MaxOrNan(best, channel[at]); });
    return best;
  }

  T Average(const T* channel, const Window3& window) const {
    double sum = 0;
    ForEachPoint(window, [&](int64_t at) { sum += static_cast<double>(channel[at]); });
    const int64_t divisor = Divisor(window);
    return divisor == 0 ? T{0} : static_cast<T>(sum / static_cast<double>(divisor));
  }

  // Returns the offset of a window's first maximum, or -1 if the window is empty.
  int64_t PlaceOf(const T* channel, T maximum, const Window3& window) const {
    int64_t place = -1;
    ForEachPoint(window, [&](int64_t at) {
      if (place < 0 && IsMaximum(channel[at], maximum)) place = at;
    });
    return place;
  }

  void Spread(const Window3& window, T gradient, T* channel) const {
    const T share = gradient / static_cast<T>(std::max<int64_t>(Divisor(window), 1));
    ForEachPoint(window, [&](int64_t at) { channel[at] += share; });
  }

  void Clear(T* channel) const {
    const VolumeExtents& size = pooling_.input.size;
    ForEachPoint(
        {WindowSpan{.end = size[0]}, WindowSpan{.end = size[1]}, WindowSpan{.end = size[2]}},
        [&](int64_t at) { channel[at] = 0; });
  }

  VolumePooling pooling_;
  // What the windows cover along each axis.
  std::array<std::vector<WindowSpan>, 3> spans_;
  VolumeStrides in_;
  VolumeStrides out_;
  int64_t grain_ = 1;
};

std::vector<AttrDef> Attributes() {
  const auto flag = [](StaticText name, bool default_value, StaticText doc) {
    return AttrDef{
        .name = name, .type = AttrType::kBool, .default_value = default_value, .doc = doc};
  };
  return {
      {.name = "pooling_type",
       .type = AttrType::kString,
       .default_value = std::string(),
       .doc = "max or avg."},
      {.name = "ksize", .type = AttrType::kInts, .doc = "Depth, height and width of the window."},
      IntsAttrDef("strides", {1, 1, 1}, "Steps of the window, for depth, height and width."),
      IntsAttrDef("paddings", {0, 0, 0}, "One value per axis, or two, before and after."),
      PaddingAlgorithmAttr(),
      flag(
          "ceil_mode", false,
          "Keep a last window that extends beyond the padded input. It may have no pixel: then its "
          "maximum is the lowest number (-3.4e38 in float32) and its average 0, as in Fluid."),
      flag("exclusive", true, "Averages leave the padding out."),
      flag("global_pooling", false, "The window is the whole volume; ksize and paddings unused."),
      flag("adaptive", false, "ksize is the size of the output."),
      VolumeOrderAttr("data_format", kAxes)};
}

}  // namespace

void RegisterPool3d(OpRegistry& registry) {
  OpDef def = {.type = "pool3d",
               .doc =
                   "Out[n, c, p] = the maximum or average of X[n, c] over the window at p * "
                   "stride - padding. Fluid's pool3d.",
               .inputs = {{.name = "X", .doc = "Volumes, [N, C, D, H, W] or [N, D, H, W, C]."}},
               .outputs = {{.name = "Out", .doc = "Volumes with as many channels."}},
               .attrs = Attributes(),
               .infer = Infer};
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {"X", "Out", "Out@GRAD"}, {"X@GRAD"});
  grad.doc =
      "X@GRAD of a point: the sum over its windows of Out@GRAD if the point is a window's first "
      "maximum, or of Out@GRAD divided by the window's size.";
  grad.infer = InferGrad;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>("pool3d", []<typename T>(PrepareContext& context) {
    return MakeKernel([loops = PoolingLoops<T>(context), x = In<T>(context, "X"),
                       out = Out<T>(context, "Out")](const KernelContext& run) {
      loops.Forward(x(run), out(run));
    });
  });
  registry.AddCpuKernels<float, double>("pool3d_grad", []<typename T>(PrepareContext& context) {
    return MakeKernel([loops = PoolingLoops<T>(context), x = In<T>(context, "X"),
                       out = In<T>(context, "Out"), gradient = In<T>(context, "Out@GRAD"),
                       dx = Out<T>(context, "X@GRAD")](const KernelContext& run) {
      loops.Backward(x(run), out(run), gradient(run), dx(run));
    });
  });
}

}  // namespace skiff
