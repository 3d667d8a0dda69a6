// Translation with attention: an encoder of gated recurrent units in both directions, and a decoder
// that looks at all of its states in each step (Bahdanau, Cho, Bengio, "Neural Machine Translation
// by Jointly Learning to Align and Translate", 2015).
//
// The decoder's step is written with ordinary layers. In training DynamicRnn repeats it, for each
// sentence as often as its translation has words; the translator repeats it in a while.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/builder/variable.h"
#include "framework/training/optimization.h"
#include "framework/training/training_program.h"
#include "models/seq2seq/network.h"

namespace skiff::models {

// Appends the network to the default programs and returns its mean loss per token in nats. The
// inputs are what a PairReader feeds. Throws an Error (kInvalidArgument) for a size below 1 and a
// dropout outside [0, 1).
Variable Seq2SeqLoss(const Variable& source, const Variable& given, const Variable& label,
                     const Seq2SeqOptions& options);

// The feeds are those of PairReader. The metric that decides is the loss, the mean over the
// targets' tokens in nats. The saved model is the translator. Throws what BuildTranslator and
// Optimize throw.
training::TrainingProgram BuildSeq2Seq(const Seq2SeqOptions& options,
                                       const training::OptimizationOptions& optimization,
                                       uint64_t seed);

}  // namespace skiff::models
