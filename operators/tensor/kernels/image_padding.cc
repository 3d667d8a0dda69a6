#include "operators/tensor/kernels/image_padding.h"

#include <algorithm>
#include <array>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/common/half.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

// Which axes of X a border is around, and which numbers of `paddings` are theirs.
struct SpatialAxes {
  explicit SpatialAxes(const OpContext& context) {
    const auto& format = context.Attr<std::string>("data_format");
    count = static_cast<int>(format.size()) - 2;
    first = format.back() == 'C' ? 1 : 2;
  }

  // Returns the index of the number before the axis; that after it is the next one. pad2d's
  // `paddings` begin with the rows, pad3d's with the columns.
  size_t PaddingOf(int axis) const {
    return 2 * static_cast<size_t>(count == 2 ? axis - first : first + count - 1 - axis);
  }

  int first = 0;
  int count = 0;
};

void CheckRank(const OpContext& context, const Shape& x) {
  const int rank = SpatialAxes(context).count + 2;
  SKIFF_ENFORCE(x.rank() == rank, kInvalidArgument, context.op().type, ": X has shape ", x,
                ", expected ", rank, " dims");
}

void CheckReach(const OpContext& context, int64_t extent, int64_t before, int64_t after) {
  if (BorderModeOf(context) == BorderMode::kConstant || extent < 0) return;
  const bool has_border = before > 0 || after > 0;
  SKIFF_ENFORCE(!has_border || extent > 0, kInvalidArgument, context.op().type, ": mode ",
                context.Attr<std::string>("mode"),
                " has no pixel to repeat in an image of extent 0");
  const bool reflects = BorderModeOf(context) == BorderMode::kReflect;
  SKIFF_ENFORCE(!reflects || !has_border || std::max(before, after) < extent, kInvalidArgument,
                context.op().type, ": borders of ", before, " and ", after,
                " are too wide to reflect an image of extent ", extent);
}

Shape OutOf(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  if (context.Knows("paddings")) return PaddedShape(x, BordersOfImages(context, x));
  CheckRank(context, x);
  Shape out = x;
  const SpatialAxes axes(context);
  for (int axis = axes.first; axis < axes.first + axes.count; ++axis) out[axis] = -1;
  return out;
}

// Returns, for each position along an axis of Out, the position in X that it shows.
std::vector<int64_t> SourcesOf(const PaddedAxis& axis) {
  std::vector<int64_t> sources;
  for (int64_t at = 0; at < axis.padded; ++at) sources.push_back(axis.Source(at));
  return sources;
}

// Pads images with copies of their pixels.
class CopyPad {
 public:
  CopyPad(const OpContext& context, const Shape& x) : images_(PaddedImagesOf(context, x)) {
    if (x.element_count() == 0) return;
    const std::vector<int64_t> rows = SourcesOf(images_.rows);
    for (const int64_t plane : SourcesOf(images_.planes)) {
      for (const int64_t row : rows) lines_.push_back(plane * images_.rows.extent + row);
    }
    columns_ = SourcesOf(images_.columns);
  }

  template <typename T>
  void Run(const T* x, T* out) const {
    const auto out_lines = static_cast<int64_t>(lines_.size());
    const int64_t line = OutLine();
    ParallelFor(images_.outer * out_lines, Grain(line), [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* from = x + SourceLine(i) * XLine();
        T* to = out + i * line;
        std::copy_n(from, XLine(), to + Left());
        ForBorderColumns([=, this](int64_t column, int64_t shown) {
          std::copy_n(from + shown * images_.inner, images_.inner, to + column * images_.inner);
        });
      }
    });
  }

  template <typename T>
  void RunGrad(const T* out_grad, T* x_grad) const {
    const auto out_lines = static_cast<int64_t>(lines_.size());
    const int64_t line = OutLine();
    const int64_t image_elements = ImageLines() * XLine();
    // An image is the work of one thread: several lines of Out@GRAD add to one line of X@GRAD.
    ParallelFor(images_.outer, Grain(out_lines * line), [=, this](int64_t begin, int64_t end) {
      std::fill(x_grad + begin * image_elements, x_grad + end * image_elements, T{0});
      for (int64_t i = begin * out_lines; i < end * out_lines; ++i) {
        T* to = x_grad + SourceLine(i) * XLine();
        const T* from = out_grad + i * line;
        Add(from + Left(), XLine(), to);
        ForBorderColumns([=, this](int64_t column, int64_t shown) {
          Add(from + column * images_.inner, images_.inner, to + shown * images_.inner);
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
  int64_t ImageLines() const { return images_.planes.extent * images_.rows.extent; }
  int64_t XLine() const { return images_.columns.extent * images_.inner; }
  int64_t OutLine() const { return images_.columns.padded * images_.inner; }
  int64_t Left() const { return images_.columns.before * images_.inner; }
  // Returns the line of X that line `i` of Out shows.
  int64_t SourceLine(int64_t i) const {
    const auto out_lines = static_cast<int64_t>(lines_.size());
    return i / out_lines * ImageLines() + lines_[static_cast<size_t>(i % out_lines)];
  }

  // Calls body(column of Out, column of X) for the columns to the left and right of the image.
  template <typename Body>
  void ForBorderColumns(const Body& body) const {
    const PaddedAxis& axis = images_.columns;
    for (int64_t c = 0; c < axis.before; ++c) body(c, columns_[static_cast<size_t>(c)]);
    for (int64_t c = axis.before + axis.extent; c < axis.padded; ++c) {
      body(c, columns_[static_cast<size_t>(c)]);
    }
  }

  PaddedImages images_;
  // The sources of the lines of an image of Out, and of its columns.
  std::vector<int64_t> lines_;
  std::vector<int64_t> columns_;
};

template <typename T>
std::unique_ptr<Kernel> PreparePad(PrepareContext& context) {
  const Shape& x = context.Input("X").shape;
  const In<T> from(context, "X");
  const Out<T> to(context, "Out");
  if (BorderModeOf(context) != BorderMode::kConstant) {
    return MakeKernel([pad = CopyPad(context, x), from, to](const KernelContext& run) {
      pad.Run(from(run), to(run));
    });
  }
  return MakeKernel([pad = ConstantPad(x, BordersOfImages(context, x)),
                     value = static_cast<T>(context.Attr<float>(PadValueAttr(context))), from,
                     to](const KernelContext& run) { pad.Run(from(run), value, to(run)); });
}

template <typename T>
std::unique_ptr<Kernel> PreparePadGrad(PrepareContext& context) {
  const Shape& x = context.Input("X").shape;
  const In<T> from(context, "Out@GRAD");
  const Out<T> to(context, "X@GRAD");
  if (BorderModeOf(context) != BorderMode::kConstant) {
    return MakeKernel([pad = CopyPad(context, x), from, to](const KernelContext& run) {
      pad.RunGrad(from(run), to(run));
    });
  }
  return MakeKernel([unpad = Unpad(x, BordersOfImages(context, x), kDTypeOf<T>), from,
                     to](const KernelContext& run) { unpad.Run(run, from(run), to(run)); });
}

}  // namespace

Borders BordersOfImages(const OpContext& context, const Shape& x) {
  CheckRank(context, x);
  const SpatialAxes axes(context);
  const std::vector<int64_t> given = context.IntsAttr("paddings");
  const bool fits = given.size() == 2 * static_cast<size_t>(axes.count) &&
                    *std::min_element(given.begin(), given.end()) >= 0;
  SKIFF_ENFORCE(
      fits, kInvalidArgument, context.op().type, ": paddings = [", Join(given, ", "),
      "], expected ",
      axes.count == 2 ? "[top, bottom, left, right]" : "[left, right, top, bottom, front, back]",
      ", none negative");
  CheckBorderWidths(given, context.op().type);
  Borders borders(2 * static_cast<size_t>(x.rank()), 0);
  for (int axis = axes.first; axis < axes.first + axes.count; ++axis) {
    const int64_t before = given[axes.PaddingOf(axis)];
    const int64_t after = given[axes.PaddingOf(axis) + 1];
    CheckReach(context, x[axis], before, after);
    borders[2 * static_cast<size_t>(axis)] = before;
    borders[2 * static_cast<size_t>(axis) + 1] = after;
  }
  return borders;
}

BorderMode BorderModeOf(const OpContext& context) {
  const auto& mode = context.Attr<std::string>("mode");
  if (mode == "constant") return BorderMode::kConstant;
  if (mode == "reflect") return BorderMode::kReflect;
  return mode == "circular" ? BorderMode::kWrap : BorderMode::kEdge;
}

PaddedImages PaddedImagesOf(const OpContext& context, const Shape& x) {
  const SpatialAxes spatial(context);
  const Borders borders = BordersOfImages(context, x);
  const int end = spatial.first + spatial.count;
  const auto axis = [&](int at) {
    const int64_t before = borders[2 * static_cast<size_t>(at)];
    const int64_t after = borders[2 * static_cast<size_t>(at) + 1];
    return PaddedAxis{.extent = x[at],
                      .before = before,
                      .padded = before + x[at] + after,
                      .mode = BorderModeOf(context)};
  };
  PaddedImages images{.outer = x.element_count(0, spatial.first),
                      .planes = {.mode = BorderModeOf(context)},
                      .rows = axis(end - 2),
                      .columns = axis(end - 1),
                      .inner = x.element_count(end, x.rank())};
  if (spatial.count == 3) images.planes = axis(spatial.first);
  return images;
}

std::string_view PadValueAttr(const OpContext& context) {
  return SpatialAxes(context).count == 2 ? "pad_value" : "value";
}

void AddImagePadOps(OpRegistry& registry, const ImagePadFacts& facts) {
  OpDef def;
  def.type = facts.type;
  def.doc = StrCat("Out = X with a border of ", facts.value_attr, ", or of copies of the image.");
  def.inputs = {{.name = "X", .doc = facts.x_doc}, AttributeSlot("Paddings", "paddings")};
  def.outputs = {{.name = "Out", .doc = "The images with their borders."}};
  const auto text_of = [](const std::vector<StaticText>& choices) {
    return StrCat("\"", Join(choices, "\", \""), "\".");
  };
  def.attrs = {{.name = "paddings", .type = AttrType::kInts, .doc = facts.paddings_doc},
               {.name = facts.value_attr,
                .type = AttrType::kFloat,
                .default_value = 0.0f,
                .doc = "The value of a constant border."},
               ChoiceAttr("mode", "constant", facts.modes, text_of(facts.modes)),
               ChoiceAttr("data_format", facts.formats[0], facts.formats, text_of(facts.formats))};
  def.infer = [](OpContext& context) {
    const TensorMeta& x = context.Input("X");
    CheckPadValue(context, PadValueAttr(context), x.dtype);
    context.SetOutput("Out", OutOf(context), x.dtype);
    SetLodLevel(context, /*same_rows=*/true);
  };
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Paddings", "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD of a pixel = the sum of Out@GRAD over all places that show it.";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, BFloat16, Float16, int32_t, int64_t>(
      facts.type, []<typename T>(PrepareContext& context) { return PreparePad<T>(context); });
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      StrCat(facts.type, "_grad"),
      []<typename T>(PrepareContext& context) { return PreparePadGrad<T>(context); });
}

}  // namespace skiff
