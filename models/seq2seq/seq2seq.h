// Translation with attention: a recurrent encoder, and a decoder that looks at all of its states in
// each step (Bahdanau, Cho, Bengio, "Neural Machine Translation by Jointly Learning to Align and
// Translate", 2015; Luong, Pham, Manning, "Effective Approaches to Attention-based Neural Machine
// Translation", 2015, with global attention).
//
// The decoder's step is written with ordinary layers, which the translator repeats in a while. In
// training, where all words are known before, one op does all steps, or DynamicRnn repeats the
// layers, for each sentence as often as its translation has words.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/builder/variable.h"
#include "framework/training/optimization.h"
#include "framework/training/training_program.h"
#include "models/seq2seq/network.h"

namespace skiff::models {

// Appends the network to the default programs and returns the loss that is trained: the mean per
// token in nats, to the smoothed labels. The inputs are the feeds of a PairReader. Throws the
// Errors of Seq2SeqNetwork and the network's layers.
Variable Seq2SeqLoss(const Variable& source, const Variable& given, const Variable& label,
                     const Seq2SeqOptions& options);

// The feeds are those of PairReader. The metric that decides is the loss, the mean over the
// targets' tokens in nats, to the labels as they are. The saved model is the translator. Throws
// what BuildTranslator and Optimize throw.
training::TrainingProgram BuildSeq2Seq(const Seq2SeqOptions& options,
                                       const training::OptimizationOptions& optimization,
                                       uint64_t seed);

}  // namespace skiff::models
