// Dropout of a range of elements, and its gradient, in float32 and float64.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operators/common/philox_words.h"

namespace skiff {

// Compute elements [first, first + count), where first is a multiple of 4; the pointers point to
// element `first`. Elements that are kept are multiplied by rule.scale (float32) or `scale`.
// mask[i] becomes 1 for a kept element, else 0, unless `mask` is nullptr. `out` may be `x`.
inline void DropoutRange(const DropoutRule& rule, double, int64_t first, int64_t count,
                         const float* x, float* out, uint8_t* mask) {
  DropoutFloat(rule, static_cast<uint64_t>(first), count, x, out, mask);
}

inline void DropoutRange(const DropoutRule& rule, double scale, int64_t first, int64_t count,
                         const double* x, double* out, uint8_t* mask) {
  constexpr int64_t kBatch = 1024;
  uint32_t words[kBatch];
  for (int64_t done = 0; done < count; done += kBatch) {
    const int64_t batch = std::min(kBatch, count - done);
    PhiloxWords(rule.key, static_cast<uint64_t>((first + done) / 4), (batch + 3) / 4, words);
    for (int64_t i = 0; i < batch; ++i) {
      const bool kept = words[i] >= rule.threshold;
      out[done + i] = kept ? x[done + i] * scale : 0.0;
      if (mask != nullptr) mask[done + i] = kept ? 1 : 0;
    }
  }
}

// Set out[i] = mask[i] ? grad[i] * scale : 0. `out` may be `grad`.
inline void MaskedScaleRange(const uint8_t* mask, const float* grad, float scale, int64_t count,
                             float* out) {
  MaskedScaleFloat(mask, grad, scale, count, out);
}

inline void MaskedScaleRange(const uint8_t* mask, const double* grad, double scale, int64_t count,
                             double* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = mask[i] != 0 ? grad[i] * scale : 0.0;
}

}  // namespace skiff
