#include "framework/training/sharded_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/training/prefetching_reader.h"
#include "tests/framework/training/counting_source.h"
#include "tests/harness/error_text.h"

namespace skiff::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Batches of one sample: sample i of epoch e is "e:i".
std::string NameOf(const Batch& batch) {
  const std::vector<float> place = batch.feed("place").ToVector<float>();
  return StrCat(place[1], ":", place[0]);
}

std::unique_ptr<Reader> Plain(const CountingSource* source) {
  return std::make_unique<SampleReader>(
      source, SampleReaderOptions{.batch_size = 1, .shuffle = true, .seed = 7});
}

// The readers of all ranks, which read ahead or not.
std::vector<std::unique_ptr<Reader>> Shards(const CountingSource* source, int32_t size,
                                            LastRun last_run = LastRun::kFilled,
                                            bool reads_ahead = false) {
  std::vector<std::unique_ptr<Reader>> shards;
  for (int32_t rank = 0; rank < size; ++rank) {
    shards.push_back(std::make_unique<ShardedReader>(Plain(source),
                                                     World{.rank = rank, .size = size}, last_run));
    if (reads_ahead) shards.back() = std::make_unique<PrefetchingReader>(std::move(shards.back()));
  }
  return shards;
}

// Where a training is: in an epoch, of which the reader may be at the start.
struct Position {
  int64_t epoch = 0;
  ReaderState reader = {};
};

void GoTo(const Position& position, Reader* reader) {
  if (position.reader.empty()) {
    reader->StartEpoch(position.epoch);
  } else {
    reader->Restore(position.reader);
  }
}

struct Walk {
  std::vector<std::string> batches;  // of all ranks, in their order
  std::vector<Position> positions;   // before each run, and at the end
};

// Reads as a training of these ranks does, from a position to the end of an epoch.
Walk Read(const std::vector<std::unique_ptr<Reader>>& ranks, Position position, int64_t end_epoch) {
  Walk walk;
  for (; position.epoch < end_epoch; ++position.epoch) {
    for (const auto& rank : ranks) GoTo(position, rank.get());
    int64_t taken = 0;
    bool is_over = false;
    while (!is_over) {
      const Position before = position;
      size_t read = 0;
      for (const auto& rank : ranks) {
        Batch batch;
        if (!rank->Next(&batch)) continue;
        ++read;
        walk.batches.push_back(NameOf(batch));
        taken = batch.from_next_epoch;
        position.reader = rank->state();
        EXPECT_EQ(position.reader, ranks[0]->state());
      }
      EXPECT_EQ(read, read == 0 ? 0 : ranks.size()) << "an epoch ends for all ranks at once";
      if (read > 0) walk.positions.push_back(before);
      is_over = read == 0 || taken > 0;
    }
    for (const auto& rank : ranks) {
      Batch batch;
      EXPECT_FALSE(rank->Next(&batch));
    }
    if (taken == 0) position.reader.clear();
  }
  walk.positions.push_back(position);
  return walk;
}

TEST(ShardedReader, RanksTogetherReadWhatOneProcessReads) {
  for (const int64_t samples : {4, 5, 6, 7, 11}) {
    const CountingSource source(samples);
    std::vector<std::unique_ptr<Reader>> alone;
    alone.push_back(Plain(&source));
    const std::vector<std::string> expected = Read(alone, {}, 5).batches;
    ASSERT_EQ(std::ssize(expected), 5 * samples);
    for (const int32_t size : {1, 2, 3, 4}) {
      for (const bool reads_ahead : {false, true}) {
        SCOPED_TRACE(StrCat(samples, " batches, ", size, " ranks"));
        const auto ranks = Shards(&source, size, LastRun::kFilled, reads_ahead);
        EXPECT_EQ(ranks[0]->ranks(), size);
        EXPECT_EQ(ranks[0]->batches_in_epoch(), samples);
        std::vector<std::string> batches = Read(ranks, {}, 4).batches;
        // The last run may have taken some of the next epoch.
        ASSERT_GE(std::ssize(batches), 4 * samples);
        EXPECT_EQ(batches, std::vector(expected.begin(), expected.begin() + std::ssize(batches)));
      }
    }
  }
}

TEST(ShardedReader, AnyNumberOfRanksGoesOnFromAPosition) {
  const CountingSource source(7);
  std::vector<std::unique_ptr<Reader>> alone;
  alone.push_back(Plain(&source));
  const std::vector<std::string> expected = Read(alone, {}, 5).batches;
  for (const int32_t size : {1, 2, 3, 4}) {
    const std::vector<Position> positions = Read(Shards(&source, size), {}, 3).positions;
    for (size_t run = 0; run < positions.size(); ++run) {
      for (const int32_t other : {0, 1, 2, 3, 4}) {
        SCOPED_TRACE(StrCat("run ", run, " of ", size, " ranks, then ", other));
        // 0: one process without ranks.
        const Walk rest = other == 0 ? Read(alone, positions[run], 4)
                                     : Read(Shards(&source, other), positions[run], 4);
        const auto begin = expected.begin() + static_cast<ptrdiff_t>(run) * size;
        EXPECT_EQ(rest.batches, std::vector(begin, begin + std::ssize(rest.batches)));
        EXPECT_GE(std::ssize(rest.batches), 28 - static_cast<ptrdiff_t>(run) * size);
      }
    }
  }
}

// At its end one process is at no batch, but in the epoch.
TEST(ShardedReader, GoesOnFromTheEndOfAnEpoch) {
  const CountingSource source(4);
  const std::unique_ptr<Reader> alone = Plain(&source);
  RestOfEpoch(alone.get());
  for (const auto& rank : Shards(&source, 3)) {
    rank->Restore(alone->state());
    EXPECT_THAT(RestOfEpoch(rank.get()), IsEmpty());
  }
}

TEST(ShardedReader, SharesAnEvaluationUnevenly) {
  const CountingSource source(5);
  for (const int32_t size : {1, 2, 3, 4, 7}) {
    SCOPED_TRACE(size);
    const std::unique_ptr<Reader> alone = Plain(&source);
    const auto ranks = Shards(&source, size, LastRun::kPartial);
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      alone->StartEpoch(epoch);
      const Labels expected = RestOfEpoch(alone.get());
      for (int32_t rank = 0; rank < size; ++rank) {
        ranks[rank]->StartEpoch(epoch);
        Labels own;
        for (int64_t i = rank; i < 5; i += size) own.push_back(expected[i]);
        EXPECT_EQ(RestOfEpoch(ranks[rank].get()), own);
      }
    }
  }
}

TEST(ShardedReader, TriesTheSameRunAgainAfterAnError) {
  CountingSource source(8);
  for (const auto& rank : Shards(&source, 3)) {
    const ReaderState before = rank->state();
    source.failing_sample = -1;
    const Labels expected = RestOfEpoch(rank.get());
    rank->StartEpoch(0);
    source.failing_sample = expected[0][0];
    Batch batch;
    EXPECT_THROW(rank->Next(&batch), Error);
    EXPECT_EQ(rank->state(), before);
    source.failing_sample = -1;
    EXPECT_EQ(RestOfEpoch(rank.get()), expected);
  }
}

// In a later epoch, there may be fewer batches than in the first.
class ShrinkingReader : public Reader {
 public:
  void StartEpoch(int64_t epoch) override {
    epoch_ = epoch;
    next_ = 0;
  }
  bool Next(Batch* /*batch*/) override { return next_ < batches_in_epoch() && ++next_ > 0; }
  ReaderState state() const override {
    return {{"epoch", StrCat(epoch_)}, {"batch", StrCat(next_)}};
  }
  void Restore(const ReaderState& state) override {
    epoch_ = std::stoll(state.at("epoch"));
    next_ = std::stoll(state.at("batch"));
  }
  int64_t batches_in_epoch() const override { return 4 - epoch_; }

 private:
  int64_t epoch_ = 0;
  int64_t next_ = 0;
};

TEST(ShardedReader, RefusesFewerBatchesThanRanks) {
  const CountingSource source(3);
  const auto make = [&](int32_t rank, int32_t size) {
    return InvalidArgumentText(
        [&] { ShardedReader(Plain(&source), World{.rank = rank, .size = size}); });
  };
  EXPECT_EQ(make(1, 4), "an epoch has 3 batches, which 4 ranks can't share: expected at least 4");
  EXPECT_EQ(make(4, 4), "rank 4 of 4: expected one in [0, 4)");
  EXPECT_EQ(make(-1, 2), "rank -1 of 2: expected one in [0, 2)");
  for (int32_t rank = 0; rank < 3; ++rank) {
    ShardedReader reader(std::make_unique<ShrinkingReader>(), World{.rank = rank, .size = 3});
    reader.StartEpoch(2);
    Batch batch;
    EXPECT_TRUE(reader.Next(&batch));
    EXPECT_EQ(batch.from_next_epoch, 1);
    reader.StartEpoch(3);
    EXPECT_EQ(
        InvalidArgumentText([&] { reader.Next(&batch); }),
        "the rest of epoch 3 and epoch 4 have 1 batches, which 3 ranks can't share: expected at "
        "least 3")
        << rank;
  }
}

}  // namespace
}  // namespace skiff::training
