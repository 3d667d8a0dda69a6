// The programs that translate with a trained network.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/ir/program.h"
#include "models/seq2seq/network.h"

namespace skiff::models {

// The feeds of the translators besides PairReader::kSource: [n], int64, whose extent is the most
// tokens of a translation.
inline constexpr const char* kTranslationRoom = "room";

struct TranslatorOutputs {
  std::string tokens;   // [steps, sentences], int64: after kEndId anything may follow
  std::string weights;  // [steps, source tokens], float32: how much a step looked at each
};

// Returns a program that translates, taking the most probable token in each step, until all
// sentences have ended or n tokens are written. Throws an Error (kInvalidArgument) for options that
// Seq2SeqNetwork refuses.
std::unique_ptr<Program> BuildTranslator(const Seq2SeqOptions& options, TranslatorOutputs* outputs);

// Useful penalties are below 2. With a much larger penalty, all scores would be 0.
inline constexpr float kLargestLengthPenalty = 10;

// With a wider beam, the hypotheses of a few sentences would fill the memory.
inline constexpr int64_t kWidestBeam = 1000;

struct BeamOptions {
  int64_t width = 4;  // hypotheses of a sentence
  // Hypotheses are ranked by log(probability) / ((5 + tokens) / 6)^length_penalty (Wu et al. 2016,
  // section 7), in each step, where `tokens` counts the end, too: the larger, the longer the
  // translations. At 0 the most probable hypothesis is the best one.
  float length_penalty = 0.0f;
};

// A sentence has `width` hypotheses, the best one first: column s · width + i is hypothesis i of
// sentence s.
struct BeamTranslatorOutputs {
  std::string tokens;  // [steps, sentences · width], int64: after kEndId there is kEndId
  std::string scores;  // [sentences · width], float32: what ranks the hypotheses
  // [steps, sentences · width], int64: which of the hypotheses of the step before, by column, each
  // continues.
  std::string parents;
  // [steps, source tokens · width], float32: how much each hypothesis of the step before, by
  // column, looked at the tokens of its sentence.
  std::string weights;
};
// Scores of hypotheses that don't exist, where there are fewer than `width`, are below this number.
inline constexpr float kNoHypothesis = -1e25f;

// Throws an Error (kInvalidArgument) for a width that isn't in [1, kWidestBeam], and a
// length_penalty that isn't in [0, kLargestLengthPenalty].
void CheckBeam(const BeamOptions& options);

// Returns a program that translates by a beam search. It stops when n tokens are written, or when
// the best hypothesis of each sentence has ended and no open hypothesis could overtake, even if all
// further tokens were certain. So the best hypothesis of a sentence doesn't depend on the rest of
// the batch; how far its other hypotheses have come does. A hypothesis that has ended carries on
// with kEndId alone and keeps its score. Throws what CheckBeam throws, and an Error
// (kInvalidArgument) for options that Seq2SeqNetwork refuses.
std::unique_ptr<Program> BuildBeamTranslator(const Seq2SeqOptions& options, const BeamOptions& beam,
                                             BeamTranslatorOutputs* outputs);

}  // namespace skiff::models
