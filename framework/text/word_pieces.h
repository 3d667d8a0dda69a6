// Pieces of words, learned from texts by byte-pair encoding: Sennrich, Haddow, Birch, "Neural
// Machine Translation of Rare Words with Subword Units", 2016. The work is SentencePiece's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skiff::text {

// A piece that begins a word begins with "▁" (U+2581). The first pieces are <s>, </s> and <unk>,
// with the ids of marks.h; a piece's id is its place among all. Constant, so many threads may
// use it; copies share the pieces.
class WordPieces {
 public:
  // Begins with the characters of the words, and joins the two neighbours that are there most
  // often, again and again, until there are `size` pieces or each word is one. Words are in UTF-8,
  // each as often as it is there; words of more than 4,192 bytes are left out. Equal words give
  // equal pieces. Throws an Error (kInvalidArgument) if there is no word, and for a size that not
  // even the characters and the three marks fit in.
  static WordPieces Learn(std::span<const std::string> words, int64_t size);
  // The opposite of Model. Throws an Error (kDataLoss), which begins with `source`, for other
  // bytes, such as a model file by other software that maps characters or isn't of byte-pair
  // encoding.
  static WordPieces Parse(std::string_view model, const std::string& source);

  // Returns the contents of a model file of SentencePiece.
  std::string Model() const;
  // Returns all pieces in the order of their ids.
  std::vector<std::string> Pieces() const;

  // Returns the ids of the pieces of a text in UTF-8, whose words are separated by blanks; "▁" is a
  // blank, too. A run of characters that were in no word to learn from is one kUnknownId; so are
  // "▅", NUL, and a mark that is written out.
  std::vector<int64_t> Encode(std::string_view text) const;
  // Returns the text of ids of Pieces(), without <s> and </s>, with a blank for each "▁" but the
  // first. Throws an Error (kOutOfRange) for other ids.
  std::string Decode(std::span<const int64_t> ids) const;

 private:
  class Processor;  // SentencePiece's; this header is for users, who need not have SentencePiece's

  WordPieces(std::string_view model, const std::string& source);

  std::shared_ptr<const Processor> processor_;
};

}  // namespace skiff::text
