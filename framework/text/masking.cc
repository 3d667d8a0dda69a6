#include "framework/text/masking.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "framework/base/error.h"
#include "framework/text/random_draws.h"

namespace skiff::text {
namespace {

bool IsShare(double value) { return value >= 0 && value <= 1; }

int64_t CountToChoose(double rate, size_t units) {
  return std::llround(rate * static_cast<double>(units));
}

// The end of the word that has a piece at `first`.
int64_t WordEnd(const TokenSequence& tokens, int64_t first) {
  int64_t end = first + 1;
  while (end < tokens.size() && tokens.roles[static_cast<size_t>(end)] == TokenRole::kInsideWord) {
    ++end;
  }
  return end;
}

}  // namespace

Masker::Masker(const Vocabulary* vocabulary, const Lexicon* lexicon, const MaskingOptions& options)
    : vocabulary_(vocabulary), lexicon_(lexicon), options_(options) {
  SKIFF_ENFORCE(IsShare(options.rate) && IsShare(options.phrase_rate.value_or(options.rate)),
                kInvalidArgument, "masking: rate = ", options.rate,
                ", phrase_rate = ", options.phrase_rate.value_or(options.rate),
                ": expected numbers from 0 to 1");
  SKIFF_ENFORCE(IsShare(options.mask_share) && IsShare(options.random_share) &&
                    options.mask_share + options.random_share <= 1 + 1e-9,
                kInvalidArgument, "masking: mask_share = ", options.mask_share,
                ", random_share = ", options.random_share,
                ": expected numbers from 0 to 1 that are at most 1 together");
  SKIFF_ENFORCE(options.most_masked >= 1, kInvalidArgument,
                "masking: most_masked = ", options.most_masked, ": expected at least 1");
  SKIFF_ENFORCE(options.unit != MaskingUnit::kPhrase || lexicon != nullptr, kInvalidArgument,
                "masking of phrases needs a lexicon");
  SKIFF_ENFORCE(vocabulary->size() > std::ssize(kSpecialTokens), kInvalidArgument,
                "masking: the vocabulary has special tokens only");
}

Masker::Units Masker::FindUnits(const TokenSequence& tokens) const {
  Units units;
  for (int64_t first = 0; first < tokens.size();) {
    if (tokens.roles[static_cast<size_t>(first)] == TokenRole::kSpecial) {
      ++first;
      continue;
    }
    int64_t last = options_.unit == MaskingUnit::kPiece ? first + 1 : WordEnd(tokens, first);
    const int64_t phrase =
        options_.unit == MaskingUnit::kPhrase ? lexicon_->LongestMatch(tokens, first) : 0;
    if (phrase > 0) last = first + phrase;
    (phrase > 0 ? units.phrases : units.plain).push_back({first, last});
    first = last;
  }
  return units;
}

std::vector<TokenRange> Masker::Choose(Units units, RandomDraws* random) const {
  std::vector<TokenRange> chosen;
  int64_t room = options_.most_masked;
  const auto take = [&](const std::vector<TokenRange>& candidates, int64_t count) {
    for (const TokenRange& unit : candidates) {
      if (count <= 0) return;
      if (unit.last - unit.first > room) continue;
      chosen.push_back(unit);
      room -= unit.last - unit.first;
      --count;
    }
  };
  random->Shuffle(&units.phrases);
  random->Shuffle(&units.plain);
  take(units.phrases,
       CountToChoose(options_.phrase_rate.value_or(options_.rate), units.phrases.size()));
  take(units.plain, CountToChoose(options_.rate, units.plain.size()));
  if (chosen.empty()) take(units.plain, 1);
  if (chosen.empty()) take(units.phrases, 1);
  std::sort(chosen.begin(), chosen.end(),
            [](const TokenRange& a, const TokenRange& b) { return a.first < b.first; });
  return chosen;
}

Masker::Change Masker::DrawChange(RandomDraws* random) const {
  const double drawn = random->Unit();
  if (drawn < options_.mask_share) return Change::kMask;
  return drawn < options_.mask_share + options_.random_share ? Change::kRandom : Change::kKeep;
}

TokenId Masker::DrawToken(RandomDraws* random) const {
  while (true) {
    const auto id = static_cast<TokenId>(random->Below(vocabulary_->size()));
    if (!vocabulary_->IsSpecial(id)) return id;
  }
}

MaskedTokens Masker::Mask(TokenSequence* tokens, RandomDraws* random) const {
  MaskedTokens masked;
  for (const TokenRange& unit : Choose(FindUnits(*tokens), random)) {
    const Change change = DrawChange(random);
    for (int64_t i = unit.first; i < unit.last; ++i) {
      TokenId& id = tokens->ids[static_cast<size_t>(i)];
      masked.positions.push_back(i);
      masked.labels.push_back(id);
      if (change == Change::kMask) id = vocabulary_->mask();
      if (change == Change::kRandom) id = DrawToken(random);
    }
  }
  return masked;
}

}  // namespace skiff::text
