// A tagger of sentences: bidirectional recurrent layers below a linear-chain conditional random
// field (Huang, Xu, Yu, "Bidirectional LSTM-CRF Models for Sequence Tagging", 2015, with gated
// recurrent units and without their features of spelling), on ragged batches.
#pragma once

#include <cstdint>

#include "framework/builder/variable.h"
#include "framework/training/optimization.h"
#include "framework/training/training_program.h"
#include "models/tagger/tag_set.h"

namespace skiff::models {

struct TaggerOptions {
  int64_t words = 0;  // of the vocabulary; must be set
  int64_t tags = 0;   // must be set
  int64_t embedding = 64;
  int64_t hidden = 64;  // of the state of each direction
  int64_t layers = 1;
  float dropout = 0.3f;  // of the words' vectors and of what the tags are scored by
};

// Appends the network to the default programs: words are ragged, [words] int64. Returns the scores
// of the tags of each word, [words, tags], without the transitions between tags. Throws an Error
// (kInvalidArgument) for a size that CheckSizes refuses, fewer than two tags, and a dropout outside
// [0, 1).
Variable TagScores(const Variable& words, const TaggerOptions& options);

// The same with the loss: the mean over sentences of the negative log-likelihood of their tags,
// ragged [words, 1], in nats.
Variable TaggerLoss(const Variable& words, const Variable& tags, const TaggerOptions& options);

// The feeds are those of TagReader. The metric that decides is F1, of the entities of all batches
// of an evaluation; the saved model reads words and gives the most likely tags, [words, 1]. `tags`
// are those of the data, and as many as options.tags. Throws what TagScores and Optimize throw.
training::TrainingProgram BuildTagger(const TaggerOptions& options, const TagSet& tags,
                                      const training::OptimizationOptions& optimization,
                                      uint64_t seed);

}  // namespace skiff::models
