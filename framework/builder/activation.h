// Functions of one variable, element by element, and softmax. Each output has shape and dtype of x.
#pragma once

#include <cstdint>
#include <source_location>

#include "framework/builder/variable.h"

namespace skiff::layers {

using Site = std::source_location;

Variable Abs(const Variable& x, Site site = Site::current());
Variable Ceil(const Variable& x, Site site = Site::current());
Variable Cos(const Variable& x, Site site = Site::current());
Variable Exp(const Variable& x, Site site = Site::current());
Variable Floor(const Variable& x, Site site = Site::current());
Variable Log(const Variable& x, Site site = Site::current());
Variable Reciprocal(const Variable& x, Site site = Site::current());
Variable Relu(const Variable& x, Site site = Site::current());
Variable Relu6(const Variable& x, Site site = Site::current());
Variable Rsqrt(const Variable& x, Site site = Site::current());
Variable Sigmoid(const Variable& x, Site site = Site::current());
Variable Sign(const Variable& x, Site site = Site::current());
Variable Sin(const Variable& x, Site site = Site::current());
Variable Softplus(const Variable& x, Site site = Site::current());
Variable Sqrt(const Variable& x, Site site = Site::current());
Variable Square(const Variable& x, Site site = Site::current());
Variable Swish(const Variable& x, Site site = Site::current());
Variable Tanh(const Variable& x, Site site = Site::current());

// x · Φ(x); with `approximate`, the form with tanh.
Variable Gelu(const Variable& x, bool approximate = false, Site site = Site::current());
// x where x > 0, else alpha · x.
Variable LeakyRelu(const Variable& x, float alpha = 0.02f, Site site = Site::current());
// x^factor
Variable Pow(const Variable& x, float factor, Site site = Site::current());
// Softmax along `axis`, negative from the back.
Variable Softmax(const Variable& x, int32_t axis = -1, Site site = Site::current());

}  // namespace skiff::layers
