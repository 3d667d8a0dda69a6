// CUDA kernel of write_to_cache; write_to_cache.cc has the formula.
#include <memory>

#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/common/cuda/cuda_words.cuh"
#include "operators/common/memory_mover.h"
#include "operators/nn/attention/cache_rows.h"

namespace skiff {
namespace {

template <typename Word>
struct WriteCacheWords {
  __device__ void operator()(int64_t i) const {
    const CudaDivision at = Divide(i, rows.tokens * row_words);
    const int64_t row =
        at.quotient * rows.capacity + rows.Clamped(positions[at.quotient * rows.tokens]);
    out[row * row_words + at.rest] = x[i];
  }

  CacheRows rows;
  int64_t row_words;
  const int64_t* positions;
  const Word* x;
  Word* out;
};

std::unique_ptr<Kernel> PrepareWriteToCache(PrepareContext& context) {
  return MakeRowsKernel([rows = CacheRows(context), cache = In<>(context, "Cache"),
                         x = In<>(context, "X"), positions = In<int64_t>(context, "Positions"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    MemoryMoverOf(run).CopyBytes(run, cache(run), out(run), cache.tensor(run).byte_count());
    const int64_t bytes = x.tensor(run).byte_count();
    if (bytes == 0) return;
    const int64_t word_bytes = WordBytes({rows.row_bytes, AddressOf(x(run)), AddressOf(out(run))});
    VisitWord(word_bytes, [&]<typename Word>() {
      ForEachOnDevice(run, "write_to_cache", bytes / word_bytes,
                      WriteCacheWords<Word>{.rows = rows,
                                            .row_words = rows.row_bytes / word_bytes,
                                            .positions = positions(run),
                                            .x = static_cast<const Word*>(x(run)),
                                            .out = static_cast<Word*>(out(run))});
    });
  });
}

}  // namespace

void RegisterWriteToCacheCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "write_to_cache", [=]<typename>(PrepareContext& context) {
    return PrepareWriteToCache(context);
  });
}

}  // namespace skiff
