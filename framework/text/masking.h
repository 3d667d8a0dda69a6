// Knowledge masking: hides whole units of a text, for a model to fill in.
//
// Sources: Devlin et al., "BERT" (2019), section 3.1, Task #1; Sun et al., "ERNIE: Enhanced
// Representation through Knowledge Integration" (2019), section 3.2.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/text/lexicon.h"
#include "framework/text/tokenizer.h"
#include "framework/text/vocabulary.h"

namespace skiff::text {

class RandomDraws;  // random_draws.h

enum class MaskingUnit {
  kPiece,   // each word piece for itself
  kWord,    // the pieces of a word
  kPhrase,  // the words of an entry of a lexicon; elsewhere as kWord
};

struct MaskingOptions {
  MaskingUnit unit = MaskingUnit::kWord;
  double rate = 0.15;                      // of the units are chosen
  std::optional<double> phrase_rate = {};  // of the lexicon's entries; as `rate`, if not given
  // How the tokens of a chosen unit change: to [MASK], to random tokens or, in the remaining cases,
  // not at all.
  double mask_share = 0.8;
  double random_share = 0.1;
  int64_t most_masked = 20;  // tokens of a text; a unit that would be too much isn't chosen
};

// Tokens [first, last) of a text.
struct TokenRange {
  int64_t first = 0;
  int64_t last = 0;
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

// The tokens that a model has to predict.
struct MaskedTokens {
  std::vector<int64_t> positions = {};  // ascending
  std::vector<TokenId> labels = {};     // the tokens before masking
};

// Thread-safe.
class Masker {
 public:
  // Vocabulary and lexicon outlive the masker; only kPhrase needs a lexicon. Throws Error
  // (kInvalidArgument) if it has none, for rates and shares outside [0, 1], shares of more than 1
  // together, most_masked < 1, and a vocabulary that has special tokens only.
  Masker(const Vocabulary* vocabulary, const Lexicon* lexicon, const MaskingOptions& options);

  // Chooses units at random and changes their tokens. Special tokens ([UNK] among them) are in no
  // unit. Of n units round(rate × n) are chosen, but at least one if there are any and any fits.
  // One draw decides for a whole unit; random tokens are never special tokens. The same draws give
  // the same result.
  MaskedTokens Mask(TokenSequence* tokens, RandomDraws* random) const;

  const MaskingOptions& options() const { return options_; }

 private:
  struct Units {
    std::vector<TokenRange> plain;
    std::vector<TokenRange> phrases;
  };
  enum class Change { kMask, kRandom, kKeep };

  Units FindUnits(const TokenSequence& tokens) const;
  std::vector<TokenRange> Choose(Units units, RandomDraws* random) const;
  Change DrawChange(RandomDraws* random) const;
  TokenId DrawToken(RandomDraws* random) const;

  const Vocabulary* vocabulary_;
  const Lexicon* lexicon_;
  MaskingOptions options_;
};

}  // namespace skiff::text
