// Losses: one number per sample, unless said otherwise. Reduce them with Mean. Errors of all
// layers: layers.h.
//
// Predictions and labels that are compared element by element need one shape: no loss broadcasts.
// Otherwise it throws an Error (kInvalidArgument) that says both shapes. A hard label is a class
// for each row, int64 or int32: [N, 1], or [N] as in PyTorch.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct CrossEntropyOptions {
  bool soft_label = false;      // the label is a distribution of the input's shape
  int32_t ignore_index = -100;  // samples of this label count 0
};
// -log(x[label]) of probabilities x [..., classes]: [..., 1], or [...] for hard labels of that
// shape.
Variable CrossEntropy(const Variable& x, const Variable& label,
                      const CrossEntropyOptions& options = {}, Site site = Site::current());

struct SoftmaxWithCrossEntropyOptions {
  bool soft_label = false;
  int32_t ignore_index = -100;
  bool numeric_stable_mode = true;
  int64_t axis = -1;  // the dim of the classes
};
// Cross-entropy of softmax(logits): the logits' shape with 1 for the dim of the classes.
Variable SoftmaxWithCrossEntropy(const Variable& logits, const Variable& label,
                                 const SoftmaxWithCrossEntropyOptions& options = {},
                                 Site site = Site::current());
struct SoftmaxLoss {
  Variable loss = {};
  Variable softmax = {};
};
// The same, with the probabilities.
SoftmaxLoss SoftmaxWithCrossEntropyAndSoftmax(const Variable& logits, const Variable& label,
                                              const SoftmaxWithCrossEntropyOptions& options = {},
                                              Site site = Site::current());

// (x - label)², element by element.
Variable SquareErrorCost(const Variable& x, const Variable& label, Site site = Site::current());

struct SigmoidCrossEntropyWithLogitsOptions {
  int32_t ignore_index = -100;  // elements of this label count 0
  bool normalize = false;       // divides by the number of elements that aren't ignored
  // Factors of log(1 + exp(-|x|)), of x's shape; none: 1. BinaryCrossEntropyWithLogits has
  // another pos_weight.
  Variable pos_weight = {};
};
// max(x, 0) - x · label + log(1 + exp(-|x|)), the cross-entropy of sigmoid(x), element by element;
// labels are 0, 1 or between.
Variable SigmoidCrossEntropyWithLogits(const Variable& x, const Variable& label,
                                       const SigmoidCrossEntropyWithLogitsOptions& options = {},
                                       Site site = Site::current());
struct BinaryCrossEntropyWithLogitsOptions {
  // Factors of the loss where the label is 1, broadcast to x: [C] for x [N, C]; none: 1.
  Variable pos_weight = {};
};
// -(pos_weight · label · log(sigmoid(x)) + (1 - label) · log(1 - sigmoid(x))), element by element,
// for labels between 0 and 1 of the shape of x. It is exact for large x, too: nothing overflows.
// Source: PyTorch's binary_cross_entropy_with_logits.
Variable BinaryCrossEntropyWithLogits(const Variable& x, const Variable& label,
                                      const BinaryCrossEntropyWithLogitsOptions& options = {},
                                      Site site = Site::current());
// -(label · log(x) + (1 - label) · log(1 - x)) of probabilities x, element by element, for labels
// between 0 and 1 of the shape of x. Each logarithm is at least -100, so that x may be 0 and 1; the
// loss of another x is NaN. Source: PyTorch's binary_cross_entropy. Where there are logits,
// BinaryCrossEntropyWithLogits is more exact.
Variable BinaryCrossEntropy(const Variable& x, const Variable& label, Site site = Site::current());
// The cross-entropy of probabilities x [N, 1]; epsilon keeps the logarithms finite.
Variable LogLoss(const Variable& x, const Variable& label, float epsilon = 1e-4f,
                 Site site = Site::current());

// With the distance d = |label - x|, element by element: d² / 2 where d <= delta, else
// delta · (d - delta / 2). Delta must be at least 0.
Variable HuberLoss(const Variable& x, const Variable& label, float delta = 1.0f,
                   Site site = Site::current());

struct SmoothL1Options {
  Variable inside_weight = {};   // factors of x - y, of x's shape
  Variable outside_weight = {};  // factors of the terms of the sum
  float sigma = 1.0f;            // the curve becomes a line at 1 / sigma²
};
// The sum over each row of x - y [N, ...] of Huber's curve: [N, 1]. Either both weights are given
// or none, else it throws an Error (kInvalidArgument).
Variable SmoothL1(const Variable& x, const Variable& y, const SmoothL1Options& options = {},
                  Site site = Site::current());

// target · (log(target) - x) of log-probabilities x: element by element (reduction "none"), or a
// scalar, the "sum", the "mean" or the "batchmean" over the first dim.
Variable KldivLoss(const Variable& x, const Variable& target, const std::string& reduction = "mean",
                   Site site = Site::current());

// max(0, margin - label · (left - right)) of scores [N, 1]; the label is 1 where the left one
// should be above the right one, -1 where below.
Variable MarginRankLoss(const Variable& label, const Variable& left, const Variable& right,
                        float margin = 0.0f, Site site = Site::current());

struct NllLossOptions {
  Variable weight = {};            // one element a class; none: all 1
  int64_t ignore_index = -100;     // items of this label count 0
  std::string reduction = "mean";  // or "sum", "none": one loss for each label
};
// -weight[label] · x[label] of log-probabilities x [N, classes, ...], from LogSoftmax for example,
// for labels [N, ...] or [N, 1, ...], which is also the shape of the losses. The mean is the sum of
// the losses over the sum of the items' weights; 0 if this sum is 0. A label outside [0, classes)
// that isn't ignore_index is an Error (kOutOfRange) of the run.
Variable NllLoss(const Variable& x, const Variable& label, const NllLossOptions& options = {},
                 Site site = Site::current());

struct LabelSmoothOptions {
  Variable prior_dist = {};  // one element a class; none: all classes alike
  float epsilon = 0.1f;
};
// (1 - epsilon) · label + epsilon · prior_dist of distributions [..., classes].
Variable LabelSmooth(const Variable& label, const LabelSmoothOptions& options = {},
                     Site site = Site::current());

struct WarpCtcOptions {
  int64_t blank = 0;           // the class that is no label
  bool norm_by_times = false;  // divides a sequence's gradient, not its loss, by its steps
  // Of padded sequences, [sequences], int64: the steps and the labels of each. Both or none.
  Variable logits_length = {};
  Variable label_length = {};
};
// Connectionist temporal classification: [sequences, 1], -log of the probability that the steps of
// a sequence have its labels, where a softmax of `logits` gives the probabilities of the classes at
// each step. Repeated classes count once, and blanks not at all; so equal labels in a row need a
// blank between them. Logits and label are ragged, [rows, classes] and [rows, 1]; or, with lengths,
// logits are [steps, sequences, classes] and label is [sequences, labels]. Labels are int32 or
// int64. A sequence that is too short for its labels has the loss 0 and no gradient. A label
// outside [0, classes), or equal to blank, and a length that doesn't fit are Errors (kOutOfRange)
// of the run. Source: A. Graves et al., "Connectionist temporal classification", ICML 2006.
Variable WarpCtc(const Variable& logits, const Variable& label, const WarpCtcOptions& options = {},
                 Site site = Site::current());

}  // namespace skiff::layers
