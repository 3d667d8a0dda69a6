// Functions of one variable, element by element, and softmax. Each output has shape and dtype of x.
#pragma once

#include <cstdint>
#include <source_location>

#include "framework/builder/variable.h"

namespace skiff::layers {

using Site = std::source_location;

Variable Cos(const Variable& x, Site site = Site::current());
Variable Exp(const Variable& x, Site site = Site::current());
Variable Floor(const Variable& x, Site site = Site::current());
Variable Log(const Variable& x, Site site = Site::current());
Variable Relu(const Variable& x, Site site = Site::current());
Variable Sigmoid(const Variable& x, Site site = Site::current());
Variable Sign(const Variable& x, Site site = Site::current());
Variable Sqrt(const Variable& x, Site site = Site::current());
Variable Square(const Variable& x, Site site = Site::current());
Variable Tanh(const Variable& x, Site site = Site::current());

// x where x is positive, alpha · x elsewhere.
Variable LeakyRelu(const Variable& x, float alpha = 0.02f, Site site = Site::current());
// slope · x + offset, to [0, 1].
Variable HardSigmoid(const Variable& x, float slope = 0.2f, float offset = 0.5f,
                     Site site = Site::current());
// Softmax along `axis`, negative from the back.
Variable Softmax(const Variable& x, int32_t axis = -1, Site site = Site::current());

}  // namespace skiff::layers
