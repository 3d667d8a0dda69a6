// The pairs of columns that rotary_embedding turns.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "framework/op/op_context.h"

namespace skiff {

// Two columns of a row.
struct RotaryPair {
  int64_t first;
  int64_t second;
};

struct RotaryColumns {
  // Those of the input `slot`.
  RotaryColumns(const OpContext& context, std::string_view slot)
      : heads(context.IntAttr("num_heads")),
        pairs(context.Input(slot).shape[2] / (2 * heads)),
        is_interleaved(context.Attr<bool>("interleaved")),
        log_step(-std::log(static_cast<double>(context.Attr<float>("base"))) /
                 static_cast<double>(pairs > 0 ? pairs : 1)) {}

  constexpr RotaryPair PairAt(int64_t head, int64_t i) const {
    const int64_t begin = head * 2 * pairs;
    if (is_interleaved) return {begin + 2 * i, begin + 2 * i + 1};
    return {begin + i, begin + pairs + i};
  }

  int64_t heads;
  int64_t pairs;  // of a head
  bool is_interleaved;
  // The angle of pair i is position · exp(i · log_step).
  double log_step;
};

}  // namespace skiff
