// Translation with attention: an encoder of gated recurrent units in both directions, and a decoder
// that looks at all of its states in each step (Bahdanau, Cho, Bengio, "Neural Machine Translation
// by Jointly Learning to Align and Translate", 2015).
//
// The decoder's step is written with ordinary layers. In training DynamicRnn repeats it, for each
// sentence as often as its translation has words; the translator repeats it in a while.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/builder/variable.h"
#include "framework/training/optimization.h"
#include "framework/training/training_program.h"

namespace skiff::models {

struct Seq2SeqOptions {
  int64_t source_tokens = 0;  // sizes of the vocabularies; must be set
  int64_t target_tokens = 0;
  int64_t embedding = 64;
  int64_t hidden = 128;  // of the decoder, and of each direction of the encoder
  float dropout = 0.0f;  // of embeddings and of what a token is chosen by
};

// Appends the network to the default programs and returns its mean loss per token in nats. The
// inputs are what a PairReader feeds. Throws an Error (kInvalidArgument) for a size below 1 and a
// dropout outside [0, 1).
Variable Seq2SeqLoss(const Variable& source, const Variable& given, const Variable& label,
                     const Seq2SeqOptions& options);

// The tables of the tokens' vectors, [tokens, embedding].
inline constexpr const char* kSourceTable = "source.table";
inline constexpr const char* kTargetTable = "target.table";

// What the translator reads besides PairReader::kSource: [n], int64, whose extent is the most
// tokens of a translation.
inline constexpr const char* kTranslationRoom = "room";

struct TranslatorOutputs {
  std::string tokens;   // [steps, sentences], int64: after kEnd anything may follow
  std::string weights;  // [steps, source tokens], float32: how much a step looked at each
};

// Returns a program that translates, taking the most probable token in each step, until all
// sentences have ended or n tokens are written. Throws an Error (kInvalidArgument) for a size below
// 1 and a dropout outside [0, 1).
std::unique_ptr<Program> BuildTranslator(const Seq2SeqOptions& options, TranslatorOutputs* outputs);

// The feeds are those of PairReader. The metric that decides is the loss, the mean over the
// targets' tokens in nats. The saved model is the translator. Throws what BuildTranslator and
// Optimize throw.
training::TrainingProgram BuildSeq2Seq(const Seq2SeqOptions& options,
                                       const training::OptimizationOptions& optimization,
                                       uint64_t seed);

}  // namespace skiff::models
