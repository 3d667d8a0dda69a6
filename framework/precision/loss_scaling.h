// The scale by which a loss is multiplied before its gradients are computed in float16, so that
// small gradients don't vanish. Scales are powers of two: multiplying and dividing by a power of
// two changes no digit, unless a number overflows or vanishes.
#pragma once

#include <cstdint>

namespace skiff {

// Defaults are those of PyTorch's GradScaler.
struct LossScaling {
  float initial = 65536.0f;
  // Whether the scale changes: it becomes `growth` times itself after `growth_interval` updates in
  // a row whose gradients are finite, and `backoff` times itself, but no less than 1, after one
  // with a gradient that isn't. Such an update is skipped.
  bool is_dynamic = true;
  int32_t growth_interval = 2000;
  float growth = 2.0f;
  float backoff = 0.5f;
};

// Persistables of a training with loss scaling, which checkpoints hold: float32 [1] and int32 [1].
// Those of a second loss are called <name>_<n>.
inline constexpr const char* kLossScale = "loss_scaling_0";
inline constexpr const char* kGoodSteps = "num_good_steps_0";
inline constexpr const char* kBadSteps = "num_bad_steps_0";

}  // namespace skiff
