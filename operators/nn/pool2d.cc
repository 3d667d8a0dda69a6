// pool2d: the maximum or the average of each window of an image, channel by channel.
//
//   Out[n, c, y, x] = max (or mean) of X[n, c, i, j] over y · s - p <= i < y · s - p + k, and j
//   likewise, as far as (i, j) is a pixel of X
//
// The mean divides by the number of pixels on X (exclusive) or by the window's size, where the
// window ends at the size of X plus the padding before it. Adaptive: ksize is the output's size,
// and window y covers [floor(y · H / ksize), ceil((y + 1) · H / ksize)). A window of padding only
// gives the lowest number (max) or 0 (avg). The maximum of a window with a NaN is NaN. In the
// gradient of the maximum, the first of equal pixels, row by row, takes all; if there are NaNs, the
// first NaN.
//
// There are three kernels: "plain" for everything, "vector" for blocked images, and "onednn" where
// its windows and its maximum mean the same as Fluid's.
//
// Source: Fluid's pool2d (PaddlePaddle 2.6).
#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/input_checks.h"
#include "operators/nn/kernels/scratched_call.h"
#include "operators/nn/pooling/pooling.h"

namespace skiff {
namespace {

std::vector<AttrDef> PoolingAttrs() {
  const auto flag = [](StaticText name, bool default_value, StaticText doc) {
    return AttrDef{
        .name = name, .type = AttrType::kBool, .default_value = default_value, .doc = doc};
  };
  return {
      {.name = "pooling_type",
       .type = AttrType::kString,
       .default_value = std::string(),
       .doc = "max or avg."},
      {.name = "ksize", .type = AttrType::kInts, .doc = "Height and width of the window."},
      IntsAttrDef("strides", {1, 1}, "Steps of the window, for height and width."),
      IntsAttrDef("paddings", {0, 0}, "[height, width] or [top, bottom, left, right]."),
      PaddingAlgorithmAttr(),
      flag(
          "ceil_mode", false,
          "Keep a last window that extends beyond the padded input. It may have no pixel: then its "
          "maximum is the lowest number (-3.4e38 in float32) and its average 0, as in Fluid."),
      flag("exclusive", true, "Averages leave the padding out."),
      flag("global_pooling", false, "The window is the whole image; ksize and paddings unused."),
      flag("adaptive", false, "ksize is the size of the output."),
      ChannelOrderAttr("data_format"),
  };
}

OpDef Pool2dDef() {
  OpDef def;
  def.type = "pool2d";
  def.doc =
      "Out[n, c, y, x] = the maximum or average of X[n, c] over the window at y * stride - "
      "padding, x * stride - padding.";
  def.inputs = {{.name = "X", .doc = "Images, [N, C, H, W] or [N, H, W, C] (data_format)."}};
  def.outputs = {{.name = "Out", .doc = "Images with as many channels."}};
  def.attrs = PoolingAttrs();
  def.infer = [](OpContext& context) {
    const Pooling pooling = ParsePoolingExtents(context);
    WarnOfEmptyWindows(WindowsAlong(pooling, 0), "height");
    WarnOfEmptyWindows(WindowsAlong(pooling, 1), "width");
    context.SetOutputLike("Out", "X");
    context.SetOutput("Out", ShapeOf(pooling.output, pooling.order), context.Input("X").dtype);
  };
  def.precision = Precision::kFollow;
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"X", "Out"};
  return def;
}

OpDef Pool2dGradDef(OpDef* forward) {
  OpDef def = GradientOf(forward, {"X", "Out", "Out@GRAD"}, {"X@GRAD"});
  def.doc =
      "X@GRAD of a pixel: the sum over its windows of Out@GRAD if the pixel is the window's first "
      "maximum, or of Out@GRAD divided by the window's size.";
  def.infer = [](OpContext& context) {
    const Pooling pooling = ParsePoolingExtents(context);
    const Shape expected = ShapeOf(pooling.output, pooling.order);
    for (const char* slot : {"Out", "Out@GRAD"}) {
      CheckInputLike(context, slot, expected, context.Input("X").dtype);
    }
    context.SetOutputLike("X@GRAD", "X");
  };
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"X", "Out", "Out@GRAD", "X@GRAD"};
  return def;
}

// The number of pixels that the windows of one plane read.
int64_t WindowWork(const Pooling& pooling) {
  int64_t work = 0;
  for (const WindowSpan& row : pooling.rows) work += row.end - row.begin;
  int64_t columns = 0;
  for (const WindowSpan& column : pooling.columns) columns += column.end - column.begin;
  return work * columns;
}

// Direct loops with any strides. Each plane of a channel is the work of one thread: in the
// gradient, overlapping windows add to the same pixels. Half gets the bits of float32, rounded.
template <typename T>
class PlainPooling {
  using Wide = WideType<T>;

 public:
  explicit PlainPooling(Pooling pooling)
      : pooling_(std::move(pooling)),
        in_(StridesOf(pooling_.input, pooling_.order)),
        out_(StridesOf(pooling_.output, pooling_.order)),
        grain_(GrainOf(WindowWork(pooling_))) {}

  int64_t planes() const { return pooling_.input.batch * pooling_.input.channels; }
  // The pixels of a plane of the input.
  int64_t pixels() const { return pooling_.input.size[0] * pooling_.input.size[1]; }

  void Forward(const T* input, T* output) const {
    ParallelFor(planes(), grain_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* plane = input + Offset(i, in_);
        T* pooled = output + Offset(i, out_);
        ForEachOutput([&](const WindowSpan& row, const WindowSpan& column, int64_t offset) {
          pooled[offset] = static_cast<T>(pooling_.is_max ? Maximum(plane, row, column)
                                                          : Average(plane, row, column));
        });
      }
    });
  }

  // `sums` has a row of pixels() numbers for each thread, for half.
  void Backward(const KernelContext& run, const ThreadScratch<T>& sums, const T* input,
                const T* output, const T* output_gradient, T* input_gradient) const {
    sums.ForEach(run, planes(), grain_, [&](int64_t i, const WideRows<T>& wide) {
      const T* plane = input + Offset(i, in_);
      T* gradient = input_gradient + Offset(i, in_);
      const Gradient gradients{PlaceOfRow(gradient, 0, wide[0]),
                               kIsHalf<T> ? pooling_.input.size[1] : in_.size[0],
                               kIsHalf<T> ? 1 : in_.size[1]};
      ForEachPixel([&](int64_t y, int64_t x) { gradients.At(y, x) = 0; });
      ForEachOutput([&](const WindowSpan& row, const WindowSpan& column, int64_t offset) {
        const int64_t at = Offset(i, out_) + offset;
        const auto given = static_cast<Wide>(output_gradient[at]);
        if (pooling_.is_max) {
          GiveToMaximum(plane, static_cast<Wide>(output[at]), row, column, given, gradients);
        } else {
          Spread(row, column, given, gradients);
        }
      });
      if constexpr (kIsHalf<T>) {
        ForEachPixel(
            [&](int64_t y, int64_t x) { gradient[At(y, x)] = static_cast<T>(gradients.At(y, x)); });
      }
    });
  }

 private:
  // The gradient of a plane of the input.
  struct Gradient {
    Wide& At(int64_t row, int64_t column) const {
      return data[row * row_stride + column * column_stride];
    }
    Wide* data;
    int64_t row_stride;
    int64_t column_stride;
  };

  int64_t At(int64_t row, int64_t column) const { return row * in_.size[0] + column * in_.size[1]; }

  // Returns where plane i begins.
  int64_t Offset(int64_t i, const ImageStrides& strides) const {
    const int64_t channels = pooling_.input.channels;
    return i / channels * strides.batch + i % channels * strides.channel;
  }

  template <typename Visit>
  void ForEachPixel(const Visit& visit) const {
    for (int64_t y = 0; y < pooling_.input.size[0]; ++y) {
      for (int64_t x = 0; x < pooling_.input.size[1]; ++x) visit(y, x);
    }
  }

  template <typename Visit>
  void ForEachOutput(const Visit& visit) const {
    for (size_t y = 0; y < pooling_.rows.size(); ++y) {
      for (size_t x = 0; x < pooling_.columns.size(); ++x) {
        visit(pooling_.rows[y], pooling_.columns[x],
              static_cast<int64_t>(y) * out_.size[0] + static_cast<int64_t>(x) * out_.size[1]);
      }
    }
  }

  Wide Maximum(const T* plane, const WindowSpan& row, const WindowSpan& column) const {
    const bool is_empty = row.begin >= row.end || column.begin >= column.end;
    // Fluid's start value. A window with pixels starts at -infinity instead, so that a window of
    // nothing but -infinity gives -infinity.
    if (is_empty) return std::numeric_limits<Wide>::lowest();
    Wide best = -std::numeric_limits<Wide>::infinity();
    for (int64_t y = row.begin; y < row.end; ++y) {
      for (int64_t x = column.begin; x < column.end; ++x) {
        best = MaxOrNan(best, static_cast<Wide>(plane[At(y, x)]));
      }
    }
    return best;
  }

  // Sums in float64: the window of a global average may have thousands of pixels.
  Wide Average(const T* plane, const WindowSpan& row, const WindowSpan& column) const {
    double sum = 0;
    for (int64_t y = row.begin; y < row.end; ++y) {
      for (int64_t x = column.begin; x < column.end; ++x) sum += static_cast<Wide>(plane[At(y, x)]);
    }
    const int64_t divisor = pooling_.Divisor(row, column);
    return divisor == 0 ? Wide{0} : static_cast<Wide>(sum / static_cast<double>(divisor));
  }

  void GiveToMaximum(const T* plane, Wide best, const WindowSpan& row, const WindowSpan& column,
                     Wide gradient, const Gradient& plane_gradient) const {
    for (int64_t y = row.begin; y < row.end; ++y) {
      for (int64_t x = column.begin; x < column.end; ++x) {
        if (!IsMaximum(static_cast<Wide>(plane[At(y, x)]), best)) continue;
        plane_gradient.At(y, x) += gradient;
        return;
      }
    }
  }

  void Spread(const WindowSpan& row, const WindowSpan& column, Wide gradient,
              const Gradient& plane_gradient) const {
    // A window of padding only has a divisor of 0, and no pixel to spread to.
    const Wide share =
        gradient / static_cast<Wide>(std::max<int64_t>(pooling_.Divisor(row, column), 1));
    for (int64_t y = row.begin; y < row.end; ++y) {
      for (int64_t x = column.begin; x < column.end; ++x) plane_gradient.At(y, x) += share;
    }
  }

  Pooling pooling_;
  ImageStrides in_;
  ImageStrides out_;
  int64_t grain_;
};

template <typename T>
std::unique_ptr<Kernel> PreparePlain(PrepareContext& context) {
  return MakeKernel([loops = PlainPooling<T>(ParsePooling(context)), x = In<T>(context, "X"),
                     out = Out<T>(context, "Out")](const KernelContext& run) {
    loops.Forward(x(run), out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PreparePlainGrad(PrepareContext& context) {
  PlainPooling<T> loops(ParsePooling(context));
  const ThreadScratch<T> sums(context, loops.planes(), /*rows=*/1, loops.pixels());
  return MakeKernel([=, loops = std::move(loops), x = In<T>(context, "X"),
                     out = In<T>(context, "Out"), out_gradient = In<T>(context, "Out@GRAD"),
                     x_gradient = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    if (!x_gradient.is_there()) return;
    loops.Backward(run, sums, x(run), out(run), out_gradient(run), x_gradient(run));
  });
}

// The layout that all images of the op share; nullopt if they differ.
std::optional<Layout> CommonLayout(const OpContext& context) {
  const Layout layout = context.Input("X").layout;
  const auto same = [layout](const TensorMeta& meta) { return meta.layout == layout; };
  const bool all = std::all_of(context.inputs().begin(), context.inputs().end(), same) &&
                   std::all_of(context.outputs().begin(), context.outputs().end(), same);
  return all ? std::optional(layout) : std::nullopt;
}

bool IsBlockOf8Or16(Layout layout) {
  return layout.channel_block == 8 || layout.channel_block == 16;
}

// ---- "vector": images blocked by 8 or 16. A vector holds channels of one pixel.

bool VectorAccepts(const OpContext& context) {
  const Pooling pooling = ParsePooling(context);
  const auto layout = CommonLayout(context);
  return layout && IsBlockOf8Or16(*layout) && pooling.order == ChannelOrder::kFirst &&
         // The loops start at a window's first pixel, so every window must have one.
         !pooling.has_empty_window();
}

// Planes [H, W, block] in a blocked batch.
struct BlockedPlanes {
  explicit BlockedPlanes(const OpContext& context)
      : pooling(ParsePooling(context)),
        block(context.Input("X").layout.channel_block),
        count(pooling.input.batch * (RoundUp(pooling.input.channels, block) / block)),
        input_size(pooling.input.size[0] * pooling.input.size[1] * block),
        output_size(pooling.output.size[0] * pooling.output.size[1] * block),
        grain(GrainOf(WindowWork(pooling))) {}

  Pooling pooling;
  int64_t block;
  int64_t count;
  int64_t input_size;
  int64_t output_size;
  int64_t grain;
};

template <typename T>
std::unique_ptr<Kernel> PrepareVector(PrepareContext& context) {
  return MakeKernel([planes = BlockedPlanes(context), x = In<T>(context, "X"),
                     out = Out<T>(context, "Out")](const KernelContext& run) {
    const auto pool = std::get<BlockedPoolingLoops<T>>(BlockedPooling()).forward;
    ParallelFor(planes.count, planes.grain,
                [&, input = x(run), output = out(run)](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    pool(planes.pooling, planes.block, input + i * planes.input_size,
                         output + i * planes.output_size);
                  }
                });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareVectorGrad(PrepareContext& context) {
  BlockedPlanes planes(context);
  const ThreadScratch<T> sums(context, planes.count, /*rows=*/1, planes.input_size);
  return MakeKernel([=, planes = std::move(planes), x = In<T>(context, "X"),
                     out = In<T>(context, "Out"), out_gradient = In<T>(context, "Out@GRAD"),
                     x_gradient = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    if (!x_gradient.is_there()) return;
    const auto pool = std::get<BlockedPoolingLoops<T>>(BlockedPooling()).backward;
    sums.ForEach(run, planes.count, planes.grain,
                 [&, input = x(run), output = out(run), output_gradient = out_gradient(run),
                  input_gradient = x_gradient(run)](int64_t i, const WideRows<T>& wide) {
                   const int64_t at = i * planes.input_size;
                   float* sum = PlaceOfRow(input_gradient, at, wide[0]);
                   pool(planes.pooling, planes.block, input + at, output + i * planes.output_size,
                        output_gradient + i * planes.output_size, sum);
                   WriteRow(sum, planes.input_size, input_gradient, at);
                 });
  });
}

// ---- "onednn": for windows that oneDNN defines as Fluid does.

// With ceil_mode, the last window may extend beyond the padded input. oneDNN checks the sizes, so
// that excess must count as padding.
OnednnWindow PaddedForOnednn(const Pooling& pooling) {
  Window window = pooling.window;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t reach = (pooling.output.size[axis] - 1) * window.stride[axis] +
                          window.kernel[axis] - pooling.input.size[axis] - window.pad_begin[axis];
    window.pad_end[axis] = std::max(window.pad_end[axis], reach);
  }
  return window.ForOnednn();
}

// Whether every window's divisor is the full kernel size. Including padding, oneDNN always divides
// by that; Fluid cuts windows off at the size of X plus the padding before it.
bool DividesByWholeWindows(const Pooling& pooling) {
  const auto whole = [](const std::vector<WindowSpan>& spans, int64_t kernel) {
    return std::all_of(spans.begin(), spans.end(),
                       [kernel](const WindowSpan& span) { return span.extent == kernel; });
  };
  return whole(pooling.rows, pooling.window.kernel[0]) &&
         whole(pooling.columns, pooling.window.kernel[1]);
}

// oneDNN visits every pixel of a window, whether it is on the image or not. A window a million
// times as large as the image would take a million times as long; the plain kernel visits the image
// only.
constexpr int64_t kMostOnPadding = 4;

bool OnednnAccepts(const OpContext& context) {
  const Pooling pooling = ParsePooling(context);
  const bool is_gradient = context.def().FindInput("Out@GRAD") != nullptr;
  // Only the workspace of oneDNN's forward pass knows which pixel was the maximum.
  if (is_gradient && (pooling.is_max || !context.HasOutput("X@GRAD"))) return false;
  if (pooling.adaptive || pooling.input.is_empty() || pooling.has_empty_window()) return false;
  const auto layout = CommonLayout(context);
  if (!layout || !(layout->is_plain() || IsBlockOf8Or16(*layout))) return false;
  if (!layout->is_plain()) {
    // The vector kernel takes global sums, and maxima too, since it needn't search the image for
    // NaN first.
    const bool is_global = pooling.output.size == Extents{1, 1};
    if (is_global || pooling.is_max || pooling.order != ChannelOrder::kFirst) return false;
  }
  const OnednnWindow window = PaddedForOnednn(pooling);
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t kernel = window.kernel[axis];
    if (kernel > kMostOnPadding * std::max<int64_t>(pooling.input.size[axis], 4)) return false;
    if (window.padding_begin[axis] >= kernel || window.padding_end[axis] >= kernel) return false;
  }
  return pooling.is_max || pooling.exclusive || DividesByWholeWindows(pooling);
}

dnnl::algorithm AlgorithmOf(const Pooling& pooling) {
  if (pooling.is_max) return dnnl::algorithm::pooling_max;
  return pooling.exclusive ? dnnl::algorithm::pooling_avg_exclude_padding
                           : dnnl::algorithm::pooling_avg_include_padding;
}

// Returns whether an element is NaN or minus infinity. On most instruction sets oneDNN's maximum
// ignores a NaN, and it returns the lowest finite number where all pixels are minus infinity.
bool HoldsNanOrMinusInfinity(const float* values, int64_t count) {
  constexpr int64_t kGrain = int64_t{1} << 15;
  std::atomic<bool> found = false;
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    // Without a branch, the compiler vectorizes the loop. The negated comparison is true for NaN
    // too.
    int32_t any = 0;
    for (int64_t i = begin; i < end; ++i) {
      any |= static_cast<int32_t>(!(values[i] > -std::numeric_limits<float>::infinity()));
    }
    if (any != 0) found = true;
  });
  return found;
}

std::unique_ptr<Kernel> PrepareOnednn(PrepareContext& context) {
  const Pooling pooling = ParsePooling(context);
  const Layout layout = context.Input("X").layout;
  const auto input = OnednnImage(pooling.input.Nchw(), layout, pooling.order);
  const auto output = OnednnImage(pooling.output.Nchw(), layout, pooling.order);
  const auto chosen = OnednnPoolingForward(dnnl::prop_kind::forward_inference, AlgorithmOf(pooling),
                                           input, output, PaddedForOnednn(pooling));
  auto call = ScratchedCall::Make<dnnl::pooling_forward>(context, chosen);
  call.AddArgument(DNNL_ARG_SRC, input);
  call.AddArgument(DNNL_ARG_DST, output);
  return MakeKernel([call, loops = PlainPooling<float>(pooling), is_max = pooling.is_max,
                     x = In<float>(context, "X"),
                     out = Out<float>(context, "Out")](const KernelContext& run) mutable {
    if (is_max && HoldsNanOrMinusInfinity(x(run), x.count(run))) {
      return loops.Forward(x(run), out(run));
    }
    call.SetData(DNNL_ARG_SRC, x(run));
    call.SetData(DNNL_ARG_DST, out(run));
    call.Run(run);
  });
}

std::unique_ptr<Kernel> PrepareOnednnGrad(PrepareContext& context) {
  const Pooling pooling = ParsePooling(context);
  const Layout layout = context.Input("X").layout;
  const auto input = OnednnImage(pooling.input.Nchw(), layout, pooling.order);
  const auto output = OnednnImage(pooling.output.Nchw(), layout, pooling.order);
  const auto chosen =
      OnednnPoolingBackward(AlgorithmOf(pooling), input, output, PaddedForOnednn(pooling));
  auto call = ScratchedCall::Make<dnnl::pooling_backward>(context, chosen);
  call.AddArgument(DNNL_ARG_DIFF_DST, output);
  call.AddArgument(DNNL_ARG_DIFF_SRC, input);
  return MakeKernel([call, out_gradient = In<>(context, "Out@GRAD"),
                     x_gradient = Out<>(context, "X@GRAD")](const KernelContext& run) mutable {
    call.SetData(DNNL_ARG_DIFF_DST, out_gradient(run));
    call.SetData(DNNL_ARG_DIFF_SRC, x_gradient(run));
    call.Run(run);
  });
}

// Half runs the kernel that float32 runs, so that it gets the bits of float32, rounded. What oneDNN
// takes is widened: it adds up averages in an order of its own, and on a plain image it is several
// times as fast as the plain kernel.
template <typename T>
void AddHalfKernels(OpRegistry& registry) {
  const auto add = [&](std::string_view type, KernelFactory plain, KernelFactory vector) {
    registry.AddKernel(type, {.dtype = kDTypeOf<T>,
                              .prepare = std::move(plain),
                              .accepts = [](const OpContext& context) {
                                return AllPlain(context) && !OnednnAccepts(context);
                              }});
    registry.AddKernel(type, {.name = "vector",
                              .dtype = kDTypeOf<T>,
                              .prepare = std::move(vector),
                              .accepts =
                                  [](const OpContext& context) {
                                    return VectorAccepts(context) && !OnednnAccepts(context);
                                  },
                              .priority = 5});
  };
  add("pool2d", PreparePlain<T>, PrepareVector<T>);
  add("pool2d_grad", PreparePlainGrad<T>, PrepareVectorGrad<T>);
}

}  // namespace

void RegisterPool2d(OpRegistry& registry) {
  OpDef def = Pool2dDef();
  registry.Add(Pool2dGradDef(&def));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "pool2d", []<typename T>(PrepareContext& context) { return PreparePlain<T>(context); });
  registry.AddCpuKernels<float, double>("pool2d_grad", []<typename T>(PrepareContext& context) {
    return PreparePlainGrad<T>(context);
  });
  AddHalfKernels<Float16>(registry);
  AddHalfKernels<BFloat16>(registry);
  registry.AddKernel("pool2d", {.name = "vector",
                                .dtype = DType::kFloat32,
                                .prepare = PrepareVector<float>,
                                .accepts = VectorAccepts,
                                .priority = 5});
  registry.AddKernel("pool2d_grad", {.name = "vector",
                                     .dtype = DType::kFloat32,
                                     .prepare = PrepareVectorGrad<float>,
                                     .accepts = VectorAccepts,
                                     .priority = 5});
  registry.AddKernel("pool2d", {.name = "onednn",
                                .dtype = DType::kFloat32,
                                .prepare = PrepareOnednn,
                                .accepts = OnednnAccepts,
                                .priority = 10});
  registry.AddKernel("pool2d_grad", {.name = "onednn",
                                     .dtype = DType::kFloat32,
                                     .prepare = PrepareOnednnGrad,
                                     .accepts = OnednnAccepts,
                                     .priority = 10});
}

}  // namespace skiff
