// Tasks about the order of sentences, for which documents need no labels.
//
// Sources: Devlin et al., "BERT" (2019), section 3.1, Task #2; Sun et al., "ERNIE 2.0: A Continual
// Pre-Training Framework for Language Understanding" (2020), section 4.2.2.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/text/documents.h"

namespace skiff::text {

class RandomDraws;  // random_draws.h

enum class SentenceTask {
  kNone,          // one segment, label 0
  kNextSentence,  // two segments: 1 the second follows the first, 0 the second is of another
                  // document
  // Consecutive segments in a random order: the class is the permutation's number. Permutations of
  // one segment come first, then of two, …; permutations of n segments are in lexicographic order.
  kReordering,
  kDistance,  // two segments: 0 adjacent, 1 of one document but not adjacent, 2 of two documents
};

inline constexpr int64_t kSentenceTasks = 4;  // the number of values

// "none", "next_sentence", "reordering", "distance".
std::string_view SentenceTaskName(SentenceTask task);
// Throws Error (kInvalidArgument) for another name.
SentenceTask SentenceTaskFromName(std::string_view name);

// Sentences [first, last) of a document.
struct SentenceRun {
  int64_t document = 0;
  int64_t first = 0;
  int64_t last = 0;
  friend bool operator==(const SentenceRun&, const SentenceRun&) = default;
};

struct LabelledSegments {
  std::vector<SentenceRun> segments = {};  // as they are shown
  int64_t label = 0;
};

struct SentencePairOptions {
  SentenceTask task = SentenceTask::kNextSentence;
  int64_t most_tokens = 125;  // of the segments together
  int64_t most_segments = 3;  // of kReordering
};

// Cuts documents into chunks that fill an input, and draws a task from a chunk. Thread-safe.
class SentencePairs {
 public:
  // The documents outlive the pairs. Throws Error (kInvalidArgument) if no document has as many
  // sentences as the task needs (2, for kDistance 3), if the task needs two documents and there is
  // one, for most_tokens < 1, and for most_segments outside [2, 6].
  SentencePairs(const std::vector<TokenizedDocument>* documents,
                const SentencePairOptions& options);

  // Consecutive sentences of a document: as many sentences as have room, but at least as many as
  // the task needs, so tokens may have to be cut. Each sentence is in a chunk; where few sentences
  // are left at the end of a document, the last chunk overlaps the chunk before.
  int64_t chunks() const { return static_cast<int64_t>(chunks_.size()); }
  // The documents that are in no chunk, since they have too few sentences.
  int64_t documents_left_out() const { return documents_left_out_; }
  // The number of classes: 1, 2, 1! + 2! + … + most_segments!, 3.
  int64_t classes() const;
  // The most segments of a chunk.
  int64_t segments() const;

  // Draws the task for a chunk: each class is equally likely (for kReordering: each possible number
  // of segments, and each permutation of the segments).
  LabelledSegments Draw(int64_t chunk, RandomDraws* random) const;

 private:
  void AddChunks(int64_t document);
  int64_t SentencesOf(int64_t document) const;
  SentenceRun RunElsewhere(const SentenceRun& chunk, int64_t sentences, RandomDraws* random) const;
  SentenceRun RunNotAdjacent(const SentenceRun& first, int64_t sentences,
                             RandomDraws* random) const;
  LabelledSegments DrawNextSentence(const SentenceRun& chunk, RandomDraws* random) const;
  LabelledSegments DrawDistance(const SentenceRun& chunk, RandomDraws* random) const;
  LabelledSegments DrawReordering(const SentenceRun& chunk, RandomDraws* random) const;

  const std::vector<TokenizedDocument>* documents_;
  SentencePairOptions options_;
  std::vector<SentenceRun> chunks_;
  int64_t documents_left_out_ = 0;
};

// Returns the class of a permutation of 0 … n - 1 in kReordering: {0} is 0, {0, 1} is 1, {1, 0} is
// 2, {0, 1, 2} is 3.
int64_t PermutationClass(const std::vector<int64_t>& permutation);

}  // namespace skiff::text
