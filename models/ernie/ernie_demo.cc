#include "models/ernie/ernie_demo.h"

#include <string_view>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/io/text_lines.h"

namespace skiff::models {
namespace {

constexpr size_t kFields = 5;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<int64_t> Numbers(std::string_view field, const std::string& where,
                             std::string_view name) {
  std::vector<int64_t> numbers;
  for (const std::string_view part : Split(field, ' ')) {
    const auto number = ParseNumber<int64_t>(part);
    SKIFF_ENFORCE(number.has_value(), kDataLoss, where, ": ", name, ": \"", part,
                  "\" is no number");
    numbers.push_back(*number);
  }
  return numbers;
}

text::TokenRole RoleOf(int64_t seg_label, text::TokenId id, const text::Vocabulary& vocabulary,
                       const std::string& where) {
  const bool frames = id == vocabulary.cls() || id == vocabulary.sep() || id == vocabulary.pad();
  SKIFF_ENFORCE(seg_label >= -1 && seg_label <= 1 && (seg_label == -1) == frames, kDataLoss, where,
                ": seg_label ", seg_label, " of the token ", vocabulary.token(id),
                ": expected -1 for [CLS] and [SEP], 0 or 1 for all others");
  if (vocabulary.IsSpecial(id)) return text::TokenRole::kSpecial;
  return seg_label == 0 ? text::TokenRole::kWordStart : text::TokenRole::kInsideWord;
}

// A line as numbers: as many of each but for the label.
struct Line {
  std::vector<int64_t> ids;
  std::vector<int64_t> sentences;
  std::vector<int64_t> positions;
  std::vector<int64_t> seg_labels;
  int64_t label = 0;
};

Line ParseLine(std::string_view text, const std::string& where) {
  const std::vector<std::string_view> fields = Split(text, ';');
  SKIFF_ENFORCE(fields.size() == kFields, kDataLoss, where, " has ", fields.size(),
                " fields: expected ", kFields, " with semicolons between them");
  Line line = {.ids = Numbers(fields[0], where, "token_ids"),
               .sentences = Numbers(fields[1], where, "sentence_ids"),
               .positions = Numbers(fields[2], where, "position_ids"),
               .seg_labels = Numbers(fields[3], where, "seg_labels")};
  const size_t count = line.ids.size();
  SKIFF_ENFORCE(line.sentences.size() == count && line.positions.size() == count &&
                    line.seg_labels.size() == count,
                kDataLoss, where, " has ", count, " token_ids, ", line.sentences.size(),
                " sentence_ids, ", line.positions.size(), " position_ids and ",
                line.seg_labels.size(), " seg_labels: expected as many of each");
  const std::vector<int64_t> label = Numbers(fields[4], where, "next_sentence_label");
  SKIFF_ENFORCE(label.size() == 1 && (label[0] == 0 || label[0] == 1), kDataLoss, where,
                ": next_sentence_label \"", fields[4], "\": expected 0 or 1");
  line.label = label[0];
  return line;
}

text::Instance ParseInstance(std::string_view text, const std::string& where,
                             const text::Vocabulary& vocabulary) {
  const Line line = ParseLine(text, where);
  text::Instance instance;
  for (size_t i = 0; i < line.ids.size(); ++i) {
    SKIFF_ENFORCE(line.ids[i] >= 0 && line.ids[i] < vocabulary.size(), kDataLoss, where,
                  ": token id ", line.ids[i], ": the vocabulary has 0 to ", vocabulary.size() - 1);
    SKIFF_ENFORCE(line.positions[i] == static_cast<int64_t>(i), kDataLoss, where, ": position_id ",
                  line.positions[i], " of token ", i, ": expected positions that count from 0");
    SKIFF_ENFORCE(line.sentences[i] >= 0 && line.sentences[i] <= 1, kDataLoss, where,
                  ": sentence_id ", line.sentences[i], ": expected 0 or 1");
    const auto id = static_cast<text::TokenId>(line.ids[i]);
    instance.tokens.Add(id, RoleOf(line.seg_labels[i], id, vocabulary, where));
    instance.sentence_ids.push_back(static_cast<int32_t>(line.sentences[i]));
  }
  instance.sentence_label = line.label;
  return instance;
}

}  // namespace

std::vector<text::Instance> ReadErnieDemo(const std::string& path,
                                          const text::Vocabulary& vocabulary) {
  const std::string text = ReadTextFile(path);
  const std::vector<std::string_view> lines = LinesOf(text);
  SKIFF_ENFORCE(!lines.empty(), kDataLoss, path, " is empty: expected instances, one a line");
  std::vector<text::Instance> instances;
  instances.reserve(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    instances.push_back(ParseInstance(lines[i], StrCat(path, ":", i + 1), vocabulary));
  }
  return instances;
}

}  // namespace skiff::models
