#include "framework/text/word_pieces.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "framework/base/error.h"
#include "framework/text/marks.h"
#include "framework/text/unicode.h"

namespace skiff::text {
namespace {

using sentencepiece::util::Status;

// Bytes. SentencePiece leaves longer words out; it ends the process on one of 2^16 characters.
constexpr size_t kLongestWord = 4192;

class WordIterator final : public sentencepiece::SentenceIterator {
 public:
  explicit WordIterator(std::span<const std::string> words) : words_(words) {}

  bool done() const override { return next_ == words_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return words_[next_]; }
  Status status() const override { return {}; }

 private:
  std::span<const std::string> words_;
  size_t next_ = 0;
};

void Check(const Status& status, ErrorCode code, std::string_view context) {
  if (!status.ok()) Throw(code, context, ": SentencePiece: ", status.error_message());
}

// Returns how many characters the words have that pieces are learned from, "▁" among them.
int64_t DifferentCharacters(std::span<const std::string> words) {
  std::set<char32_t> characters = {U'▁'};
  for (const std::string& word : words) {
    if (word.size() > kLongestWord) continue;
    for (const char32_t character : DecodeUtf8(word)) characters.insert(character);
  }
  return std::ssize(characters);
}

// The fields of a model file that matter here, and their values.
constexpr protozero::pbf_tag_type kPiece = 1, kTrainerSpec = 2, kNormalizerSpec = 3,
                                  kDenormalizerSpec = 5;
constexpr protozero::pbf_tag_type kPieceType = 3;     // of a piece
constexpr protozero::pbf_tag_type kModelType = 3;     // of a trainer spec
constexpr protozero::pbf_tag_type kCharacterMap = 2;  // of a (de)normalizer spec
constexpr uint64_t kBytePairs = 2;                    // a model type
// The first and the last of the piece types normal, unknown and control.
constexpr uint64_t kNormal = 1, kControl = 3;

// Calls visit(number) for each integer in the field of a message.
template <typename Visit>
void ForEachInteger(protozero::pbf_reader message, protozero::pbf_tag_type field, Visit visit) {
  while (message.next()) {
    const bool is_meant = message.tag() == field;
    if (is_meant && message.wire_type() == protozero::pbf_wire_type::varint) {
      visit(message.get_uint64());
    } else {
      message.skip();
    }
  }
}

bool HasCharacterMap(protozero::pbf_reader spec) {
  bool has_map = false;
  while (spec.next()) {
    const bool is_meant = spec.tag() == kCharacterMap;
    if (is_meant && spec.wire_type() == protozero::pbf_wire_type::length_delimited) {
      has_map = has_map || spec.get_view().size() > 0;
    } else {
      spec.skip();
    }
  }
  return has_map;
}

// SentencePiece follows the map of characters in a file without a check, to whatever address it
// says. So a model must be one that Learn could have made.
void CheckLearned(std::string_view model, const std::string& source) {
  // A model without a type is one of another kind.
  bool has_type = false;
  protozero::pbf_reader message(model.data(), model.size());
  while (message.next()) {
    if (message.wire_type() != protozero::pbf_wire_type::length_delimited) {
      message.skip();
      continue;
    }
    const protozero::pbf_tag_type field = message.tag();
    const protozero::pbf_reader part(message.get_view());
    if (field == kPiece) {
      ForEachInteger(part, kPieceType, [&](uint64_t type) {
        SKIFF_ENFORCE(type >= kNormal && type <= kControl, kDataLoss, source,
                      ": a piece of the type ", type, ", expected ", kNormal, " to ", kControl,
                      " (normal, unknown or control)");
      });
    } else if (field == kTrainerSpec) {
      ForEachInteger(part, kModelType, [&](uint64_t type) {
        SKIFF_ENFORCE(type == kBytePairs, kDataLoss, source, ": a model of the type ", type,
                      ", expected ", kBytePairs, " (byte-pair encoding)");
        has_type = true;
      });
    } else if (field == kNormalizerSpec || field == kDenormalizerSpec) {
      SKIFF_ENFORCE(
          !HasCharacterMap(part), kDataLoss, source,
          ": it maps characters to others, expected a model that leaves them as they are");
    }
  }
  SKIFF_ENFORCE(has_type, kDataLoss, source,
                ": a unigram model of SentencePiece: it names no type, expected ", kBytePairs,
                " (byte-pair encoding)");
}

}  // namespace

class WordPieces::Processor final : public sentencepiece::SentencePieceProcessor {};

WordPieces::WordPieces(std::string_view model, const std::string& source) {
  auto processor = std::make_shared<Processor>();
  Check(processor->LoadFromSerializedProto(model), ErrorCode::kDataLoss, source);
  processor_ = std::move(processor);
}

WordPieces WordPieces::Learn(std::span<const std::string> words, int64_t size) {
  SKIFF_ENFORCE(std::ranges::any_of(
                    words, [](const std::string& word) { return word.size() <= kLongestWord; }),
                kInvalidArgument, "pieces of words: there is no word of at most ", kLongestWord,
                " bytes to learn them from");
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", "bpe"},
      {"vocab_size", StrCat(size)},
      // The size is the most that is wanted: small texts have fewer pieces.
      {"hard_vocab_limit", "false"},
      {"bos_id", StrCat(kBeginId)},
      {"eos_id", StrCat(kEndId)},
      {"unk_id", StrCat(kUnknownId)},
      {"pad_id", "-1"},
      {"bos_piece", std::string(kMarks[kBeginId])},
      {"eos_piece", std::string(kMarks[kEndId])},
      {"unk_piece", std::string(kMarks[kUnknownId])},
      {"unk_surface", std::string(kMarks[kUnknownId])},
      // Characters are pieces, rare ones as well, and stay as they are.
      {"character_coverage", "1"},
      {"normalization_rule_name", "identity"},
      {"max_sentence_length", StrCat(kLongestWord)},
      {"num_threads", "1"},
      // Fatal errors alone are printed.
      {"minloglevel", "3"}};
  WordIterator iterator(words);
  std::string model;
  const Status status = sentencepiece::SentencePieceTrainer::Train(options, &iterator, &model);
  if (!status.ok()) {
    const int64_t characters = DifferentCharacters(words);
    const int64_t least = characters + std::ssize(kMarks);
    SKIFF_ENFORCE(size >= least, kInvalidArgument, "pieces of words: a vocabulary of ", size,
                  ": expected at least ", least, ", for the ", characters,
                  " characters of the texts and ", kMarks.size(), " marks");
  }
  Check(status, ErrorCode::kInvalidArgument, "pieces of words");
  return {model, "pieces of words"};
}

WordPieces WordPieces::Parse(std::string_view model, const std::string& source) {
  try {
    CheckLearned(model, source);
  } catch (const protozero::exception& error) {
    Throw(ErrorCode::kDataLoss, source, ": no model of SentencePiece: ", error.what());
  }
  return {model, source};
}

std::string WordPieces::Model() const { return processor_->serialized_model_proto(); }

std::vector<std::string> WordPieces::Pieces() const {
  std::vector<std::string> pieces;
  for (int id = 0; id < processor_->GetPieceSize(); ++id) {
    pieces.push_back(processor_->IdToPiece(id));
  }
  return pieces;
}

std::vector<int64_t> WordPieces::Encode(std::string_view text) const {
  std::vector<int> ids;
  Check(processor_->Encode(text, &ids), ErrorCode::kInvalidArgument, "pieces of words");
  return {ids.begin(), ids.end()};
}

std::string WordPieces::Decode(std::span<const int64_t> ids) const {
  std::string text;
  Check(processor_->Decode(std::vector<int>(ids.begin(), ids.end()), &text), ErrorCode::kOutOfRange,
        "pieces of words");
  return text;
}

}  // namespace skiff::text
