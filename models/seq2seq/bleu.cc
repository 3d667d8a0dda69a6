#include "models/seq2seq/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "framework/base/error.h"

namespace skiff::models {
namespace {

constexpr size_t kOrders = std::tuple_size_v<decltype(Bleu::precisions)>;

using Tokens = std::vector<std::string>;

std::map<Tokens, int64_t> CountNgrams(const Tokens& text, size_t n) {
  std::map<Tokens, int64_t> counts;
  for (auto first = text.begin(); text.end() - first >= static_cast<std::ptrdiff_t>(n); ++first) {
    ++counts[Tokens(first, first + static_cast<std::ptrdiff_t>(n))];
  }
  return counts;
}

struct Fit {
  int64_t fitting = 0;
  int64_t all = 0;
};

// An n-gram fits at most as often as the expected text has it.
void Count(const Tokens& translation, const Tokens& expected, size_t n, Fit* fit) {
  const std::map<Tokens, int64_t> allowed = CountNgrams(expected, n);
  for (const auto& [ngram, count] : CountNgrams(translation, n)) {
    fit->all += count;
    const auto found = allowed.find(ngram);
    if (found != allowed.end()) fit->fitting += std::min(count, found->second);
  }
}

double BrevityPenalty(int64_t tokens, int64_t expected) {
  if (tokens >= expected) return 1;
  return tokens == 0 ? 0
                     : std::exp(1 - static_cast<double>(expected) / static_cast<double>(tokens));
}

}  // namespace

Bleu CorpusBleu(std::span<const Tokens> translations, std::span<const Tokens> expected,
                BleuSmoothing smoothing) {
  SKIFF_ENFORCE(translations.size() == expected.size(), kInvalidArgument, translations.size(),
                " translations, expected ", expected.size());
  std::array<Fit, kOrders> fits;
  Bleu bleu;
  for (size_t i = 0; i < translations.size(); ++i) {
    bleu.tokens += std::ssize(translations[i]);
    bleu.expected_tokens += std::ssize(expected[i]);
    for (size_t n = 1; n <= kOrders; ++n) Count(translations[i], expected[i], n, &fits[n - 1]);
  }
  bleu.brevity_penalty = BrevityPenalty(bleu.tokens, bleu.expected_tokens);
  if (fits[0].fitting == 0) return bleu;
  double smoothed = smoothing == BleuSmoothing::kExponential ? 1 : 0;
  double sum_of_logs = 0;
  for (size_t i = 0; i < kOrders; ++i) {
    const auto [fitting, all] = fits[i];
    if (fitting == 0) smoothed /= 2;
    if (all > 0) {
      bleu.precisions[i] =
          100 * (fitting > 0 ? static_cast<double>(fitting) : smoothed) / static_cast<double>(all);
    }
    sum_of_logs += std::log(bleu.precisions[i]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(sum_of_logs / static_cast<double>(kOrders));
  return bleu;
}

}  // namespace skiff::models
