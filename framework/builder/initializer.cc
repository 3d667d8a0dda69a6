#include "framework/builder/initializer.h"

#include <cmath>
#include <string>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/builder/fill_value.h"

namespace skiff {

Op Initializer::Make(const Var& var) const { return make_(var); }

namespace initializer {
namespace {

struct Fans {
  double in;
  double out;
};

// Fluid's rule: [in, out] for the matrix of a fully connected layer, [out, in, kernel…] for
// filters, each of which sees `field` points per channel.
Fans FansOf(const std::vector<int64_t>& dims) {
  if (dims.empty()) return {1.0, 1.0};
  if (dims.size() == 1) return {static_cast<double>(dims[0]), static_cast<double>(dims[0])};
  if (dims.size() == 2) return {static_cast<double>(dims[0]), static_cast<double>(dims[1])};
  double field = 1.0;
  for (size_t i = 2; i < dims.size(); ++i) field *= static_cast<double>(dims[i]);
  return {static_cast<double>(dims[1]) * field, static_cast<double>(dims[0]) * field};
}

Fans FansOf(const Var& var, const FanOptions& options) {
  Fans fans = FansOf(var.dims);
  if (options.fan_in.has_value()) fans.in = static_cast<double>(*options.fan_in);
  if (options.fan_out.has_value()) fans.out = static_cast<double>(*options.fan_out);
  SKIFF_ENFORCE(fans.in > 0 && fans.out > 0, kInvalidArgument, "initializer of \"", var.name,
                "\": fan-in is ", fans.in, " and fan-out ", fans.out,
                ", expected positive numbers");
  return fans;
}

Op FillOp(const char* type, const Var& var) {
  Op op(type);
  op.SetOutput("Out", {var.name});
  op.SetAttr("shape", std::vector<int64_t>(var.dims));
  op.SetAttr("dtype", static_cast<int32_t>(var.dtype));
  return op;
}

Op NormalOp(const char* type, const Var& var, const NormalOptions& options) {
  Op op = FillOp(type, var);
  op.SetAttr("mean", options.mean).SetAttr("std", options.stddev).SetAttr("seed", options.seed);
  return op;
}

Op UniformOp(const Var& var, const UniformOptions& options) {
  Op op = FillOp("uniform_random", var);
  op.SetAttr("min", options.low).SetAttr("max", options.high).SetAttr("seed", options.seed);
  return op;
}

Initializer NormalOf(const char* type, const NormalOptions& options) {
  SKIFF_ENFORCE(options.stddev >= 0.0f, kInvalidArgument, type, ": the standard deviation is ",
                options.stddev, ", expected none below 0");
  return Initializer([type, options](const Var& var) { return NormalOp(type, var, options); });
}

// Returns the op of the distribution around 0 with this variance. Uniform in [-a, a] has the
// variance a² / 3.
Op OfVariance(const Var& var, double variance, const FanOptions& options) {
  if (!options.uniform) {
    return NormalOp("gaussian_random", var,
                    {.stddev = static_cast<float>(std::sqrt(variance)), .seed = options.seed});
  }
  const float limit = static_cast<float>(std::sqrt(3.0 * variance));
  return UniformOp(var, {.low = -limit, .high = limit, .seed = options.seed});
}

template <typename T>
Initializer Values(std::vector<T> values, const char* attribute) {
  return Initializer([values = std::move(values), attribute](const Var& var) {
    SKIFF_ENFORCE(ElementCount(var.dims) == static_cast<int64_t>(values.size()), kInvalidArgument,
                  "initializer of \"", var.name, "\": ", values.size(), " values, expected ",
                  ElementCount(var.dims));
    SKIFF_ENFORCE(var.dtype == kDTypeOf<T>, kInvalidArgument, "initializer of \"", var.name,
                  "\": values of ", kDTypeOf<T>, ", expected ", var.dtype);
    Op op("assign_value");
    op.SetOutput("Out", {var.name});
    op.SetAttr("shape", std::vector<int32_t>(var.dims.begin(), var.dims.end()));
    op.SetAttr("dtype", static_cast<int32_t>(var.dtype));
    op.SetAttr(attribute, values);
    return op;
  });
}

}  // namespace

Initializer Constant(double value) {
  return Initializer([value](const Var& var) {
    Op op = FillOp("fill_constant", var);
    SetFillValue(&op, var.dtype, value);
    return op;
  });
}

Initializer Uniform(const UniformOptions& options) {
  SKIFF_ENFORCE(options.low <= options.high, kInvalidArgument,
                "uniform initializer: low = ", options.low, " is above high = ", options.high);
  return Initializer([options](const Var& var) { return UniformOp(var, options); });
}

Initializer Normal(const NormalOptions& options) { return NormalOf("gaussian_random", options); }

Initializer TruncatedNormal(const NormalOptions& options) {
  return NormalOf("truncated_gaussian_random", options);
}

Initializer Xavier(const FanOptions& options) {
  return Initializer([options](const Var& var) {
    const Fans fans = FansOf(var, options);
    return OfVariance(var, 2.0 / (fans.in + fans.out), options);
  });
}

Initializer Msra(const FanOptions& options) {
  return Initializer([options](const Var& var) {
    return OfVariance(var, 2.0 / FansOf(var, options).in, options);
  });
}

Initializer FromArray(std::vector<float> values) {
  return Values(std::move(values), "fp32_values");
}
Initializer FromArray(std::vector<double> values) {
  return Values(std::move(values), "fp64_values");
}
Initializer FromArray(std::vector<int32_t> values) {
  return Values(std::move(values), "int32_values");
}
Initializer FromArray(std::vector<int64_t> values) {
  return Values(std::move(values), "int64_values");
}

}  // namespace initializer
}  // namespace skiff
