#include "models/common/question_source.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/text/pretraining_source.h"

namespace skiff::models {
namespace {

void Append(const text::TokenSequence& more, text::TokenSequence* tokens) {
  tokens->ids.insert(tokens->ids.end(), more.ids.begin(), more.ids.end());
  tokens->roles.insert(tokens->roles.end(), more.roles.begin(), more.roles.end());
}

}  // namespace

QuestionSource::QuestionSource(const text::Tokenizer& tokenizer,
                               std::span<const Question> questions, const QuestionOptions& options)
    : options_(options), pad_(tokenizer.vocabulary().pad()) {
  SKIFF_ENFORCE(!questions.empty(), kInvalidArgument, "no questions to ask");
  for (const Question& question : questions) samples_.push_back(MakeSample(tokenizer, question));
}

QuestionSource::Sample QuestionSource::MakeSample(const text::Tokenizer& tokenizer,
                                                  const Question& question) const {
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  const auto refuse = [&](const std::string& why) {
    Throw(ErrorCode::kInvalidArgument, "the question \"", question.before, "[", question.answer,
          "]", question.after, "\": ", why);
  };
  text::TokenSequence tokens = tokenizer.Encode(question.before);
  const text::TokenSequence answer = tokenizer.Encode(question.answer);
  if (answer.size() < 1 || answer.size() > options_.most_masked) {
    refuse(
        StrCat("the answer has ", answer.size(), " tokens, expected 1 to ", options_.most_masked));
  }
  Sample sample;
  for (const text::TokenId id : answer.ids) {
    if (vocabulary.IsSpecial(id)) refuse("the vocabulary doesn't have the answer");
    sample.masked.positions.push_back(tokens.size() + 1);  // behind [CLS]
    sample.masked.labels.push_back(id);
    tokens.Add(vocabulary.mask(), text::TokenRole::kSpecial);
  }
  Append(tokenizer.Encode(question.after), &tokens);
  sample.instance = text::PackSegments(vocabulary, {&tokens, 1});
  sample.instance.task_id = options_.task_id;
  sample.instance.sentence_label = text::kIgnoredLabel;
  if (sample.instance.size() > options_.length) {
    refuse(StrCat(sample.instance.size(), " tokens, expected at most ", options_.length));
  }
  return sample;
}

std::vector<training::FeedShape> QuestionSource::fields() const {
  return text::PretrainingFields(options_.length, options_.most_masked);
}

void QuestionSource::Read(int64_t sample, int64_t, int64_t row, std::span<Tensor> fields) const {
  const Sample& read = samples_[static_cast<size_t>(sample)];
  text::WritePretrainingRow(read.instance, read.masked, pad_, row, fields);
}

}  // namespace skiff::models
