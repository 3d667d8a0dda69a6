#include "framework/text/sentence_pairs.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "framework/base/error.h"
#include "framework/text/random_draws.h"

namespace skiff::text {
namespace {

constexpr std::array<std::string_view, kSentenceTasks> kTaskNames = {"none", "next_sentence",
                                                                     "reordering", "distance"};

int64_t Factorial(int64_t n) { return n <= 1 ? 1 : n * Factorial(n - 1); }

// The classes of permutations of fewer than n segments.
int64_t ClassesBelow(int64_t n) {
  int64_t classes = 0;
  for (int64_t k = 1; k < n; ++k) classes += Factorial(k);
  return classes;
}

int64_t SentencesNeeded(SentenceTask task) {
  switch (task) {
    case SentenceTask::kNone:
      return 1;
    case SentenceTask::kNextSentence:
    case SentenceTask::kReordering:
      return 2;
    case SentenceTask::kDistance:
      return 3;
  }
  return 1;
}

bool NeedsOtherDocuments(SentenceTask task) {
  return task == SentenceTask::kNextSentence || task == SentenceTask::kDistance;
}

void Check(const std::vector<TokenizedDocument>& documents, const SentencePairOptions& options) {
  SKIFF_ENFORCE(options.most_tokens >= 1, kInvalidArgument, "sentence pairs of ",
                options.most_tokens, " tokens: expected at least 1");
  SKIFF_ENFORCE(options.most_segments >= 2 && options.most_segments <= 6, kInvalidArgument,
                "most_segments = ", options.most_segments, ": expected 2 to 6");
  SKIFF_ENFORCE(!NeedsOtherDocuments(options.task) || documents.size() >= 2, kInvalidArgument,
                "the task ", SentenceTaskName(options.task),
                " takes sentences of other documents: expected at least 2 documents, got ",
                documents.size());
}

}  // namespace

std::string_view SentenceTaskName(SentenceTask task) {
  return kTaskNames[static_cast<size_t>(task)];
}

SentenceTask SentenceTaskFromName(std::string_view name) {
  const auto found = std::find(kTaskNames.begin(), kTaskNames.end(), name);
  SKIFF_ENFORCE(found != kTaskNames.end(), kInvalidArgument, "sentence task \"", name,
                "\": expected ", Join(kTaskNames, ", "));
  return static_cast<SentenceTask>(found - kTaskNames.begin());
}

int64_t PermutationClass(const std::vector<int64_t>& permutation) {
  const auto n = static_cast<int64_t>(permutation.size());
  int64_t rank = 0;
  for (size_t i = 0; i < permutation.size(); ++i) {
    const auto smaller =
        std::count_if(permutation.begin() + static_cast<std::ptrdiff_t>(i), permutation.end(),
                      [&](int64_t later) { return later < permutation[i]; });
    rank += smaller * Factorial(n - 1 - static_cast<int64_t>(i));
  }
  return ClassesBelow(n) + rank;
}

SentencePairs::SentencePairs(const std::vector<TokenizedDocument>* documents,
                             const SentencePairOptions& options)
    : documents_(documents), options_(options) {
  Check(*documents, options);
  for (size_t i = 0; i < documents->size(); ++i) AddChunks(static_cast<int64_t>(i));
  SKIFF_ENFORCE(!chunks_.empty(), kInvalidArgument, "no sentence pairs: none of the ",
                documents->size(), " documents has the ", SentencesNeeded(options.task),
                " sentences that the task ", SentenceTaskName(options.task), " needs");
}

int64_t SentencePairs::SentencesOf(int64_t document) const {
  return static_cast<int64_t>((*documents_)[static_cast<size_t>(document)].sentences.size());
}

void SentencePairs::AddChunks(int64_t document) {
  const auto& sentences = (*documents_)[static_cast<size_t>(document)].sentences;
  const int64_t count = SentencesOf(document);
  const int64_t needed = SentencesNeeded(options_.task);
  if (count < needed) {
    ++documents_left_out_;
    return;
  }
  for (int64_t first = 0; first < count;) {
    int64_t last = first;
    int64_t tokens = 0;
    for (; last < count; ++last) {
      tokens += sentences[static_cast<size_t>(last)].size();
      if (last - first >= needed && tokens > options_.most_tokens) break;
    }
    chunks_.push_back({document, std::min(first, last - needed), last});
    first = last;
  }
}

int64_t SentencePairs::classes() const {
  switch (options_.task) {
    case SentenceTask::kNone:
      return 1;
    case SentenceTask::kNextSentence:
      return 2;
    case SentenceTask::kReordering:
      return ClassesBelow(options_.most_segments + 1);
    case SentenceTask::kDistance:
      return 3;
  }
  return 1;
}

int64_t SentencePairs::segments() const {
  if (options_.task == SentenceTask::kNone) return 1;
  return options_.task == SentenceTask::kReordering ? options_.most_segments : 2;
}

LabelledSegments SentencePairs::Draw(int64_t chunk, RandomDraws* random) const {
  const SentenceRun& run = chunks_[static_cast<size_t>(chunk)];
  switch (options_.task) {
    case SentenceTask::kNone:
      break;
    case SentenceTask::kNextSentence:
      return DrawNextSentence(run, random);
    case SentenceTask::kReordering:
      return DrawReordering(run, random);
    case SentenceTask::kDistance:
      return DrawDistance(run, random);
  }
  return {.segments = {run}, .label = 0};
}

// So many sentences, if there are, of another document.
SentenceRun SentencePairs::RunElsewhere(const SentenceRun& chunk, int64_t sentences,
                                        RandomDraws* random) const {
  int64_t document = random->Below(static_cast<int64_t>(documents_->size()) - 1);
  if (document >= chunk.document) ++document;
  const int64_t count = SentencesOf(document);
  // Not so near the end that fewer sentences would be there: the length would tell the class.
  const int64_t first = random->Below(std::max<int64_t>(1, count - sentences + 1));
  return {document, first, std::min(count, first + sentences)};
}

// So many sentences, if there are, of the same document, with at least one between them and
// `first`. Needs two sentences behind it.
SentenceRun SentencePairs::RunNotAdjacent(const SentenceRun& first, int64_t sentences,
                                          RandomDraws* random) const {
  const int64_t before = std::max<int64_t>(0, first.first - 1);  // starts 0 … before - 1
  const int64_t after = SentencesOf(first.document) - first.last - 1;
  const int64_t drawn = random->Below(before + after);
  const int64_t start = drawn < before ? drawn : first.last + 1 + (drawn - before);
  const int64_t limit = drawn < before ? before : SentencesOf(first.document);
  return {first.document, start, std::min(limit, start + sentences)};
}

LabelledSegments SentencePairs::DrawNextSentence(const SentenceRun& chunk,
                                                 RandomDraws* random) const {
  const int64_t split = chunk.first + 1 + random->Below(chunk.last - chunk.first - 1);
  const SentenceRun first = {chunk.document, chunk.first, split};
  if (random->Below(2) == 1) {
    return {.segments = {first, {chunk.document, split, chunk.last}}, .label = 1};
  }
  return {.segments = {first, RunElsewhere(chunk, chunk.last - split, random)}, .label = 0};
}

LabelledSegments SentencePairs::DrawDistance(const SentenceRun& chunk, RandomDraws* random) const {
  // At least two sentences are left behind the first segment.
  const int64_t split = chunk.first + 1 + random->Below(chunk.last - chunk.first - 2);
  const SentenceRun first = {chunk.document, chunk.first, split};
  const int64_t label = random->Below(3);
  const int64_t sentences = chunk.last - split;
  SentenceRun second = {chunk.document, split, chunk.last};
  if (label == 1) second = RunNotAdjacent(first, sentences, random);
  if (label == 2) second = RunElsewhere(chunk, sentences, random);
  return {.segments = {first, second}, .label = label};
}

LabelledSegments SentencePairs::DrawReordering(const SentenceRun& chunk,
                                               RandomDraws* random) const {
  const int64_t sentences = chunk.last - chunk.first;
  const int64_t count = 1 + random->Below(std::min(sentences, options_.most_segments));
  // Segment boundaries: `count - 1` different places between sentences.
  std::vector<int64_t> places(static_cast<size_t>(sentences - 1));
  std::iota(places.begin(), places.end(), chunk.first + 1);
  random->Shuffle(&places);
  places.resize(static_cast<size_t>(count - 1));
  places.push_back(chunk.first);
  places.push_back(chunk.last);
  std::sort(places.begin(), places.end());
  std::vector<int64_t> permutation(static_cast<size_t>(count));
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  random->Shuffle(&permutation);
  LabelledSegments shown;
  for (const int64_t segment : permutation) {
    const auto i = static_cast<size_t>(segment);
    shown.segments.push_back({chunk.document, places[i], places[i + 1]});
  }
  shown.label = PermutationClass(permutation);
  return shown;
}

}  // namespace skiff::text
