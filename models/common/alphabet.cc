#include "models/common/alphabet.h"

#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/text/unicode.h"

namespace skiff::models {

Alphabet::Alphabet(std::u32string characters) : characters_(std::move(characters)) {
  for (const char32_t character : characters_) ids_.emplace(character, std::ssize(ids_));
}

Alphabet Alphabet::Of(std::string_view text, const std::string& source) {
  const std::u32string decoded = text::DecodeUtf8(text);
  const std::set<char32_t> characters(decoded.begin(), decoded.end());
  SKIFF_ENFORCE(!characters.empty(), kInvalidArgument, source,
                ": the text is empty, expected characters");
  return Alphabet(std::u32string(characters.begin(), characters.end()));
}

Alphabet Alphabet::Parse(std::string_view text, const std::string& source) {
  Alphabet alphabet(text::DecodeUtf8(text));
  SKIFF_ENFORCE(alphabet.size() >= 1, kDataLoss, source, ": found no characters");
  SKIFF_ENFORCE(alphabet.ids_.size() == alphabet.characters_.size(), kDataLoss, source, ": of ",
                alphabet.size(), " characters, only ", alphabet.ids_.size(), " are different");
  return alphabet;
}

std::string Alphabet::Text() const { return text::EncodeUtf8(characters_); }

std::vector<int64_t> Alphabet::Encode(std::string_view text) const {
  std::vector<int64_t> ids;
  for (const char32_t character : text::DecodeUtf8(text)) {
    const auto found = ids_.find(character);
    SKIFF_ENFORCE(found != ids_.end(), kInvalidArgument, "character ", ids.size(), ", \"",
                  text::EncodeUtf8({&character, 1}), "\", is none of the ", size(),
                  " of the alphabet");
    ids.push_back(found->second);
  }
  return ids;
}

std::string Alphabet::Decode(std::span<const int64_t> ids) const {
  std::u32string characters;
  for (const int64_t id : ids) {
    SKIFF_ENFORCE(id >= 0 && id < size(), kOutOfRange, "character id ", id, ": expected 0 to ",
                  size() - 1);
    characters += characters_[static_cast<size_t>(id)];
  }
  return text::EncodeUtf8(characters);
}

}  // namespace skiff::models
