// pad2d: adds a border of paddings = [top, bottom, left, right] pixels to images.
//
//   constant: the border is pad_value
//   edge:     a border pixel is the nearest pixel of the image
//   reflect:  the image is mirrored at its first and last row and column, which are not repeated
//
// Source: Fluid 1.x's pad2d (PaddlePaddle 2.6 still defines the op, but has no kernel for it). A
// border of `reflect` must be smaller than the image, and `edge` needs a pixel to repeat. Gradient:
// each pixel of X@GRAD is the sum of Out@GRAD over its copies.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/padding.h"

namespace skiff {
namespace {

struct Padding {
  int64_t top = 0;
  int64_t bottom = 0;
  int64_t left = 0;
  int64_t right = 0;
};

Padding PaddingOf(const OpContext& context) {
  const std::vector<int64_t> given = context.IntsAttr("paddings");
  const bool fits = given.size() == 4 && *std::min_element(given.begin(), given.end()) >= 0;
  SKIFF_ENFORCE(fits, kInvalidArgument, context.op().type, ": paddings = [", Join(given, ", "),
                "], expected [top, bottom, left, right], none negative");
  CheckBorderWidths(given, context.op().type);
  return {given[0], given[1], given[2], given[3]};
}

// Returns the axis of the rows. That of the columns is the next one.
int RowAxis(const OpContext& context) {
  return context.Attr<std::string>("data_format") == "NHWC" ? 1 : 2;
}

void CheckReach(const OpContext& context, int64_t extent, int64_t before, int64_t after) {
  const std::string& mode = context.Attr<std::string>("mode");
  if (mode == "constant" || extent < 0) return;
  const bool has_border = before > 0 || after > 0;
  SKIFF_ENFORCE(!has_border || extent > 0, kInvalidArgument, context.op().type, ": mode ", mode,
                " has no pixel to repeat in an image of extent 0");
  SKIFF_ENFORCE(mode != "reflect" || !has_border || std::max(before, after) < extent,
                kInvalidArgument, context.op().type, ": borders of ", before, " and ", after,
                " are too wide to reflect an image of extent ", extent);
}

Borders BordersOf(const OpContext& context, const Shape& x) {
  const std::string& op = context.op().type;
  SKIFF_ENFORCE(x.rank() == 4, kInvalidArgument, op, ": X has shape ", x, ", expected 4 dims");
  const Padding padding = PaddingOf(context);
  const int row = RowAxis(context);
  CheckReach(context, x[row], padding.top, padding.bottom);
  CheckReach(context, x[row + 1], padding.left, padding.right);
  Borders borders(8, 0);
  auto border = borders.begin() + 2 * row;
  for (const int64_t width : {padding.top, padding.bottom, padding.left, padding.right}) {
    *border++ = width;
  }
  return borders;
}

Shape OutOf(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  if (context.Knows("paddings")) return PaddedShape(x, BordersOf(context, x));
  SKIFF_ENFORCE(x.rank() == 4, kInvalidArgument, context.op().type, ": X has shape ", x,
                ", expected 4 dims");
  Shape out = x;
  out[RowAxis(context)] = out[RowAxis(context) + 1] = -1;
  return out;
}

// Returns, for each position along an axis of Out, the position in X that it shows.
std::vector<int64_t> SourcePlaces(bool reflect, int64_t extent, int64_t before, int64_t after) {
  std::vector<int64_t> places;
  for (int64_t at = -before; at < extent + after; ++at) {
    // Borders are smaller than the image (CheckReach), so one reflection suffices.
    const int64_t mirrored = std::min(std::abs(at), 2 * (extent - 1) - std::abs(at));
    places.push_back(reflect ? mirrored : std::clamp<int64_t>(at, 0, extent - 1));
  }
  return places;
}

// Pads images [outer, height, width, inner] with copies of their pixels. With channels first, a
// plane is an image with inner = 1.
class CopyPad {
 public:
  CopyPad(const OpContext& context, const Shape& x) {
    const int row = RowAxis(context);
    const Padding padding = PaddingOf(context);
    const bool reflect = context.Attr<std::string>("mode") == "reflect";
    outer_ = x.element_count(0, row);
    height_ = x[row];
    width_ = x[row + 1];
    inner_ = x.element_count(row + 2, 4);
    left_ = padding.left;
    rows_ = SourcePlaces(reflect, height_, padding.top, padding.bottom);
    columns_ = SourcePlaces(reflect, width_, padding.left, padding.right);
  }

  template <typename T>
  void Run(const T* x, T* out) const {
    const int64_t out_height = static_cast<int64_t>(rows_.size());
    const int64_t line = OutLine();
    ParallelFor(outer_ * out_height, Grain(line), [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / out_height;
        const int64_t source = rows_[static_cast<size_t>(i % out_height)];
        const T* from = x + (image * height_ + source) * width_ * inner_;
        T* to = out + i * line;
        std::copy_n(from, width_ * inner_, to + left_ * inner_);
        ForBorderColumns([=, this](int64_t column, int64_t shown) {
          std::copy_n(from + shown * inner_, inner_, to + column * inner_);
        });
      }
    });
  }

  template <typename T>
  void RunGrad(const T* out_grad, T* x_grad) const {
    const int64_t out_height = static_cast<int64_t>(rows_.size());
    const int64_t line = OutLine();
    const int64_t image_elements = height_ * width_ * inner_;
    // An image is the work of one thread: several rows of Out@GRAD add to one row of X@GRAD.
    ParallelFor(outer_, Grain(out_height * line), [=, this](int64_t begin, int64_t end) {
      std::fill(x_grad + begin * image_elements, x_grad + end * image_elements, T{0});
      for (int64_t i = begin * out_height; i < end * out_height; ++i) {
        const int64_t source = rows_[static_cast<size_t>(i % out_height)];
        T* to = x_grad + (i / out_height * height_ + source) * width_ * inner_;
        const T* from = out_grad + i * line;
        Add(from + left_ * inner_, width_ * inner_, to);
        ForBorderColumns([=, this](int64_t column, int64_t shown) {
          Add(from + column * inner_, inner_, to + shown * inner_);
        });
      }
    });
  }

 private:
  template <typename T>
  static void Add(const T* from, int64_t count, T* to) {
    for (int64_t i = 0; i < count; ++i) to[i] += from[i];
  }
  static int64_t Grain(int64_t elements) {
    return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, elements));
  }
  int64_t OutLine() const { return static_cast<int64_t>(columns_.size()) * inner_; }

  // Calls body(column of Out, column of X) for the columns to the left and right of the image.
  template <typename Body>
  void ForBorderColumns(const Body& body) const {
    const auto count = static_cast<int64_t>(columns_.size());
    for (int64_t c = 0; c < left_; ++c) body(c, columns_[static_cast<size_t>(c)]);
    for (int64_t c = left_ + width_; c < count; ++c) body(c, columns_[static_cast<size_t>(c)]);
  }

  int64_t outer_ = 0;
  int64_t height_ = 0;
  int64_t width_ = 0;
  int64_t inner_ = 0;
  int64_t left_ = 0;
  std::vector<int64_t> rows_;
  std::vector<int64_t> columns_;
};

template <typename T>
std::unique_ptr<Kernel> PreparePad2d(PrepareContext& context) {
  const Shape& x = context.Input("X").shape;
  const In<T> from(context, "X");
  const Out<T> to(context, "Out");
  if (context.Attr<std::string>("mode") != "constant") {
    return MakeKernel([pad = CopyPad(context, x), from, to](const KernelContext& run) {
      pad.Run(from(run), to(run));
    });
  }
  return MakeKernel([pad = ConstantPad(x, BordersOf(context, x)),
                     value = static_cast<T>(context.Attr<float>("pad_value")), from,
                     to](const KernelContext& run) { pad.Run(from(run), value, to(run)); });
}

template <typename T>
std::unique_ptr<Kernel> PreparePad2dGrad(PrepareContext& context) {
  const Shape& x = context.Input("X").shape;
  const In<T> from(context, "Out@GRAD");
  const Out<T> to(context, "X@GRAD");
  if (context.Attr<std::string>("mode") != "constant") {
    return MakeKernel([pad = CopyPad(context, x), from, to](const KernelContext& run) {
      pad.RunGrad(from(run), to(run));
    });
  }
  return MakeKernel([unpad = Unpad(x, BordersOf(context, x), kDTypeOf<T>), from,
                     to](const KernelContext& run) { unpad.Run(run, from(run), to(run)); });
}

}  // namespace

void RegisterPad2d(OpRegistry& registry) {
  OpDef def;
  def.type = "pad2d";
  def.doc = "Out = X with a border of pad_value, or of copies of the image.";
  def.inputs = {{.name = "X", .doc = "Images, [n, c, h, w] or [n, h, w, c]."},
                AttributeSlot("Paddings", "paddings")};
  def.outputs = {{.name = "Out", .doc = "The images with their borders."}};
  def.attrs = {{.name = "paddings",
                .type = AttrType::kInts,
                .doc = "Pixels of border: [top, bottom, left, right]."},
               {.name = "pad_value",
                .type = AttrType::kFloat,
                .default_value = 0.0f,
                .doc = "The value of a constant border."},
               ChoiceAttr("mode", "constant", {"constant", "reflect", "edge"},
                          "\"constant\", \"reflect\" or \"edge\"."),
               ChoiceAttr("data_format", "NCHW", {"NCHW", "NHWC"}, "\"NCHW\" or \"NHWC\".")};
  def.infer = [](OpContext& context) {
    const TensorMeta& x = context.Input("X");
    CheckPadValue(context, x.dtype);
    context.SetOutput("Out", OutOf(context), x.dtype);
    SetLodLevel(context, /*same_rows=*/true);
  };
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Paddings", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD of a pixel = the sum of Out@GRAD over all places that show it.";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "pad2d", []<typename T>(PrepareContext& context) { return PreparePad2d<T>(context); });
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>("pad2d_grad", []<typename T>(PrepareContext& context) {
    return PreparePad2dGrad<T>(context);
  });
}

}  // namespace skiff
