#include "framework/text/classification_source.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/io/text_lines.h"
#include "framework/text/hold_back.h"
#include "framework/text/vocabulary_builder.h"

namespace skiff::text {
namespace {

constexpr int64_t kHighestLabel = 9999;

LabelledText ParseLine(std::string_view line, const std::string& where) {
  const size_t tab = line.find('\t');
  SKIFF_ENFORCE(tab != std::string_view::npos, kDataLoss, where,
                " has no tab: expected label, tab, text");
  const std::string_view label = line.substr(0, tab);
  const auto number = ParseNumber<int64_t>(label);
  SKIFF_ENFORCE(number.has_value() && *number >= 0 && *number <= kHighestLabel, kDataLoss, where,
                ": label \"", label, "\": expected a whole number from 0 to ", kHighestLabel);
  return {.label = *number, .text = std::string(line.substr(line.rfind('\t') + 1))};
}

}  // namespace

std::vector<LabelledText> ReadLabelledTexts(const std::string& path) {
  const std::string text = ReadTextFile(path);
  const std::vector<std::string_view> lines = LinesOf(text);
  SKIFF_ENFORCE(!lines.empty(), kDataLoss, path, " is empty: expected labelled texts, one a line");
  std::vector<LabelledText> texts;
  texts.reserve(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    texts.push_back(ParseLine(lines[i], StrCat(path, ":", i + 1)));
  }
  return texts;
}

int64_t CountClasses(std::span<const LabelledText> texts, std::string_view source) {
  std::vector<bool> is_there;
  for (const LabelledText& text : texts) {
    const auto label = static_cast<size_t>(text.label);
    if (is_there.size() <= label) is_there.resize(label + 1);
    is_there[label] = true;
  }
  const auto missing = std::find(is_there.begin(), is_there.end(), false);
  SKIFF_ENFORCE(missing == is_there.end(), kDataLoss, source, ": no text has the label ",
                missing - is_there.begin(), ", but the highest is ", is_there.size() - 1);
  SKIFF_ENFORCE(is_there.size() >= 2, kDataLoss, source, ": texts of ", is_there.size(),
                " class: expected at least 2");
  return static_cast<int64_t>(is_there.size());
}

LabelledParts ReadLabelledParts(const std::string& path, double fraction) {
  LabelledParts parts;
  parts.train = ReadLabelledTexts(path);
  parts.classes = CountClasses(parts.train, path);
  parts.held_back = HoldBackLastOfEachClass(&parts.train, fraction, path);
  return parts;
}

Vocabulary VocabularyOf(std::span<const LabelledText> texts, int64_t size,
                        std::string_view source) {
  WordCounts words;
  for (const LabelledText& example : texts) CountWords(example.text, {}, &words);
  return BuildVocabulary(words, {.size = size}, source);
}

ClassificationSource::ClassificationSource(const Tokenizer& tokenizer,
                                           std::span<const LabelledText> texts,
                                           const ClassificationOptions& options)
    : options_(options), pad_(tokenizer.vocabulary().pad()) {
  SKIFF_ENFORCE(!texts.empty(), kInvalidArgument, "no texts to classify");
  SKIFF_ENFORCE(options.length >= 3, kInvalidArgument, "inputs of ", options.length,
                " tokens: expected at least 3");
  SKIFF_ENFORCE(options.tail_tokens >= 0 && options.tail_tokens <= options.length - 2,
                kInvalidArgument, "tail_tokens = ", options.tail_tokens, ": expected 0 to ",
                options.length - 2);
  instances_.reserve(texts.size());
  for (const LabelledText& text : texts) {
    const TokenSequence tokens = Truncated(tokenizer.Encode(text.text));
    Instance instance = PackSegments(tokenizer.vocabulary(), {&tokens, 1});
    instance.task_id = options.task_id;
    instance.sentence_label = text.label;
    instances_.push_back(std::move(instance));
  }
}

TokenSequence ClassificationSource::Truncated(TokenSequence tokens) {
  const int64_t excess = tokens.size() - (options_.length - 2);
  if (excess <= 0) return tokens;
  ++truncated_;
  const auto first = tokens.size() - options_.tail_tokens - excess;
  tokens.ids.erase(tokens.ids.begin() + first, tokens.ids.begin() + first + excess);
  tokens.roles.erase(tokens.roles.begin() + first, tokens.roles.begin() + first + excess);
  return tokens;
}

std::vector<training::FeedShape> ClassificationSource::fields() const {
  std::vector<training::FeedShape> fields = InputFields(options_.length);
  fields.push_back({kLabel, {1}, DType::kInt64});
  return fields;
}

void ClassificationSource::Read(int64_t sample, int64_t, int64_t row,
                                std::span<Tensor> fields) const {
  const Instance& instance = instances_[static_cast<size_t>(sample)];
  WriteInput(instance, pad_, row, fields.first(kInputFields));
  training::RowOf<int64_t>(fields[kInputFields], row)[0] = instance.sentence_label;
}

}  // namespace skiff::text
