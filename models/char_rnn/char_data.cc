#include "models/char_rnn/char_data.h"

#include <cmath>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/io/text_lines.h"
#include "models/char_rnn/ngram_model.h"
#include "models/char_rnn/stream_reader.h"
#include "models/common/world_corpus.h"

namespace skiff::models {
namespace {

std::string TextOf(const std::string& data) {
  if (data != kGeneratedWorld) return ReadTextFile(data);
  std::string text;
  for (const text::Document& document : GenerateWorldCorpus({}).documents)
    text += Join(document, " ") + "\n";
  return text;
}

}  // namespace

CharData::CharData(const CharDataOptions& options) : CharData(options, TextOf(options.data)) {}

CharData::CharData(const CharDataOptions& options, const std::string& text)
    : options_(options), alphabet_(Alphabet::Of(text, options.data)) {
  SKIFF_ENFORCE(options.held_back > 0 && options.held_back < 1, kInvalidArgument,
                "held_back = ", options.held_back, ": expected a share in (0, 1)");
  train_ = alphabet_.Encode(text);
  const auto kept = std::llround((1 - options.held_back) * static_cast<double>(train_.size()));
  validation_.assign(train_.begin() + kept, train_.end());
  train_.resize(static_cast<size_t>(kept));
  // A part that is too short is told before anything is counted.
  for (const auto& [part, ids] : {std::pair("training", &train_), {"validation", &validation_}}) {
    try {
      ReaderOf(*ids);
    } catch (const Error& error) {
      throw error.WithContext(StrCat(options.data, ", ", part, " part"));
    }
  }
  bigram_loss_ = NgramModel(2, alphabet_.size(), train_).Loss(validation_);
  trigram_loss_ = NgramModel(3, alphabet_.size(), train_).Loss(validation_);
}

std::string CharData::extent() const {
  return StrCat(train_.size(), " characters to train, ", validation_.size(), " to validate, ",
                alphabet_.size(), " different");
}

std::string CharData::baselines() const {
  return StrCat("bigrams ", FormatFixed(bigram_loss_, 4), ", trigrams ",
                FormatFixed(trigram_loss_, 4));
}

std::unique_ptr<training::Reader> CharData::ReaderOf(const std::vector<int64_t>& text) const {
  return std::make_unique<StreamReader>(
      &text, StreamReaderOptions{.batch_size = options_.batch_size, .steps = options_.steps});
}

}  // namespace skiff::models
