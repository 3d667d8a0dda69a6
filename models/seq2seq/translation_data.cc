#include "models/seq2seq/translation_data.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/text/hold_back.h"
#include "models/seq2seq/generated_dates.h"

namespace skiff::models {
namespace {

constexpr int64_t kGeneratedPairs = 8000;

std::vector<text::TextPair> HeldBack(const TranslationDataOptions& options,
                                     std::vector<text::TextPair>* pairs) {
  if (!options.validation.empty()) return ReadPairs(options.validation, options.seed + 1);
  return text::HoldBackLast(pairs, options.held_back, options.data);
}

text::TokenVocabulary VocabularyOf(const TranslationDataOptions& options,
                                   const std::vector<text::TextPair>& pairs,
                                   std::string text::TextPair::*side) {
  std::vector<std::string> texts;
  for (const text::TextPair& pair : pairs) texts.push_back(pair.*side);
  return text::TokenVocabulary::Of(texts, text::ParseTokenKind(options.tokens),
                                   options.vocabulary_size, options.least_count);
}

}  // namespace

std::vector<text::TextPair> ReadPairs(const std::string& data, uint64_t seed) {
  if (data == kGeneratedDates) return GenerateDates(kGeneratedPairs, seed);
  const size_t comma = data.find(',');
  if (comma == std::string::npos) return text::ReadPairTable(data);
  return text::ReadParallelText(data.substr(0, comma), data.substr(comma + 1));
}

TranslationData::TranslationData(const TranslationDataOptions& options)
    : options_(options),
      pairs_(ReadPairs(options.data, options.seed)),
      source_(text::TokenVocabulary::Of({}, text::TokenKind::kWord, 4, 1)),
      target_(source_) {
  held_back_ = HeldBack(options, &pairs_);
  source_ = VocabularyOf(options, pairs_, &text::TextPair::source);
  target_ = VocabularyOf(options, pairs_, &text::TextPair::target);
  const auto encode = [&](const std::vector<text::TextPair>& pairs, text::TokenPairs* encoded) {
    for (const text::TextPair& pair : pairs) {
      std::vector<int64_t> source = source_.Encode(pair.source);
      std::vector<int64_t> target = target_.Encode(pair.target);
      if (std::max(std::ssize(source), std::ssize(target)) > options.longest) {
        ++left_out_;
        continue;
      }
      encoded->sources.push_back(std::move(source));
      encoded->targets.push_back(std::move(target));
    }
  };
  encode(pairs_, &train_);
  encode(held_back_, &validation_);
  SKIFF_ENFORCE(!train_.sources.empty() && !validation_.sources.empty(), kInvalidArgument,
                options.data, ": all pairs to train or to validate on have more than ",
                options.longest, " tokens");
}

std::map<std::string, std::string> TranslationData::VocabularyFiles() const {
  std::map<std::string, std::string> files = source_.Files(text::kSourceSide);
  files.merge(target_.Files(text::kTargetSide));
  return files;
}

std::string TranslationData::extent() const {
  return StrCat(train_.sources.size(), " to train, ", validation_.sources.size(), " to validate",
                left_out_ == 0 ? "" : StrCat(" (", left_out_, " are too long)"), ", ",
                source_.size(), " and ", target_.size(), " tokens");
}

std::unique_ptr<training::Reader> TranslationData::TrainReader() const {
  return std::make_unique<text::PairReader>(
      &train_, training::LengthBatchOptions{.batch_size = options_.batch_size,
                                            .most_tokens = options_.most_tokens,
                                            .shuffle = true,
                                            .seed = options_.seed});
}

std::unique_ptr<training::Reader> TranslationData::ValidationReader() const {
  return std::make_unique<text::PairReader>(
      &validation_, training::LengthBatchOptions{.batch_size = options_.batch_size,
                                                 .most_tokens = options_.most_tokens});
}

}  // namespace skiff::models
