#include "framework/training/prefetching_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/framework/training/counting_source.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::ElementsAre;

PrefetchingReader Ahead(const CountingSource& source, const SampleReaderOptions& options,
                        int32_t batches) {
  return PrefetchingReader(std::make_unique<SampleReader>(&source, options), batches);
}

TEST(PrefetchingReader, ReadingAheadChangesNothing) {
  const CountingSource source(101);
  const SampleReaderOptions options{.batch_size = 7, .shuffle = true};
  for (const int32_t batches : {1, 2, 100}) {
    PrefetchingReader ahead = Ahead(source, options, batches);
    SampleReader plain(&source, options);
    EXPECT_EQ(ahead.batches_in_epoch(), plain.batches_in_epoch());
    EXPECT_EQ(ahead.batch_shapes(), plain.batch_shapes());
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      ahead.StartEpoch(epoch);
      plain.StartEpoch(epoch);
      Batch a, b;
      while (plain.Next(&b)) {
        ASSERT_TRUE(ahead.Next(&a));
        EXPECT_EQ(a.samples, b.samples);
        EXPECT_EQ(a.feed("place").ToVector<float>(), b.feed("place").ToVector<float>());
        EXPECT_EQ(a.feed("label").ToVector<int64_t>(), b.feed("label").ToVector<int64_t>());
        EXPECT_EQ(ahead.state(), plain.state());
      }
      EXPECT_FALSE(ahead.Next(&a));
      EXPECT_FALSE(ahead.Next(&a));
      EXPECT_EQ(ahead.state(), plain.state());
    }
  }
}

// Its state is that of what was taken, not of what was read.
TEST(PrefetchingReader, GoesOnFromASavedState) {
  const CountingSource source(40);
  const SampleReaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  PrefetchingReader whole = Ahead(source, options, 4);
  whole.StartEpoch(4);
  Batch batch;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(whole.Next(&batch));
  const ReaderState saved = whole.state();
  const Labels rest = RestOfEpoch(&whole);
  PrefetchingReader resumed = Ahead(source, options, 2);
  resumed.Restore(saved);
  EXPECT_EQ(RestOfEpoch(&resumed), rest);
  SampleReader plain(&source, options);
  plain.Restore(saved);
  EXPECT_EQ(RestOfEpoch(&plain), rest);
}

TEST(PrefetchingReader, SkipsBatchesThatItHasReadAhead) {
  const CountingSource source(20);
  const SampleReaderOptions options{.batch_size = 3, .shuffle = true, .seed = 9};
  for (const int32_t batches : {1, 100}) {
    ExpectSkips([&] {
      return std::make_unique<PrefetchingReader>(std::make_unique<SampleReader>(&source, options),
                                                 batches);
    });
  }
}

// A reader that passes over batches by reading them.
class ReadingReader : public Reader {
 public:
  explicit ReadingReader(const CountingSource* source) : reader_(source, {.batch_size = 2}) {}

  void StartEpoch(int64_t epoch) override { reader_.StartEpoch(epoch); }
  bool Next(Batch* batch) override { return reader_.Next(batch); }
  ReaderState state() const override { return reader_.state(); }
  void Restore(const ReaderState& state) override { reader_.Restore(state); }
  int64_t batches_in_epoch() const override { return reader_.batches_in_epoch(); }

 private:
  SampleReader reader_;
};

TEST(PrefetchingReader, IsWhereItWasAfterAFailedSkip) {
  CountingSource source(12);
  ExpectSkips([&] { return std::make_unique<ReadingReader>(&source); });
  PrefetchingReader reader(std::make_unique<ReadingReader>(&source));
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  source.failing_sample = 6;
  EXPECT_THROW(reader.Skip(3), Error);
  source.failing_sample = -1;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_THAT(batch.feed("label").ToVector<int64_t>(), ElementsAre(2, 3));
}

TEST(PrefetchingReader, IsWhereItWasAfterARefusedMove) {
  const CountingSource source(12);
  PrefetchingReader reader = Ahead(source, {.batch_size = 2}, 3);
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(ErrorOf([&] { reader.StartEpoch(-1); }).code(), ErrorCode::kOutOfRange);
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_THAT(batch.feed("label").ToVector<int64_t>(), ElementsAre(2, 3));
  EXPECT_EQ(ErrorOf([&] {
              reader.Restore({{"epoch", "0"}, {"batch", "9"}});
            }).code(),
            ErrorCode::kDataLoss);
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_THAT(batch.feed("label").ToVector<int64_t>(), ElementsAre(4, 5));
}

TEST(PrefetchingReader, EndsWithAFullQueue) {
  const CountingSource source(1000);
  for (int round = 0; round < 20; ++round) {
    PrefetchingReader reader = Ahead(source, {.batch_size = 1}, 2);
    Batch batch;
    ASSERT_TRUE(reader.Next(&batch));
    if (round % 2 == 0) continue;
    reader.Restore({{"epoch", "1"}, {"batch", "500"}});
    ASSERT_TRUE(reader.Next(&batch));
    EXPECT_EQ(batch.feed("label").Item<int64_t>(), 500);
  }
}

TEST(PrefetchingReader, ReadsNoFurtherAheadThanToldTo) {
  const CountingSource source(1000);
  PrefetchingReader reader = Ahead(source, {.batch_size = 1}, 3);
  Batch batch;
  for (int taken = 1; taken <= 20; ++taken) {
    ASSERT_TRUE(reader.Next(&batch));
    // The queue, what was taken, and one in the thread's hands.
    EXPECT_LE(source.reads.load(), taken + 3 + 1);
  }
}

TEST(PrefetchingReader, RethrowsWhatTheReaderThrewWhereItHappened) {
  CountingSource source(6);
  source.failing_sample = 3;
  PrefetchingReader reader = Ahead(source, {.batch_size = 2}, 4);
  Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  const ReaderState before = reader.state();
  EXPECT_THROW(reader.Next(&batch), Error);
  EXPECT_EQ(reader.state(), before);
  EXPECT_THROW(reader.Next(&batch), Error);
  source.failing_sample = -1;
  EXPECT_THAT(RestOfEpoch(&reader), ElementsAre(ElementsAre(2, 3), ElementsAre(4, 5)));
}

// Cannot say where it is after its third batch, once, nor be put back so many times after that.
class ForgetfulReader final : public Reader {
 public:
  explicit ForgetfulReader(int failing_restores = 0) : failing_restores_(failing_restores) {}

  void StartEpoch(int64_t) override { next_ = 0; }
  bool Next(Batch* batch) override {
    if (next_ == 5) return false;
    batch->feeds = {{"number", Tensor::FromValues<int64_t>({1}, {next_++})}};
    return true;
  }
  ReaderState state() const override {
    if (next_ == 3 && !failed_.exchange(true)) Throw(ErrorCode::kIo, "forgotten");
    return {{"next", std::to_string(next_)}};
  }
  void Restore(const ReaderState& state) override {
    if (failing_restores_-- > 0) Throw(ErrorCode::kIo, "not put back");
    next_ = std::stoll(state.at("next"));
  }
  int64_t batches_in_epoch() const override { return 5; }

 private:
  int64_t next_ = 0;
  int failing_restores_;
  mutable std::atomic<bool> failed_ = false;
};

TEST(PrefetchingReader, LosesNoBatchWhoseStateFails) {
  PrefetchingReader reader(std::make_unique<ForgetfulReader>(), 4);
  Batch batch;
  std::vector<int64_t> read;
  const auto next = [&] {
    const bool has_next = reader.Next(&batch);
    if (has_next) read.push_back(batch.feed("number").Item<int64_t>());
    return has_next;
  };
  EXPECT_TRUE(next());
  EXPECT_TRUE(next());
  ExpectError([&] { next(); }, ErrorCode::kIo, "forgotten");
  while (next()) {
  }
  EXPECT_THAT(read, ElementsAre(0, 1, 2, 3, 4));
}

// The first failure is what a caller has to know; the second one comes where it matters.
TEST(PrefetchingReader, IsPutBackLaterIfThatFails) {
  PrefetchingReader reader(std::make_unique<ForgetfulReader>(2), 4);
  Batch batch;
  EXPECT_TRUE(reader.Next(&batch));
  EXPECT_TRUE(reader.Next(&batch));
  ExpectError([&] { reader.Next(&batch); }, ErrorCode::kIo, "forgotten");
  ExpectError([&] { reader.Next(&batch); }, ErrorCode::kIo, "not put back");
  ExpectError([&] { reader.StartEpoch(1); }, ErrorCode::kIo, "not put back");
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.feed("number").Item<int64_t>(), 2);
}

TEST(PrefetchingReader, RefusesToReadNothingAhead) {
  const CountingSource source(6);
  ExpectError([&] { Ahead(source, {}, 0); }, ErrorCode::kInvalidArgument,
              "prefetch 0 batches: expected at least 1");
}

}  // namespace
}  // namespace skiff::training
