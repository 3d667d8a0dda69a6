#include "framework/text/vocabulary_builder.h"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/text/unicode.h"

namespace skiff::text {
namespace {

// A longer word is unknown to a Tokenizer.
constexpr int64_t kLongestWord = 100;

// The tokens of the vocabulary that is made, numbered as they come.
class TokenTable {
 public:
  int32_t Add(const std::string& token) {
    const auto [entry, is_new] = numbers_.emplace(token, static_cast<int32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(token);
    return entry->second;
  }
  // Returns the number of a token, -1 if there is none.
  int32_t Find(const std::string& token) const {
    const auto found = numbers_.find(token);
    return found == numbers_.end() ? -1 : found->second;
  }
  const std::string& token(int32_t number) const { return tokens_[static_cast<size_t>(number)]; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  std::vector<std::string> Take() { return std::move(tokens_); }

 private:
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> numbers_;
};

struct Pair {
  int32_t left;
  int32_t right;
  friend bool operator==(const Pair&, const Pair&) = default;
};

struct PairHash {
  size_t operator()(const Pair& pair) const {
    const auto joined = static_cast<uint64_t>(static_cast<uint32_t>(pair.left)) << 32 |
                        static_cast<uint32_t>(pair.right);
    return std::hash<uint64_t>()(joined);
  }
};

struct Word {
  std::vector<int32_t> pieces;
  int64_t count;
};

// How often a pair is somewhere in a word, and in which words it was when it was counted.
struct PairUse {
  int64_t count = 0;
  std::vector<int32_t> words;
};

// The words, cut into pieces, and the merges that make fewer pieces of them.
class PieceMerger {
 public:
  PieceMerger(std::vector<Word> words, TokenTable* tokens)
      : words_(std::move(words)), tokens_(tokens) {
    for (size_t i = 0; i < words_.size(); ++i) Count(static_cast<int32_t>(i), 1);
    for (const auto& [pair, use] : uses_) queue_.push({use.count, pair});
  }

  // Merges the most frequent pair everywhere; of equally frequent ones the one with the lower
  // numbers. Returns false if there is none with `least` occurrences.
  bool MergeOne(int64_t least) {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const int64_t count = uses_[best.pair].count;
      if (count != best.count) {
        // The count has changed since.
        if (count > 0) queue_.push({count, best.pair});
        continue;
      }
      if (count < least) return false;
      Merge(best.pair);
      return true;
    }
    return false;
  }

 private:
  struct Candidate {
    int64_t count;
    Pair pair;
    bool operator<(const Candidate& other) const {
      if (count != other.count) return count < other.count;
      if (pair.left != other.pair.left) return pair.left > other.pair.left;
      return pair.right > other.pair.right;
    }
  };

  // Adds (sign 1) or takes away (-1) the pairs of a word.
  void Count(int32_t index, int64_t sign) {
    const Word& word = words_[static_cast<size_t>(index)];
    for (size_t i = 0; i + 1 < word.pieces.size(); ++i) {
      PairUse& use = uses_[{word.pieces[i], word.pieces[i + 1]}];
      use.count += sign * word.count;
      if (sign > 0 && (use.words.empty() || use.words.back() != index)) use.words.push_back(index);
    }
  }

  void Merge(const Pair& pair) {
    const int32_t merged = tokens_->Add(tokens_->token(pair.left) +
                                        tokens_->token(pair.right).substr(kContinuation.size()));
    const std::vector<int32_t> in_words = std::move(uses_[pair].words);
    for (const int32_t index : in_words) {
      Word& word = words_[static_cast<size_t>(index)];
      Count(index, -1);
      MergeIn(pair, merged, &word.pieces);
      Count(index, 1);
      // Only a new piece makes pairs more frequent.
      for (size_t i = 0; i < word.pieces.size(); ++i) {
        if (word.pieces[i] != merged) continue;
        if (i > 0) changed_.insert({word.pieces[i - 1], merged});
        if (i + 1 < word.pieces.size()) changed_.insert({merged, word.pieces[i + 1]});
      }
    }
    uses_.erase(pair);
    for (const Pair& changed : changed_) queue_.push({uses_[changed].count, changed});
    changed_.clear();
  }

  static void MergeIn(const Pair& pair, int32_t merged, std::vector<int32_t>* pieces) {
    size_t kept = 0;
    for (size_t i = 0; i < pieces->size(); ++i, ++kept) {
      const bool here = i + 1 < pieces->size() && Pair{(*pieces)[i], (*pieces)[i + 1]} == pair;
      (*pieces)[kept] = here ? merged : (*pieces)[i];
      if (here) ++i;
    }
    pieces->resize(kept);
  }

  std::vector<Word> words_;
  TokenTable* tokens_;
  std::unordered_map<Pair, PairUse, PairHash> uses_;
  std::priority_queue<Candidate> queue_;
  std::unordered_set<Pair, PairHash> changed_;  // by the merge that is being made
};

std::set<char32_t> ChooseAlphabet(const WordCounts& words, const VocabularyOptions& options) {
  std::map<char32_t, int64_t> counts;
  for (const auto& [word, count] : words) {
    for (const char32_t character : DecodeUtf8(word)) counts[character] += count;
  }
  std::vector<std::pair<char32_t, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (static_cast<int64_t>(sorted.size()) > options.alphabet_size) {
    sorted.resize(static_cast<size_t>(options.alphabet_size));
  }
  std::set<char32_t> alphabet;
  for (const auto& [character, count] : sorted) alphabet.insert(character);
  return alphabet;
}

std::string Continuing(char32_t character) {
  return std::string(kContinuation) + EncodeUtf8({&character, 1});
}

// The characters that are inside a word somewhere.
std::set<char32_t> InsideWords(const WordCounts& words) {
  std::set<char32_t> inside;
  for (const auto& [word, count] : words) {
    const std::u32string characters = DecodeUtf8(word);
    if (!characters.empty()) inside.insert(characters.begin() + 1, characters.end());
  }
  return inside;
}

void AddAlphabet(const WordCounts& words, const VocabularyOptions& options, TokenTable* tokens) {
  std::set<char32_t> alphabet = ChooseAlphabet(words, options);
  std::set<char32_t> inside = InsideWords(words);
  for (const char32_t character : DecodeUtf8(options.required_alphabet)) {
    alphabet.insert(character);
    inside.insert(character);
  }
  for (const char32_t character : alphabet) {
    tokens->Add(EncodeUtf8({&character, 1}));
    if (inside.contains(character)) tokens->Add(Continuing(character));
  }
}

// The word's characters as pieces; none if the alphabet lacks one of them.
std::vector<int32_t> CutIntoCharacters(const std::string& word, const TokenTable& tokens) {
  std::vector<int32_t> pieces;
  for (const char32_t character : DecodeUtf8(word)) {
    const int32_t piece =
        tokens.Find(pieces.empty() ? EncodeUtf8({&character, 1}) : Continuing(character));
    if (piece < 0) return {};
    pieces.push_back(piece);
  }
  return pieces;
}

void Check(const WordCounts& words, const VocabularyOptions& options) {
  SKIFF_ENFORCE(!words.empty(), kInvalidArgument, "no words to make a vocabulary from");
  SKIFF_ENFORCE(options.least_pair_count >= 1 && options.alphabet_size >= 1, kInvalidArgument,
                "least_pair_count = ", options.least_pair_count,
                ", alphabet_size = ", options.alphabet_size, ": expected at least 1");
}

}  // namespace

void CountWords(std::string_view text, const BasicTokenizerOptions& options, WordCounts* words) {
  for (const std::string& word : BasicTokens(text, options)) ++(*words)[word];
}

Vocabulary BuildVocabulary(const WordCounts& words, const VocabularyOptions& options) {
  Check(words, options);
  TokenTable tokens;
  for (const std::string_view token : kSpecialTokens) tokens.Add(std::string(token));
  AddAlphabet(words, options, &tokens);
  SKIFF_ENFORCE(tokens.size() <= options.size, kInvalidArgument, "size = ", options.size,
                " of the vocabulary: the special tokens and the alphabet take ", tokens.size());
  std::vector<Word> cut;
  for (const auto& [word, count] : words) {
    if (CharacterCount(word) > kLongestWord) continue;
    std::vector<int32_t> pieces = CutIntoCharacters(word, tokens);
    if (!pieces.empty()) cut.push_back({std::move(pieces), count});
  }
  PieceMerger merger(std::move(cut), &tokens);
  while (tokens.size() < options.size && merger.MergeOne(options.least_pair_count)) {
  }
  return Vocabulary(tokens.Take());
}

Vocabulary BuildVocabulary(const WordCounts& words, const VocabularyOptions& options,
                           std::string_view source) {
  try {
    return BuildVocabulary(words, options);
  } catch (const Error& error) {
    throw error.WithContext(source);
  }
}

}  // namespace skiff::text
