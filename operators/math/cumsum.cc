// cumsum: running sums along an axis. Source: Fluid's cumsum.
//
// Out[i] = X[0] + … + X[i]; exclusive: without X[i]; reverse: from the other end; flatten: over all
// elements in row-major order, and Out has rank 1.
//
// X@GRAD is the cumsum of Out@GRAD from the other end, in the shape of X.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/input_checks.h"
#include "operators/math/kernels/cumsum_axis.h"

namespace skiff {
namespace {

// The columns that are summed side by side: some cache lines of a row, whose sums stay in the
// first-level cache.
constexpr int64_t kColumns = 64;
// The number of elements below which another thread costs more than it saves.
constexpr int64_t kGrainElements = 16384;

// float32 is summed in float64, so that long rows lose no small terms. Integers wrap around.
template <typename T>
using SumType =
    std::conditional_t<std::is_floating_point_v<T>, double,
                       std::conditional_t<sizeof(T) == sizeof(uint64_t), uint64_t, uint32_t>>;

// Writes the running sums of kLines lines that are `line_step` elements apart. `x` and `out`, which
// may be x, point to the element at which the sums of the first line start; the next element of a
// line is `step` elements further. Each addition depends on the one before it in its line, so
// several lines at a time hide the latency.
template <bool kExclusive, int kLines, typename T>
void SumLines(const T* x, T* out, int64_t length, int64_t step, int64_t line_step) {
  SumType<T> sums[kLines] = {};
  for (int64_t i = 0; i != length * step; i += step) {
#pragma GCC unroll 4
    for (int line = 0; line < kLines; ++line) {
      const int64_t at = i + line * line_step;
      const SumType<T> before = sums[line];
      sums[line] = before + static_cast<SumType<T>>(x[at]);
      out[at] = static_cast<T>(kExclusive ? before : sums[line]);
    }
  }
}

template <bool kExclusive, typename T>
void SumAllLines(const T* x, T* out, int64_t length, int64_t step, int64_t lines,
                 int64_t line_step) {
  int64_t line = 0;
  for (; line + 4 <= lines; line += 4)
    SumLines<kExclusive, 4>(x + line * line_step, out + line * line_step, length, step, line_step);
  for (; line < lines; ++line)
    SumLines<kExclusive, 1>(x + line * line_step, out + line * line_step, length, step, line_step);
}

// Does the same for `columns` adjacent lines, row by row, so that memory is read in order.
template <bool kExclusive, typename T>
void SumColumns(const T* x, T* out, int64_t length, int64_t step, int64_t columns) {
  SumType<T> sums[kColumns] = {};
  for (int64_t row = 0; row < length; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const SumType<T> before = sums[column];
      sums[column] = before + static_cast<SumType<T>>(x[column]);
      out[column] = static_cast<T>(kExclusive ? before : sums[column]);
    }
    x += step;
    out += step;
  }
}

template <typename T>
void RunningSums(const AxisExtents& extents, bool exclusive, bool reverse, const T* x, T* out) {
  if (extents.length == 0) return;
  const int64_t blocks = (extents.inner + kColumns - 1) / kColumns;
  const int64_t block_elements = extents.length * std::min(extents.inner, kColumns);
  const int64_t first_row = reverse ? (extents.length - 1) * extents.inner : 0;
  const int64_t step = reverse ? -extents.inner : extents.inner;
  if (extents.inner == 1) {
    const auto sum = exclusive ? SumAllLines<true, T> : SumAllLines<false, T>;
    ParallelFor(extents.outer, std::max<int64_t>(1, kGrainElements / extents.length),
                [&](int64_t begin, int64_t end) {
                  const int64_t start = begin * extents.length + first_row;
                  sum(x + start, out + start, extents.length, step, end - begin, extents.length);
                });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrainElements / block_elements);
  ParallelFor(extents.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t column = block % blocks * kColumns;
      const int64_t start = block / blocks * extents.length * extents.inner + first_row + column;
      const int64_t columns = std::min(kColumns, extents.inner - column);
      const auto sum = exclusive ? SumColumns<true, T> : SumColumns<false, T>;
      sum(x + start, out + start, extents.length, step, columns);
    }
  });
}

// Returns the kernel from `input` to `output`, in the direction of the attribute or, with
// `backwards`, against it.
template <typename T>
std::unique_ptr<Kernel> Prepare(const PrepareContext& context, const std::string& input,
                                const std::string& output, bool backwards) {
  const std::optional<int> axis = CumsumAxis(context);
  const bool exclusive = context.Attr<bool>("exclusive");
  const bool reverse = context.Attr<bool>("reverse") != backwards;
  const In<T> from(context, input);
  const Out<T> to(context, output);
  return MakeRowsKernel([=](const KernelContext& run) {
    if (!to.is_there()) return;
    const AxisExtents extents = CumsumExtents(from.shape(run), axis);
    RunningSums(extents, exclusive, reverse, from(run), to(run));
  });
}

// Returns the shape of Out.
Shape SumsShape(const OpContext& context) {
  const Shape& shape = context.Input("X").shape;
  if (context.Attr<bool>("flatten")) {
    return {shape.is_known() ? shape.element_count() : int64_t{-1}};
  }
  AxisIndex(context, shape, context.IntAttr("axis"));
  return shape;
}

void Infer(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  if (!context.Attr<bool>("flatten")) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", SumsShape(context), x.dtype);
}

void InferGrad(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  CheckInputLike(context, "Out@GRAD", SumsShape(context), x.dtype);
  context.SetOutputLike("X@GRAD", "X");
}

std::vector<AttrDef> Attributes() {
  return {{.name = "axis",
           .type = AttrType::kInt,
           .default_value = -1,
           .doc = "The axis, negative from the back; not read under flatten."},
          {.name = "flatten",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether all elements make one row, in row-major order."},
          {.name = "exclusive",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether a sum leaves out the element at its own place."},
          {.name = "reverse",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether the sums start at the last element."}};
}

}  // namespace

void RegisterCumsum(OpRegistry& registry) {
  OpDef def;
  def.type = "cumsum";
  def.doc = "Out[i] = X[0] + ... + X[i] along an axis.";
  def.inputs = {{.name = "X", .doc = "The terms, of any shape."}};
  def.outputs = {{.name = "Out", .doc = "The sums, of X's shape; of rank 1 under flatten."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kHigh;
  def.in_place = {{"X", "Out"}};
  OpDef grad = GradientOf(&def, {ForShape("X"), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = the cumsum of Out@GRAD from the other end, in the shape of X.";
  grad.infer = InferGrad;
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "cumsum", []<typename T>(PrepareContext& context) {
        return Prepare<T>(context, "X", "Out", /*backwards=*/false);
      });
  registry.AddCpuKernels<float, double>("cumsum_grad", []<typename T>(PrepareContext& context) {
    return Prepare<T>(context, "Out@GRAD", "X@GRAD", /*backwards=*/true);
  });
}

}  // namespace skiff
