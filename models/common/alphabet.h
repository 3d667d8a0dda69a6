// The characters that a model knows, and their ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace skiff::models {

// Constant, so many threads may use it.
class Alphabet {
 public:
  // The characters (code points) of a text in UTF-8, in their order; the first one has the id 0.
  // Malformed bytes count as U+FFFD. `source` begins messages. Throws an Error (kInvalidArgument)
  // for an empty text.
  static Alphabet Of(std::string_view text, const std::string& source = "text");
  // The opposite of Text. Throws an Error (kDataLoss) if there are no characters, or if one is
  // there twice.
  static Alphabet Parse(std::string_view text, const std::string& source = "alphabet");

  int64_t size() const { return static_cast<int64_t>(characters_.size()); }
  // Returns the characters in the order of their ids.
  std::string Text() const;

  // Returns the ids of the characters of a text. Throws an Error (kInvalidArgument) for a character
  // that isn't in the alphabet, saying which one and where.
  std::vector<int64_t> Encode(std::string_view text) const;
  // Throws an Error (kOutOfRange) for an id outside [0, size()).
  std::string Decode(std::span<const int64_t> ids) const;

 private:
  explicit Alphabet(std::u32string characters);

  std::u32string characters_;  // by id
  std::unordered_map<char32_t, int64_t> ids_;
};

}  // namespace skiff::models
