// How a parameter gets its first value: one op in the startup program.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "framework/ir/api/program.h"

namespace skiff {

class Initializer {
 public:
  // Makes the op that fills the variable (its output is set to it).
  using MakeOp = std::function<ir::Op(const ir::Var&)>;

  Initializer() = default;  // undefined: the layer's own choice
  explicit Initializer(MakeOp make) : make_(std::move(make)) {}

  bool defined() const { return make_ != nullptr; }
  ir::Op Make(const ir::Var& var) const;

 private:
  MakeOp make_;
};

// Fan-in and fan-out, if not given, are computed as in Fluid: dims [i, o] give i and o; filters
// [o, i, k…] give i·Πk and o·Πk; a vector gives its length for both. A seed of 0 is the program's.
namespace initializer {

Initializer Constant(double value);

struct UniformOptions {
  float low = -1.0f;
  float high = 1.0f;
  int32_t seed = 0;
};
// Uniform in [low, high). Throws an Error (kInvalidArgument) if low > high.
Initializer Uniform(const UniformOptions& options = {});

struct NormalOptions {
  float mean = 0.0f;
  float stddev = 1.0f;
  int32_t seed = 0;
};
// Normal. Throws an Error (kInvalidArgument) if the deviation is negative.
Initializer Normal(const NormalOptions& options = {});
// Normal, drawn again outside of two standard deviations. Throws as Normal does.
Initializer TruncatedNormal(const NormalOptions& options = {});

// Of Xavier and Msra. Making their ops throws an Error (kInvalidArgument) if fan-in or fan-out
// isn't positive.
struct FanOptions {
  bool uniform = true;
  std::optional<int64_t> fan_in = {};
  std::optional<int64_t> fan_out = {};  // not used by Msra
  int32_t seed = 0;
};
// Uniform within ±sqrt(6 / (fan_in + fan_out)), or normal with deviation
// sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010).
Initializer Xavier(const FanOptions& options = {});
// Uniform within ±sqrt(6 / fan_in), or normal with deviation sqrt(2 / fan_in) (He et al. 2015).
Initializer Msra(const FanOptions& options = {});

// The values themselves, in row-major order, through assign_value. Making the op throws an Error
// (kInvalidArgument) if there aren't as many as the parameter has elements, or if they are of
// another dtype.
Initializer FromArray(std::vector<float> values);
Initializer FromArray(std::vector<double> values);
Initializer FromArray(std::vector<int32_t> values);
Initializer FromArray(std::vector<int64_t> values);

}  // namespace initializer
}  // namespace skiff
