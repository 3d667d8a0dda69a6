// Prefix beam search: the most probable labels of a sequence that a network with a CTC loss reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace skiff::text {

struct CtcBeamOptions {
  int64_t beam_width = 16;  // the most prefixes that are kept after a step
  int64_t blank = 0;        // the class that is no label
  int64_t best = 1;         // the most labellings that are returned
};

// Labels of a sequence, and the logarithm of the sum of the probabilities of the paths that the
// search has kept for them, at most 0.
struct CtcLabelling {
  std::vector<int64_t> labels = {};
  double score = 0;
};

// Returns the best labellings of one sequence, the best one first; of equal scores in an order that
// depends on the arguments alone. `logits` [steps, classes] are the numbers before the softmax, as
// for layers::WarpCtc; logarithms of probabilities are logits, too. Minus infinity is a probability
// of 0. Without steps, the only labelling has no labels and the score 0.
//
// A path has a class at each step; its labels are what remains when repeated classes are merged and
// blanks are dropped. The search keeps prefixes of labellings, and for each
// the probability of its paths that end with a blank, and of its other paths. So it adds up the
// paths of a labelling, which the most probable path alone (layers::CtcGreedyDecoder) doesn't. If
// the beam holds all prefixes, the labellings and scores are exact; a prefix that was dropped loses
// its paths. It computes in float64, in logarithms, and takes time for steps * beam_width *
// classes.
//
// Throws an Error: kInvalidArgument for beam_width or best below 1, a blank outside [0, classes), a
// number of logits that isn't a multiple of `classes`, and, naming step and class, for a logit that
// is NaN or plus infinity and for a step at which each class has the probability 0.
//
// Source: A. Hannun et al., "First-pass large vocabulary continuous speech recognition using
// bi-directional recurrent DNNs", 2014, without its language model.
std::vector<CtcLabelling> DecodeCtc(std::span<const float> logits, int64_t classes,
                                    const CtcBeamOptions& options = {});

}  // namespace skiff::text
