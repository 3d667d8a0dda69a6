#include "framework/text/sentence_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "framework/base/error.h"
#include "framework/text/random_draws.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::ElementsAre;

// Documents whose sentences have these numbers of tokens.
std::vector<TokenizedDocument> Documents(const std::vector<std::vector<int>>& lengths) {
  std::vector<TokenizedDocument> documents;
  for (const std::vector<int>& of_document : lengths) {
    TokenizedDocument document;
    for (const int length : of_document) {
      TokenSequence sentence;
      for (int i = 0; i < length; ++i) sentence.Add(5, TokenRole::kWordStart);
      document.sentences.push_back(sentence);
    }
    documents.push_back(document);
  }
  return documents;
}

RandomDraws Draws(uint64_t step) {
  return RandomDraws(Philox({.seed = 3, .op_id = 0, .step = step}));
}

// Chunk 0 drawn many times.
std::vector<LabelledSegments> DrawMany(const SentencePairs& pairs, int64_t chunk = 0) {
  std::vector<LabelledSegments> drawn;
  for (uint64_t step = 0; step < 3000; ++step) {
    RandomDraws random = Draws(step);
    drawn.push_back(pairs.Draw(chunk, &random));
  }
  return drawn;
}

std::map<int64_t, double> SharesOfLabels(const std::vector<LabelledSegments>& drawn) {
  std::map<int64_t, double> shares;
  for (const LabelledSegments& segments : drawn) {
    shares[segments.label] += 1.0 / static_cast<double>(drawn.size());
  }
  return shares;
}

std::vector<SentenceRun> Chunks(const std::vector<std::vector<int>>& lengths,
                                const SentencePairOptions& options) {
  const auto documents = Documents(lengths);
  const SentencePairs pairs(&documents, options);
  std::vector<SentenceRun> chunks;
  for (int64_t i = 0; i < pairs.chunks(); ++i) {
    RandomDraws random = Draws(0);
    chunks.push_back(pairs.Draw(i, &random).segments[0]);
  }
  return chunks;
}

TEST(SentencePairs, ChunksFillTheInput) {
  EXPECT_THAT(Chunks({{4, 4, 4, 4, 4}, {9, 2}}, {.task = SentenceTask::kNone, .most_tokens = 10}),
              ElementsAre(SentenceRun{0, 0, 2}, SentenceRun{0, 2, 4}, SentenceRun{0, 4, 5},
                          SentenceRun{1, 0, 1}, SentenceRun{1, 1, 2}));
}

TEST(SentencePairs, ChunksHaveTheSentencesThatATaskNeeds) {
  const auto documents = Documents({{4, 4, 4, 4, 4}, {90, 90, 90}, {1}});
  const SentencePairs pairs(&documents, {.most_tokens = 10});
  // Two each, overlapping at the end of an odd document.
  EXPECT_EQ(pairs.chunks(), 3 + 2);
  EXPECT_EQ(pairs.documents_left_out(), 1);
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t chunk = 0; chunk < pairs.chunks(); ++chunk) {
    for (const LabelledSegments& drawn : DrawMany(pairs, chunk)) {
      ASSERT_EQ(drawn.segments.size(), 2u);
      for (const SentenceRun& run : drawn.segments) ASSERT_LT(run.first, run.last);
      seen.insert({drawn.segments[0].document, drawn.segments[0].first});
    }
  }
  EXPECT_THAT(seen, ElementsAre(std::pair(0, 0), std::pair(0, 2), std::pair(0, 3), std::pair(1, 0),
                                std::pair(1, 1)));
}

TEST(NextSentence, FollowsInHalfOfThePairs) {
  const auto documents = Documents({{3, 3, 3, 3}, {3, 3, 3}, {3, 3}});
  const SentencePairs pairs(&documents, {.most_tokens = 20});
  const std::vector<LabelledSegments> drawn = DrawMany(pairs);
  EXPECT_NEAR(SharesOfLabels(drawn)[1], 0.5, 0.037);  // four standard deviations
  std::set<int64_t> others;
  for (const LabelledSegments& pair : drawn) {
    const SentenceRun& first = pair.segments[0];
    const SentenceRun& second = pair.segments[1];
    EXPECT_EQ(first.document, 0);
    if (pair.label == 1) {
      EXPECT_EQ(second, (SentenceRun{0, first.last, 4}));
    } else {
      others.insert(second.document);
    }
  }
  EXPECT_THAT(others, ElementsAre(1, 2)) << "never the document itself";
}

TEST(SentenceDistance, HasThreeEquallyLikelyClasses) {
  const auto documents = Documents({{3, 3, 3, 3, 3, 3, 3, 3}, {3, 3, 3}});
  const SentencePairs pairs(&documents, {.task = SentenceTask::kDistance, .most_tokens = 12});
  EXPECT_EQ(pairs.classes(), 3);
  std::vector<LabelledSegments> drawn = DrawMany(pairs, 1);  // sentences 4 to 7
  for (const auto& [label, share] : SharesOfLabels(drawn)) EXPECT_NEAR(share, 1.0 / 3, 0.035);
  std::set<int64_t> starts;
  for (const LabelledSegments& pair : drawn) {
    const SentenceRun& first = pair.segments[0];
    const SentenceRun& second = pair.segments[1];
    if (pair.label == 0) {
      EXPECT_EQ(second, (SentenceRun{0, first.last, 8}));
    }
    if (pair.label == 1) {
      EXPECT_EQ(second.document, 0);
      EXPECT_TRUE(second.first > first.last || second.last < first.first) << "adjacent";
      starts.insert(second.first);
    }
    if (pair.label == 2) {
      EXPECT_EQ(second.document, 1);
    }
  }
  EXPECT_THAT(starts, ElementsAre(0, 1, 2, 6, 7)) << "before and behind the chunk";
}

TEST(SentenceReordering, TellsThePermutation) {
  const auto documents = Documents({{3, 3, 3, 3, 3}});
  const SentencePairs pairs(&documents, {.task = SentenceTask::kReordering, .most_tokens = 100});
  EXPECT_EQ(pairs.classes(), 1 + 2 + 6);
  const std::vector<LabelledSegments> drawn = DrawMany(pairs);
  for (const LabelledSegments& shown : drawn) {
    std::vector<SentenceRun> sorted = shown.segments;
    std::sort(sorted.begin(), sorted.end(),
              [](const SentenceRun& a, const SentenceRun& b) { return a.first < b.first; });
    EXPECT_EQ(sorted.front().first, 0);
    EXPECT_EQ(sorted.back().last, 5);
    std::vector<int64_t> permutation;
    for (size_t i = 0; i + 1 < sorted.size(); ++i) EXPECT_EQ(sorted[i].last, sorted[i + 1].first);
    for (const SentenceRun& run : shown.segments) {
      permutation.push_back(std::find(sorted.begin(), sorted.end(), run) - sorted.begin());
    }
    EXPECT_EQ(PermutationClass(permutation), shown.label);
  }
  const std::map<int64_t, double> shares = SharesOfLabels(drawn);
  ASSERT_EQ(shares.size(), 9u);
  EXPECT_NEAR(shares.at(0), 1.0 / 3, 0.035);
  EXPECT_NEAR(shares.at(1), 1.0 / 6, 0.028);
  EXPECT_NEAR(shares.at(8), 1.0 / 18, 0.017);
}

TEST(PermutationClass, CountsPermutationsInLexicographicOrder) {
  int64_t expected = 0;
  for (int64_t n = 1; n <= 4; ++n) {
    std::vector<int64_t> permutation(static_cast<size_t>(n));
    std::iota(permutation.begin(), permutation.end(), int64_t{0});
    do {
      EXPECT_EQ(PermutationClass(permutation), expected++);
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }
  EXPECT_EQ(expected, 1 + 2 + 6 + 24);
}

TEST(SentencePairs, RefusesDocumentsWithoutPairs) {
  const auto refusal = [](const std::vector<std::vector<int>>& lengths,
                          const SentencePairOptions& options) {
    const auto documents = Documents(lengths);
    const Error error = ErrorOf([&] { SentencePairs(&documents, options); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  EXPECT_EQ(refusal({{3}, {3}}, {}),
            "no sentence pairs: none of the 2 documents has the 2 sentences that the task "
            "next_sentence needs");
  EXPECT_EQ(refusal({{3, 3}, {3, 3}}, {.task = SentenceTask::kDistance}),
            "no sentence pairs: none of the 2 documents has the 3 sentences that the task "
            "distance needs");
  EXPECT_EQ(refusal({{3, 3}}, {}),
            "the task next_sentence takes sentences of other documents: expected at least 2 "
            "documents, got 1");
  EXPECT_EQ(refusal({{3, 3}}, {.task = SentenceTask::kReordering, .most_segments = 7}),
            "most_segments = 7: expected 2 to 6");
}

TEST(SentenceTask, HasANameForFlags) {
  for (const SentenceTask task : {SentenceTask::kNone, SentenceTask::kNextSentence,
                                  SentenceTask::kReordering, SentenceTask::kDistance}) {
    EXPECT_EQ(SentenceTaskFromName(SentenceTaskName(task)), task);
  }
  ExpectError([] { SentenceTaskFromName("nsp"); }, ErrorCode::kInvalidArgument,
              "sentence task \"nsp\": expected none, next_sentence, reordering, distance");
}

}  // namespace
}  // namespace skiff::text
