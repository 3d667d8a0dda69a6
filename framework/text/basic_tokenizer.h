// Text to words, as BERT's basic tokenizer does it (Devlin et al., "BERT: Pre-training of Deep
// Bidirectional Transformers", 2019; the rules are the same as in the package `tokenizers`).
//
//   BasicTokens("Ça va, 你好!") is {"ca", "va", ",", "你", "好", "!"}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skiff::text {

struct BasicTokenizerOptions {
  bool lower_case = true;
  std::optional<bool> strip_accents = {};  // as lower_case, if not given
  bool split_cjk = true;                   // each ideograph is a word
};

// Removes control characters, NUL and U+FFFD (so malformed UTF-8 vanishes), sets spaces around
// ideographs, strips accents (NFD without the category Mn), lowers the case of each character, and
// cuts at white space and around each punctuation character. Never fails.
std::vector<std::string> BasicTokens(std::string_view text,
                                     const BasicTokenizerOptions& options = {});

}  // namespace skiff::text
