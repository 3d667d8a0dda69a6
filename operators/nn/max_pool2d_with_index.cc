// max_pool2d_with_index: the maximum of each window of an image, channel by channel, and which
// pixel it is.
//
//   Out[n, c, y, x] = max of X[n, c, i, j] over the window of pool2d at (y, x)
//   Mask[n, c, y, x] = i · W + j of the first pixel of the window, row by row, that has it
//
// The windows are those of pool2d, also with global_pooling and adaptive. A window of padding only
// gives the lowest number and -1. The maximum of a window with a NaN is the first NaN.
//
// Source: Fluid's max_pool2d_with_index (PaddlePaddle 2.6), which ignores NaN.
//
// Gradient: X@GRAD of a pixel is the sum of Out@GRAD over the windows whose Mask names it. A Mask
// that names no pixel of its window, such as -1, names none at all.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/input_checks.h"
#include "operators/nn/pooling/pooling.h"

namespace skiff {
namespace {

constexpr DType kMaskDType = DType::kInt32;

Shape OutShape(const Pooling& pooling) { return ShapeOf(pooling.output, pooling.order); }

void Infer(OpContext& context) {
  const Pooling pooling = ParseIndexedPooling(context);
  WarnOfEmptyWindows(WindowsAlong(pooling, 0), "height");
  WarnOfEmptyWindows(WindowsAlong(pooling, 1), "width");
  const TensorMeta& x = context.Input("X");
  const auto& [height, width] = pooling.input.size;
  SKIFF_ENFORCE(height < 0 || width < 0 || height * width <= std::numeric_limits<int32_t>::max(),
                kInvalidArgument, context.op().type, ": X of shape ", x.shape,
                ", expected images of no more pixels than int32 can count");
  for (const char* slot : {"Out", "Mask"}) context.SetOutputLike(slot, "X");
  context.SetOutput("Out", OutShape(pooling), x.dtype);
  context.SetOutput("Mask", OutShape(pooling), kMaskDType);
}

void InferGrad(OpContext& context) {
  const Shape out = OutShape(ParseIndexedPooling(context));
  CheckInputLike(context, "Mask", out, kMaskDType);
  CheckInputLike(context, "Out@GRAD", out, context.Input("X").dtype);
  context.SetOutputLike("X@GRAD", "X");
}

// The windows of a channel. Each channel is the work of one thread: in the gradient, overlapping
// windows add to the same pixels.
class IndexedWindows {
 public:
  explicit IndexedWindows(const OpContext& context)
      : pooling_(WithSpans(context, ParseIndexedPooling(context))) {
    const auto covered = [](const std::vector<WindowSpan>& spans) {
      int64_t sum = 0;
      for (const WindowSpan& span : spans) sum += span.end - span.begin;
      return sum;
    };
    grain_ = GrainOf(covered(pooling_.rows) * covered(pooling_.columns));
  }

  int64_t channels(const Shape& x) const { return x[0] * pooling_.input.channels; }
  int64_t all_channels() const { return pooling_.input.batch * pooling_.input.channels; }
  int64_t pixels() const { return pooling_.input.size[0] * pooling_.input.size[1]; }
  int64_t windows() const { return pooling_.output.size[0] * pooling_.output.size[1]; }
  int64_t grain() const { return grain_; }

  // Returns the first of the largest pixels of a window, -1 for a window without pixels.
  template <typename T>
  int64_t Largest(const T* channel, const WindowSpan& row, const WindowSpan& column) const {
    using Wide = WideType<T>;
    int64_t place = -1;
    Wide best = 0;
    for (int64_t y = row.begin; y < row.end; ++y) {
      for (int64_t x = column.begin; x < column.end; ++x) {
        const auto value = static_cast<Wide>(channel[y * width() + x]);
        if (place >= 0 && !IsAboveMaximum(value, best)) continue;
        best = value;
        place = y * width() + x;
      }
    }
    return place;
  }

  bool Has(const WindowSpan& row, const WindowSpan& column, int64_t pixel) const {
    const int64_t y = pixel / width();
    const int64_t x = pixel % width();
    return pixel >= 0 && y >= row.begin && y < row.end && x >= column.begin && x < column.end;
  }

  // Calls visit(row, column, window).
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    int64_t window = 0;
    for (const WindowSpan& row : pooling_.rows) {
      for (const WindowSpan& column : pooling_.columns) visit(row, column, window++);
    }
  }

 private:
  int64_t width() const { return pooling_.input.size[1]; }

  Pooling pooling_;
  int64_t grain_ = 1;
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([of = IndexedWindows(context), x = In<T>(context, "X"),
                         out = Out<T>(context, "Out"),
                         mask = Out<int32_t>(context, "Mask")](const KernelContext& run) {
    const T lowest(std::numeric_limits<WideType<T>>::lowest());
    ParallelFor(of.channels(x.shape(run)), of.grain(),
                [&, from = x(run), to = out(run), places = mask(run)](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const T* channel = from + i * of.pixels();
                    const int64_t first = i * of.windows();
                    of.ForEach([&](const WindowSpan& row, const WindowSpan& column, int64_t o) {
                      const int64_t place = of.Largest(channel, row, column);
                      to[first + o] = place < 0 ? lowest : channel[place];
                      places[first + o] = static_cast<int32_t>(place);
                    });
                  }
                });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const IndexedWindows of(context);
  const ThreadScratch<T> sums(context, of.all_channels(), /*rows=*/1, of.pixels());
  return MakeRowsKernel([=, mask = In<int32_t>(context, "Mask"),
                         gradient = In<T>(context, "Out@GRAD"),
                         dx = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    sums.ForEach(run, of.channels(dx.shape(run)), of.grain(),
                 [&, places = mask(run), from = gradient(run), to = dx(run)](
                     int64_t i, const WideRows<T>& wide) {
                   const int64_t first = i * of.windows();
                   WideType<T>* sum = PlaceOfRow(to, i * of.pixels(), wide[0]);
                   std::fill_n(sum, of.pixels(), WideType<T>{0});
                   of.ForEach([&](const WindowSpan& row, const WindowSpan& column, int64_t o) {
                     const int64_t place = places[first + o];
                     if (of.Has(row, column, place))
                       sum[place] += static_cast<WideType<T>>(from[first + o]);
                   });
                   WriteRow(sum, of.pixels(), to, i * of.pixels());
                 });
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "ksize", .type = AttrType::kInts, .doc = "Height and width of the window."},
          IntsAttrDef("strides", {1, 1}, "Steps of the window, for height and width."),
          IntsAttrDef("paddings", {0, 0},
                      "[height, width] or, other than in Fluid, [top, bottom, left, right]."),
          {.name = "global_pooling",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "The window is the whole image; ksize and paddings unused."},
          {.name = "adaptive",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "ksize is the size of the output."}};
}

}  // namespace

void RegisterMaxPool2dWithIndex(OpRegistry& registry) {
  OpDef def = {.type = "max_pool2d_with_index",
               .doc =
                   "Out[n, c, y, x] = the maximum of X[n, c] over the window at y * stride - "
                   "padding, x * stride - padding; Mask = the pixel that has it, row * W + column.",
               .inputs = {{.name = "X", .doc = "Images, [N, C, H, W]."}},
               .outputs = {{.name = "Out", .doc = "Images with as many channels."},
                           {.name = "Mask", .doc = "int32, of Out's shape; -1 for no pixel."}},
               .attrs = Attributes(),
               .infer = Infer};
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Mask", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD of a pixel = the sum of Out@GRAD over the windows whose Mask names it.";
  grad.infer = InferGrad;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, BFloat16, Float16>(
      "max_pool2d_with_index",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double, BFloat16, Float16>(
      "max_pool2d_with_index_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
