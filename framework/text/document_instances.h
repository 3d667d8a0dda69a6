// Documents as the instances of a pre-training, with a task about the order of sentences.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/text/instance.h"
#include "framework/text/sentence_pairs.h"

namespace skiff::text {

struct DocumentInstanceOptions {
  SentenceTask task = SentenceTask::kNextSentence;
  int64_t length = 128;       // the most tokens of an instance, with [CLS] and [SEP]
  int64_t most_segments = 3;  // of kReordering
  std::optional<int64_t> task_id =
      {};             // for the task embedding; the number of the task, if not given
  uint64_t seed = 0;  // of the tasks
};

// An instance for each chunk of SentencePairs, drawn anew for each epoch.
class DocumentInstances final : public InstanceSource {
 public:
  // Documents and vocabulary outlive the instances. Throws Error as SentencePairs; kInvalidArgument
  // for a length without room for a token in each segment.
  DocumentInstances(const std::vector<TokenizedDocument>* documents, const Vocabulary* vocabulary,
                    const DocumentInstanceOptions& options);

  int64_t size() const override { return pairs_.chunks(); }
  Instance Read(int64_t index, int64_t epoch) const override;

  const SentencePairs& pairs() const { return pairs_; }

 private:
  TokenSequence TokensOf(const SentenceRun& run) const;

  const std::vector<TokenizedDocument>* documents_;
  const Vocabulary* vocabulary_;
  DocumentInstanceOptions options_;
  SentencePairs pairs_;
};

}  // namespace skiff::text
