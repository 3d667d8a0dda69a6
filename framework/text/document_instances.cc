#include "framework/text/document_instances.h"

#include "framework/base/error.h"
#include "framework/text/random_draws.h"
#include "framework/training/data_random.h"

namespace skiff::text {
namespace {

int64_t MostSegments(const DocumentInstanceOptions& options) {
  if (options.task == SentenceTask::kNone) return 1;
  return options.task == SentenceTask::kReordering ? options.most_segments : 2;
}

// Without [CLS] and a [SEP] for each segment.
int64_t RoomForTokens(const DocumentInstanceOptions& options) {
  const int64_t segments = MostSegments(options);
  const int64_t room = options.length - 1 - segments;
  SKIFF_ENFORCE(room >= segments, kInvalidArgument, "inputs of ", options.length,
                " tokens: expected at least ", 1 + 2 * segments, " for the task ",
                SentenceTaskName(options.task));
  return room;
}

}  // namespace

DocumentInstances::DocumentInstances(const std::vector<TokenizedDocument>* documents,
                                     const Vocabulary* vocabulary,
                                     const DocumentInstanceOptions& options)
    : documents_(documents),
      vocabulary_(vocabulary),
      options_(options),
      pairs_(documents, {.task = options.task,
                         .most_tokens = RoomForTokens(options),
                         .most_segments = options.most_segments}) {}

TokenSequence DocumentInstances::TokensOf(const SentenceRun& run) const {
  const TokenizedDocument& document = (*documents_)[static_cast<size_t>(run.document)];
  TokenSequence tokens;
  for (int64_t i = run.first; i < run.last; ++i) {
    const TokenSequence& sentence = document.sentences[static_cast<size_t>(i)];
    tokens.ids.insert(tokens.ids.end(), sentence.ids.begin(), sentence.ids.end());
    tokens.roles.insert(tokens.roles.end(), sentence.roles.begin(), sentence.roles.end());
  }
  return tokens;
}

Instance DocumentInstances::Read(int64_t index, int64_t epoch) const {
  RandomDraws random = RandomDraws::OfSample(
      training::DataRandom(options_.seed, training::DataStream::kSentencePairs, epoch), index);
  const LabelledSegments drawn = pairs_.Draw(index, &random);
  std::vector<TokenSequence> segments;
  for (const SentenceRun& run : drawn.segments) segments.push_back(TokensOf(run));
  TruncateLongest(segments, RoomForTokens(options_));
  Instance instance = PackSegments(*vocabulary_, segments);
  instance.task_id = options_.task_id.value_or(static_cast<int64_t>(options_.task));
  instance.sentence_label = drawn.label;
  return instance;
}

}  // namespace skiff::text
