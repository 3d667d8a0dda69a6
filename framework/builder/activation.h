// Functions of one variable, element by element, and softmax. Each output has shape and dtype of x.
//
// Where PyTorch and PaddlePaddle 2 agree on a default, the layer has this default, even if the op
// has Fluid's: docs/changes.md. Errors of all layers: layers.h.
#pragma once

#include <cstdint>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

Variable Abs(const Variable& x, Site site = Site::current());
// The inverse functions of cos, sin and tan, in radians. Acos and Asin are NaN outside [-1, 1].
Variable Acos(const Variable& x, Site site = Site::current());
Variable Asin(const Variable& x, Site site = Site::current());
Variable Atan(const Variable& x, Site site = Site::current());
Variable Ceil(const Variable& x, Site site = Site::current());
Variable Cos(const Variable& x, Site site = Site::current());
Variable Erf(const Variable& x, Site site = Site::current());
Variable Exp(const Variable& x, Site site = Site::current());
Variable Expm1(const Variable& x, Site site = Site::current());
Variable Floor(const Variable& x, Site site = Site::current());
Variable Log(const Variable& x, Site site = Site::current());
Variable Log1p(const Variable& x, Site site = Site::current());
Variable Reciprocal(const Variable& x, Site site = Site::current());
Variable Relu(const Variable& x, Site site = Site::current());
Variable Relu6(const Variable& x, Site site = Site::current());
Variable Round(const Variable& x, Site site = Site::current());
Variable Rsqrt(const Variable& x, Site site = Site::current());
Variable Sigmoid(const Variable& x, Site site = Site::current());
Variable Sign(const Variable& x, Site site = Site::current());
// x / (1 + exp(-x)): another name of Swish.
Variable Silu(const Variable& x, Site site = Site::current());
Variable Sin(const Variable& x, Site site = Site::current());
Variable Softsign(const Variable& x, Site site = Site::current());
Variable Sqrt(const Variable& x, Site site = Site::current());
Variable Square(const Variable& x, Site site = Site::current());
Variable Swish(const Variable& x, Site site = Site::current());
Variable Tanh(const Variable& x, Site site = Site::current());

// x where x is positive, alpha · x elsewhere.
Variable LeakyRelu(const Variable& x, float alpha = 0.01f, Site site = Site::current());
// x where x is positive, alpha · (exp(x) - 1) elsewhere.
Variable Elu(const Variable& x, float alpha = 1.0f, Site site = Site::current());
// x times the normal distribution's integral up to x; `approximate`: by tanh.
Variable Gelu(const Variable& x, bool approximate = false, Site site = Site::current());
// slope · x + offset, clipped to [0, 1].
Variable HardSigmoid(const Variable& x, float slope = 0.16666667f, float offset = 0.5f,
                     Site site = Site::current());
// x · (x + offset, clipped to [0, threshold]) / scale. Threshold and scale must be positive.
Variable HardSwish(const Variable& x, float threshold = 6.0f, float scale = 6.0f,
                   float offset = 3.0f, Site site = Site::current());
// x · tanh(log(1 + exp(x))); the logarithm is taken for x above the threshold.
Variable Mish(const Variable& x, float threshold = 20.0f, Site site = Site::current());
// x to the power of a number.
Variable Pow(const Variable& x, float factor, Site site = Site::current());

struct SeluOptions {
  float scale = 1.0507009873554805f;
  float alpha = 1.6732632423543772f;
};
// scale · x where x is positive, scale · alpha · (exp(x) - 1) elsewhere. Scale must be positive,
// alpha at least 0.
Variable Selu(const Variable& x, const SeluOptions& options = {}, Site site = Site::current());
// log(1 + exp(beta · x)) / beta; x itself where beta · x is above the threshold.
Variable Softplus(const Variable& x, float beta = 1.0f, float threshold = 20.0f,
                  Site site = Site::current());
// log(sigmoid(x)), which stays finite where the sigmoid is 0.
Variable LogSigmoid(const Variable& x, Site site = Site::current());
// The first half of x along `axis` (negative from the back), times the sigmoid of the second half
// (Dauphin et al. 2017). The extent of the axis must be known and even.
Variable Glu(const Variable& x, int64_t axis = -1, Site site = Site::current());
// Softmax along `axis`, negative from the back.
Variable Softmax(const Variable& x, int64_t axis = -1, Site site = Site::current());

}  // namespace skiff::layers
