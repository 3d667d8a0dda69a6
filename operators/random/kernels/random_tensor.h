// Definitions and loops of the ops that make a random tensor.
//
// If the attribute `seed` is 0, the run's seed, the op's id and the step determine the numbers.
// Otherwise {seed, 0, 0} determines them: two ops with the same seed draw the same numbers, in
// every run and every step, as in Fluid.
#pragma once

#include <algorithm>
#include <vector>

#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/philox_words.h"

namespace skiff {

// Returns the key of an op whose `seed` attribute is `seed`.
inline RandomKey InitializerKey(int64_t seed, const KernelContext& run) {
  return seed == 0 ? run.random_key() : RandomKey{static_cast<uint64_t>(seed), 0, 0};
}

// Returns the attribute `shape`, -1 for dims that aren't known. Throws Error for a negative dim.
Shape RandomShapeOf(const OpContext& context);

// Sets Out from the attributes `shape` and `dtype`. Throws Error for a negative dim, and for a
// dtype other than float32 and float64.
void InferRandomTensor(OpContext& context);

// Returns the slots ShapeTensor and ShapeTensorList, which may give the attribute `shape`.
std::vector<SlotDef> ShapeSlots();
// Returns the attributes `shape` (of the given type), `dtype` and `seed`.
std::vector<AttrDef> RandomTensorAttrs(AttrType shape_type);

// Returns an integer in [0, bound) from 64 random bits. 1 <= bound <= 2^32. Some integers are
// likelier than others by less than bound * 2^-64.
inline int64_t NumberBelow(int64_t bound, uint32_t high, uint32_t low) {
  const uint64_t factor = static_cast<uint64_t>(bound);
  return static_cast<int64_t>((high * factor + (low * factor >> 32)) >> 32);
}

// Sets out[i] = element(words), where `words` are the words_per_element words of the stream from
// i * words_per_element on. `words_per_element` must be 1, 2 or 4. Threaded.
template <typename T, typename Element>
void FillFromWords(const RandomKey& key, int64_t words_per_element, Tensor* out,
                   const Element& element) {
  constexpr int64_t kBatchWords = 1024;
  const int64_t batch = kBatchWords / words_per_element;
  const int64_t per_block = 4 / words_per_element;
  T* data = out->data<T>();
  // Parts begin at multiples of the batch, and so at block boundaries.
  ParallelFor(out->element_count(), batch, [&](int64_t begin, int64_t end) {
    uint32_t words[kBatchWords];
    for (int64_t first = begin; first < end; first += batch) {
      const int64_t count = std::min(batch, end - first);
      PhiloxWords(key, static_cast<uint64_t>(first / per_block),
                  (count + per_block - 1) / per_block, words);
      for (int64_t i = 0; i < count; ++i) data[first + i] = element(words + i * words_per_element);
    }
  });
}

}  // namespace skiff
