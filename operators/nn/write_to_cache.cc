// write_to_cache: Out = Cache with X in the rows of each sequence from the position of its first
// token on, Out[n, Positions[n, 0] + i] = X[n, i].
//
// An op of Skiff's own: attention of a token to those before needs their keys and values, which a
// cache has room for. The op works in place, so a step of generation writes its own rows only.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/common/half.h"
#include "operators/common/input_checks.h"
#include "operators/common/memory_mover.h"
#include "operators/nn/attention/cache_rows.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const TensorMeta& cache = context.Input("Cache");
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(cache.shape.rank() >= 2 && x.rank() == cache.shape.rank(), kInvalidArgument,
                "write_to_cache: Cache has the shape ", cache.shape, " and X ", x,
                ", expected [N, capacity, ...] and [N, L, ...]");
  Shape expected = cache.shape;
  expected[1] = x[1];
  CheckInputLike(context, "X", expected, cache.dtype);
  SKIFF_ENFORCE(cache.shape[1] < 0 || x[1] <= cache.shape[1], kInvalidArgument,
                "write_to_cache: X has ", x[1], " rows for each sequence, expected at most the ",
                cache.shape[1], " that the cache has");
  CheckInputLike(context, "Positions", {cache.shape[0], x[1]}, DType::kInt64);
  context.SetOutputLike("Out", "Cache");
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([rows = CacheRows(context), cache = In<>(context, "Cache"),
                         x = In<>(context, "X"), positions = In<int64_t>(context, "Positions"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    CopyBytes(cache(run), out(run), cache.tensor(run).byte_count());
    if (rows.tokens == 0) return;
    const auto* from = static_cast<const char*>(x(run));
    auto* to = static_cast<char*>(out(run));
    const int64_t* places = positions(run);
    const int64_t bytes = rows.tokens * rows.row_bytes;
    ParallelFor(x.shape(run)[0], std::max<int64_t>(65536 / std::max<int64_t>(bytes, 1), 1),
                [=](int64_t begin, int64_t end) {
                  for (int64_t n = begin; n < end; ++n) {
                    const int64_t row = n * rows.capacity + rows.Clamped(places[n * rows.tokens]);
                    std::memcpy(to + row * rows.row_bytes, from + n * bytes,
                                static_cast<size_t>(bytes));
                  }
                });
  });
}

}  // namespace

void RegisterWriteToCache(OpRegistry& registry) {
  OpDef def;
  def.type = "write_to_cache";
  def.doc =
      "Out = Cache, but Out[n, Positions[n, 0] + i] = X[n, i]: the rows of new tokens behind those "
      "of earlier ones.";
  def.inputs = {{.name = "Cache", .doc = "[N, capacity, ...]."},
                {.name = "X", .doc = "[N, L, ...], L at most the capacity."},
                {.name = "Positions",
                 .doc = "[N, L], int64: the positions of the tokens, one after the other in each "
                        "sequence, so that the first one counts; it is clamped to [0, capacity - "
                        "L]."}};
  def.outputs = {{.name = "Out", .doc = "Like Cache."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.kernel_dtype_slot = "Cache";
  def.in_place = {{"Cache", "Out"}};
  def.no_gradient_reason = "caches are for generation; training attends to whole sequences";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, BFloat16, Float16>(
      "write_to_cache", []<typename>(PrepareContext& context) { return Prepare(context); });
}

}  // namespace skiff
