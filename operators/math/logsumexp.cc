// logsumexp: Out = log(sum of exp(X)) over the axes `axis`, or over all of them. Source: Fluid's
// logsumexp. The largest element m is subtracted first: m + log(sum of exp(X - m)). Of no elements,
// and of -inf alone, it is -inf.
//
// X@GRAD = Out@GRAD * exp(X - Out), which is a softmax; 0 where Out is -inf.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "operators/common/cpu/softmax_tiles.h"
#include "operators/math/kernels/reduction.h"

namespace skiff {
namespace {

constexpr ReductionAttrNames kNames = {.dims = "axis", .keep_dim = "keepdim"};

template <typename T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Neighbouring axes that are reduced together: a tensor seen as [outer, length, inner].
struct ReducedRun {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

// Calls visit(run, is_last) for the runs of neighbouring reduced axes, from the back. After each of
// them its axes have extents of 1. There is at least one run.
template <typename Visit>
void ForEachRun(Shape shape, const AxisFlags& is_reduced, const Visit& visit) {
  const auto reduces = [&](int axis) { return is_reduced[static_cast<size_t>(axis)]; };
  int first = 0;  // the first reduced axis
  while (first < shape.rank() && !reduces(first)) ++first;
  if (first == shape.rank()) return visit(ReducedRun{.outer = shape.element_count()}, true);
  for (int end = shape.rank(); end > first;) {
    if (!reduces(end - 1)) {
      --end;
      continue;
    }
    int begin = end;
    while (begin > 0 && reduces(begin - 1)) --begin;
    visit(ReducedRun{.outer = shape.element_count(0, begin),
                     .length = shape.element_count(begin, end),
                     .inner = shape.element_count(end, shape.rank())},
          begin == first);
    for (; end > begin; --end) shape[end - 1] = 1;
  }
}

// out[i] = the result of item i.
template <typename T>
void LogSumExpOfTile(const SoftmaxTile& tile, const T* x, T* out) {
  T max[SoftmaxTile::kMaxItems];
  T sum[SoftmaxTile::kMaxItems];
  TileMax(tile, x, max);
  for (int64_t i = 0; i < tile.items; ++i) {
    // -inf - -inf would be NaN.
    if (max[i] == -kInfinity<T>) max[i] = 0;
  }
  TileExp(tile, x, max, static_cast<T*>(nullptr), sum);
  for (int64_t i = 0; i < tile.items; ++i) {
    out[i] = max[i] + std::log(sum[i]);
    if (max[i] != kInfinity<T>) continue;
    out[i] = max[i];
    ForEachClass(tile, i, [&](int64_t at) {
      if (std::isnan(x[at])) out[i] = x[at];
    });
  }
}

// Long lines are cut into blocks of neighbouring elements: within a block float32 adds up, in which
// much longer sums would lose what is small beside them, and threads share the blocks even of a
// single line. The sizes depend on the shape alone, so the number of threads doesn't change the
// result.
template <typename T>
class LineBlocks {
 public:
  // Of the lines of a run.
  explicit LineBlocks(const ReducedRun& run) : run_(run) {
    // The lanes of a vector share a block of contiguous elements; other lines have one lane each.
    const int64_t most = run.inner == 1 ? 4096 : 1024;
    count_ = (run.length + most - 1) / most;
    if (count_ > 1) size_ = (run.length + count_ - 1) / count_;
  }

  // Otherwise the lines are short, and tiles of them are faster.
  bool are_several() const { return count_ > 1; }
  int64_t bytes() const {
    return are_several() ? run_.outer * count_ * run_.inner * static_cast<int64_t>(sizeof(Part))
                         : 0;
  }

  // out[i] = the result of line i. `memory` has bytes().
  void Run(const T* x, void* memory, T* out) const {
    auto* parts = static_cast<Part*>(memory);
    const bool is_row = run_.inner == 1;
    const int64_t items = std::min(run_.inner, SoftmaxTile::kMaxItems);
    const int64_t across = (run_.inner + items - 1) / items;
    ParallelFor(run_.outer * count_ * across, GrainOf(items * size_),
                [=, *this](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t start = i % across * items;
                    const int64_t block = i / across % count_;
                    const int64_t outer = i / across / count_;
                    // The last ones may be short, or empty.
                    const int64_t first = std::min(block * size_, run_.length);
                    const SoftmaxTile tile{.items = std::min(items, run_.inner - start),
                                           .classes = std::min(size_, run_.length - first),
                                           .item_stride = is_row ? size_ : 1,
                                           .class_stride = run_.inner};
                    PartsOfTile(tile, x + (outer * run_.length + first) * run_.inner + start,
                                parts + (outer * count_ + block) * run_.inner + start);
                  }
                });
    ParallelFor(run_.outer * run_.inner, GrainOf(count_), [=, *this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out[i] = Joined(parts + i / run_.inner * count_ * run_.inner + i % run_.inner);
    });
  }

 private:
  // The largest element of a block, and the sum of exp(x - max). NaN in either stays in the sum.
  struct Part {
    T max;
    double sum;
  };

  static int64_t GrainOf(int64_t elements) { return std::max<int64_t>(1, 16384 / elements); }

  static void PartsOfTile(const SoftmaxTile& tile, const T* x, Part* parts) {
    T max[SoftmaxTile::kMaxItems];
    T shift[SoftmaxTile::kMaxItems];
    T sum[SoftmaxTile::kMaxItems];
    TileMax(tile, x, max);
    // -inf - -inf would be NaN.
    for (int64_t i = 0; i < tile.items; ++i) shift[i] = max[i] == -kInfinity<T> ? T{0} : max[i];
    TileExp(tile, x, shift, static_cast<T*>(nullptr), sum);
    for (int64_t i = 0; i < tile.items; ++i) {
      parts[i] = {.max = max[i], .sum = static_cast<double>(sum[i])};
      if (max[i] != kInfinity<T>) continue;
      parts[i].sum = 1;
      ForEachClass(tile, i, [&](int64_t at) {
        if (std::isnan(x[at])) parts[i].sum = static_cast<double>(x[at]);
      });
    }
  }

  // The result of a line, from that of its first block on.
  T Joined(const Part* parts) const {
    T max = -kInfinity<T>;
    for (int64_t b = 0; b < count_; ++b) max = std::max(max, parts[b * run_.inner].max);
    double sum = 0;
    for (int64_t b = 0; b < count_; ++b) {
      const Part& part = parts[b * run_.inner];
      // Equal infinities have no difference.
      sum += part.max == max
                 ? part.sum
                 : part.sum * std::exp(static_cast<double>(part.max) - static_cast<double>(max));
    }
    return static_cast<T>(static_cast<double>(max) + std::log(sum));
  }

  ReducedRun run_;
  int64_t count_ = 1;  // of a line
  int64_t size_ = 1;
};

// log(sum of exp) over several runs is that over one run after the other.
template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const AxisFlags axes = ReducedAxes(context, kNames);
  const bool is_empty = context.Input("X").shape.element_count() == 0;
  // What is between two runs is in the one or the other workspace.
  std::array<int64_t, 2> most = {0, 0};
  int64_t block_bytes = 0;
  size_t run_index = 0;
  ForEachRun(context.Input("X").shape, axes, [&](const ReducedRun& part, bool is_last) {
    int64_t& size = most[run_index++ % 2];
    if (!is_last) size = std::max(size, part.outer * part.inner);
    if (!is_empty) block_bytes = std::max(block_bytes, LineBlocks<T>(part).bytes());
  });
  // Between the runs of a tensor without elements there may be any number of results.
  if (is_empty) most = {0, 0};
  const auto request = [&](int64_t count) {
    return context.RequestWorkspace(count * static_cast<int64_t>(sizeof(T)));
  };
  const std::array<int, 2> workspaces = {request(most[0]), request(most[1])};
  const int blocks_workspace = context.RequestWorkspace(block_bytes);
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  return MakeRowsKernel([=](const KernelContext& run) {
    if (x.count(run) == 0) {
      std::fill_n(out(run), out.count(run), -kInfinity<T>);
      return;
    }
    const T* from = x(run);
    size_t index = 0;
    ForEachRun(x.shape(run), axes, [&](const ReducedRun& part, bool is_last) {
      T* to = is_last ? out(run) : static_cast<T*>(run.workspace(workspaces[index++ % 2]));
      if (const LineBlocks<T> blocks(part); blocks.are_several()) {
        blocks.Run(from, run.workspace(blocks_workspace), to);
      } else {
        ForTiles(part.outer, part.length, part.inner, [from, to](const SoftmaxTile& tile) {
          LogSumExpOfTile(tile, from + tile.offset, to + tile.first_item);
        });
      }
      from = to;
    });
  });
}

// dx = gradient[i] * exp(x - out[i]). dx may be x.
template <typename T>
void GradOfTile(const SoftmaxTile& tile, const T* x, const T* out, const T* gradient, T* dx) {
  T shift[SoftmaxTile::kMaxItems];
  T sum[SoftmaxTile::kMaxItems];
  for (int64_t i = 0; i < tile.items; ++i) shift[i] = out[i] == -kInfinity<T> ? T{0} : out[i];
  TileExp(tile, x, shift, dx, sum);
  TileScale(tile, dx, gradient, dx);
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const In<T> x(context, "X");
  const In<T> out(context, "Out");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=, axes = ReducedAxes(context, kNames)](const KernelContext& run) {
    const AxisReduction reduction(dx.shape(run), axes);
    reduction.ForEachPiece([from = x(run), sums = out(run), dout = gradient(run), to = dx(run)](
                               int64_t offset, int64_t size, int64_t output, bool is_one_output) {
      if (is_one_output) {
        const SoftmaxTile row{.items = 1, .classes = size, .item_stride = size, .class_stride = 1};
        return GradOfTile(row, from + offset, sums + output, dout + output, to + offset);
      }
      for (int64_t i = 0; i < size; i += SoftmaxTile::kMaxItems) {
        const int64_t items = std::min(SoftmaxTile::kMaxItems, size - i);
        const SoftmaxTile column{
            .items = items, .classes = 1, .item_stride = 1, .class_stride = items};
        GradOfTile(column, from + offset + i, sums + output + i, dout + output + i,
                   to + offset + i);
      }
    });
  });
}

}  // namespace

void RegisterLogsumexp(OpRegistry& registry) {
  OpDef def;
  def.type = "logsumexp";
  def.doc = "Out = log(sum of exp(X)) over the axes `axis`. Fluid's logsumexp.";
  def.inputs = {{.name = "X", .doc = "Of any shape."}};
  def.outputs = {{.name = "Out", .doc = "The results; of rank 0 if no dim is left."}};
  def.attrs = {{.name = "axis",
                .type = AttrType::kInts,
                .default_value = std::vector<int32_t>{0},
                .doc = "The axes to reduce over; negative ones count from the back, none means "
                       "all."},
               {.name = "keepdim",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Reduced axes stay as dims of 1."},
               {.name = "reduce_all",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Reduce over all axes, whatever `axis` says."}};
  def.infer = [](OpContext& context) {
    SetReducedOutput(context, context.Input("X").dtype, kNames);
  };
  def.precision = Precision::kHigh;
  OpDef grad = GradientOf(&def, {"X", "Out", OneOfAnyRank("Out@GRAD")}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD * exp(X - Out); 0 where Out is -inf.";
  grad.in_place = {{"X", "X@GRAD"}};
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "logsumexp", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>("logsumexp_grad", []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace skiff
