// unpool: puts the elements of a pooled image back to the pixels that they were taken from.
//
//   Out[n, c] = 0, but pixel Indices[n, c, i, j], row * W + column, is X[n, c, i, j]
//
// Indices is the Mask of max_pool2d_with_index. Of several elements for one pixel the last one
// remains. The extents of Out are output_size or, if that is empty, (H - 1) · stride - 2 · padding
// + ksize.
//
// Source: Fluid's unpool (PaddlePaddle 2.6).
//
// Gradient: X@GRAD[n, c, i, j] = Out@GRAD at the pixel, 0 if a later element replaced it. (Fluid
// gives the pixel's to all.)
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/grad.h"
#include "operators/common/half.h"
#include "operators/common/input_checks.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/unpooling.h"

namespace skiff {
namespace {

// Within 32 bits, sums of them don't overflow.
constexpr int64_t kLargestValue = std::numeric_limits<int32_t>::max();

std::vector<int64_t> PairOf(const OpContext& context, const char* name, int64_t least) {
  std::vector<int64_t> values = context.IntsAttr(name);
  const auto is_legal = [least](int64_t value) { return value >= least && value <= kLargestValue; };
  SKIFF_ENFORCE(values.size() == 2 && std::ranges::all_of(values, is_legal), kInvalidArgument,
                context.op().type, ": ", name, " = [", Join(values, ", "),
                "], expected height and width, from ", least, " to ", kLargestValue);
  return values;
}

Shape OutShape(const OpContext& context) {
  const std::string& type = context.op().type;
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(x.rank() == 4, kInvalidArgument, type, ": X of shape ", x,
                ", expected [N, C, H, W]");
  Shape out = {x[0], x[1], -1, -1};
  const bool has_size = !context.IntsAttr("output_size").empty();
  const std::vector<int64_t> sizes = PairOf(context, has_size ? "output_size" : "ksize", 1);
  const std::vector<int64_t> strides = PairOf(context, "strides", 1);
  const std::vector<int64_t> paddings = PairOf(context, "paddings", 0);
  for (int axis = 0; axis < 2; ++axis) {
    const auto i = static_cast<size_t>(axis);
    int64_t size = sizes[i];
    if (!has_size) {
      const int64_t pooled = x[2 + axis];
      if (pooled < 0) continue;
      const int64_t steps = pooled > 0 ? MultiplyCounts(pooled - 1, strides[i]) : -strides[i];
      size = steps - 2 * paddings[i] + sizes[i];
    }
    SKIFF_ENFORCE(size >= 1, kInvalidArgument, type, ": an output ", axis == 0 ? "height" : "width",
                  " of ", size, " for X of shape ", x, ", expected at least 1");
    out[2 + axis] = size;
  }
  return out;
}

void CheckUnpooledIndices(const OpContext& context) {
  CheckIndexDType(context, "Indices");
  CheckInputLike(context, "Indices", context.Input("X").shape, context.Input("Indices").dtype);
}

template <typename T>
std::unique_ptr<Kernel> PrepareUnpool(PrepareContext& context) {
  return MakeRowsKernel([x = In<T>(context, "X"), indices = In<>(context, "Indices"),
                         room = RequestRoomForIndices(context, "Indices"),
                         out = Out<T>(context, "Out")](const KernelContext& run) {
    const AlongAxis named = UnpooledPlaces(out.shape(run), indices.shape(run));
    auto* places = static_cast<int64_t*>(run.workspace(room));
    named.Resolve(indices.tensor(run), "unpool", places, "Indices");
    ZeroBytes(out.tensor(run).raw_data(), out.tensor(run).byte_count());
    ForOwnedPlaces<T>(named.index(),
                      [=, from = x(run), to = out(run)](int64_t i) { to[places[i]] = from[i]; });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareUnpoolGrad(PrepareContext& context) {
  const int64_t pixels = context.Input("Out@GRAD").shape.element_count();
  return MakeRowsKernel([indices = In<>(context, "Indices"),
                         room = RequestRoomForIndices(context, "Indices"),
                         marks = context.RequestWorkspace(pixels),
                         gradient = In<T>(context, "Out@GRAD"),
                         dx = Out<T>(context, "X@GRAD")](const KernelContext& run) {
    const AlongAxis named = UnpooledPlaces(gradient.shape(run), indices.shape(run));
    auto* places = static_cast<int64_t*>(run.workspace(room));
    named.Resolve(indices.tensor(run), "unpool_grad", places, "Indices");
    TakeLastPlaces(named, places, gradient(run), static_cast<char*>(run.workspace(marks)), dx(run));
  });
}

std::vector<AttrDef> UnpoolAttributes() {
  const auto ints = [](StaticText name, std::optional<Attribute> value, StaticText doc) {
    return AttrDef{
        .name = name, .type = AttrType::kInts, .default_value = std::move(value), .doc = doc};
  };
  return {ints("ksize", std::nullopt, "Height and width of the pooling's window."),
          ints("strides", Attribute(std::vector<int32_t>{1, 1}), "Steps of that window."),
          ints("paddings", Attribute(std::vector<int32_t>{0, 0}), "Its padding on both sides."),
          ints("output_size", Attribute(std::vector<int32_t>{}),
               "Height and width of Out; empty: as the others say."),
          ChoiceAttr("unpooling_type", "max", {"max"}, "What the pooling was."),
          ChoiceAttr("data_format", "NCHW", {"NCHW"}, "Where images have their channels.")};
}

}  // namespace

void RegisterUnpool(OpRegistry& registry) {
  OpDef def = {
      .type = "unpool",
      .doc =
          "Out = 0, but in each channel of an image pixel Indices[i, j], row * W + column, is "
          "X[i, j]; of several elements the last one.",
      .inputs = {{.name = "X", .doc = "Pooled images, [N, C, H, W]."},
                 {.name = "Indices",
                  .doc = "int32 or int64, of X's shape: a pixel of Out for each element.",
                  .checks_data = true}},
      .outputs = {{.name = "Out", .doc = "Images with as many channels."}},
      .attrs = UnpoolAttributes(),
      .infer = [](OpContext& context) {
        CheckUnpooledIndices(context);
        context.SetOutputLike("Out", "X");
        context.SetOutput("Out", OutShape(context), context.Input("X").dtype);
      }};
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "X";
  // Fluid's reads X and Out, too.
  OpDef grad =
      GradientOf(&def, {ForShape("X"), "Indices", ForShape("Out"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD at the pixel of the element, 0 if a later element replaced it.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, BFloat16, Float16, int32_t, int64_t>(
      "unpool", []<typename T>(PrepareContext& context) { return PrepareUnpool<T>(context); });
  registry.AddCpuKernels<float, double, BFloat16, Float16>(
      "unpool_grad",
      []<typename T>(PrepareContext& context) { return PrepareUnpoolGrad<T>(context); });
}

}  // namespace skiff
