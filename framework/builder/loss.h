// Losses: one number a sample, unless said otherwise. Reduce them with Mean.
#pragma once

#include <cstdint>
#include <source_location>

#include "framework/builder/activation.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct CrossEntropyOptions {
  bool soft_label = false;      // the label is a distribution of the input's shape
  int32_t ignore_index = -100;  // samples of this label count 0
};
// -log(x[label]) of probabilities x [N, classes] and int64 labels [N, 1]: [N, 1].
Variable CrossEntropy(const Variable& x, const Variable& label,
                      const CrossEntropyOptions& options = {}, Site site = Site::current());

struct SoftmaxWithCrossEntropyOptions {
  bool soft_label = false;
  int32_t ignore_index = -100;
  bool numeric_stable_mode = true;
  int32_t axis = -1;  // the dim of the classes
};
// Cross-entropy of softmax(logits): the logits' shape with 1 for the dim of the classes.
Variable SoftmaxWithCrossEntropy(const Variable& logits, const Variable& label,
                                 const SoftmaxWithCrossEntropyOptions& options = {},
                                 Site site = Site::current());
struct SoftmaxLoss {
  Variable loss;
  Variable softmax;
};
// The same, with the probabilities.
SoftmaxLoss SoftmaxWithCrossEntropyAndSoftmax(const Variable& logits, const Variable& label,
                                              const SoftmaxWithCrossEntropyOptions& options = {},
                                              Site site = Site::current());

// (x - label)², element by element.
Variable SquareErrorCost(const Variable& x, const Variable& label, Site site = Site::current());

}  // namespace skiff::layers
