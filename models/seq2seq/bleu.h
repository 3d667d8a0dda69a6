// Corpus BLEU: Papineni, Roukos, Ward, Zhu, "BLEU: a Method for Automatic Evaluation of Machine
// Translation", 2002.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace skiff::models {

// The precision of n-grams for an n of which the translations have some, but none in common with
// the references.
enum class BleuSmoothing {
  kNone,  // 0, and so is the score, as published
  // 1 / (2^k · the number of n-grams), for the k-th such n (method 3 of Chen and Cherry 2014), as
  // in NIST's mteval and by default in sacrebleu
  kExponential,
};

struct Bleu {
  double score = 0;                    // in percent, as the next
  std::array<double, 4> precisions{};  // of n-grams of 1 to 4 tokens
  double brevity_penalty = 0;          // below 1 if the translations are shorter than expected
  int64_t tokens = 0;                  // of the translations
  int64_t expected_tokens = 0;
};

// Compares each translation with the expected one: the geometric mean of the precisions over the
// whole corpus, times the brevity penalty. If there is no n-gram of some n, or not one token fits,
// the score is 0. Throws an Error (kInvalidArgument) for different numbers of texts.
Bleu CorpusBleu(std::span<const std::vector<std::string>> translations,
                std::span<const std::vector<std::string>> expected,
                BleuSmoothing smoothing = BleuSmoothing::kExponential);

}  // namespace skiff::models
