// The program that translates with a trained network.
#pragma once

#include <memory>
#include <string>

#include "framework/ir/program.h"
#include "models/seq2seq/network.h"

namespace skiff::models {

// What the translator reads besides PairReader::kSource: [n], int64, whose extent is the most
// tokens of a translation.
inline constexpr const char* kTranslationRoom = "room";

struct TranslatorOutputs {
  std::string tokens;   // [steps, sentences], int64: after kEnd anything may follow
  std::string weights;  // [steps, source tokens], float32: how much a step looked at each
};

// Returns a program that translates, taking the most probable token in each step, until all
// sentences have ended or n tokens are written. Throws what Seq2SeqNetwork throws.
std::unique_ptr<Program> BuildTranslator(const Seq2SeqOptions& options, TranslatorOutputs* outputs);

}  // namespace skiff::models
