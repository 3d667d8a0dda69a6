// Random calls of a CachingAllocator, compared with a model that knows only what the interface
// promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "memory/caching_allocator.h"
#include "memory/out_of_memory_error.h"
#include "tests/memory/fake_memory.h"

namespace skiff {
namespace {

constexpr int64_t kAlignment = 256;  // of large blocks
constexpr int64_t kMaxSmallBytes = 2000;

struct Workload {
  std::string name;
  FakeSource::Options source;
  int64_t max_cached_bytes = CachingOptions::kUnbounded;
  int64_t slack_beyond_peak_bytes = CachingOptions::kUnbounded;
  int64_t limit_bytes = 0;
  bool has_streams = false;
};

void PrintTo(const Workload& workload, std::ostream* stream) { *stream << workload.name; }

// A block that is in use: a live one, or a freed one that a stream still uses.
struct ModelBlock {
  char* begin = nullptr;
  int64_t bytes = 0;
  MemoryTag tag = MemoryTag::kOther;
  FakeStream* stream = nullptr;
  unsigned char fill = 0;
  // Streams that use it, and how much of their work must be done before the block may be reused.
  std::map<FakeStream*, int64_t> uses;

  bool IsUsedByStreams() const {
    return std::ranges::any_of(uses, [](const auto& use) { return use.first->done < use.second; });
  }
};

class RandomWork : public ::testing::TestWithParam<Workload> {
 protected:
  RandomWork() : source_(std::make_shared<FakeSource>(GetParam().source)) {
    source_->is_host = !GetParam().has_streams;
    auto events = GetParam().has_streams ? std::make_unique<FakeEvents>() : nullptr;
    allocator_ = std::make_unique<CachingAllocator>(
        CachingOptions{.name = "fake",
                       .classes = {{.source = source_,
                                    .max_block_bytes = kMaxSmallBytes,
                                    .segment_bytes = 16384,
                                    .max_parked_bytes = 8192},
                                   {.source = source_,
                                    .segment_bytes = 65536,
                                    .rounding = 128,
                                    .alignment = kAlignment}},
                       .max_cached_bytes = GetParam().max_cached_bytes,
                       .slack_beyond_peak_bytes = GetParam().slack_beyond_peak_bytes},
        std::move(events));
    allocator_->SetLimit(GetParam().limit_bytes);
  }

  int64_t Draw(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }

  FakeStream* DrawStream() {
    return GetParam().has_streams ? &streams_[static_cast<size_t>(Draw(3))] : nullptr;
  }

  int64_t DrawBytes() {
    switch (Draw(4)) {
      case 0:
        return 1 + Draw(64);
      case 1:
        return 1 + Draw(kMaxSmallBytes + 10);
      case 2:
        return 1 + Draw(20000);
      default:
        return 1 + Draw(150000);
    }
  }

  void Allocate() {
    ModelBlock block{.bytes = DrawBytes(),
                     .tag = static_cast<MemoryTag>(Draw(kMemoryTagCount)),
                     .stream = DrawStream(),
                     .fill = static_cast<unsigned char>(Draw(256))};
    try {
      block.begin = static_cast<char*>(
          allocator_->Allocate(block.bytes, {.tag = block.tag, .stream = block.stream}));
    } catch (const OutOfMemoryError& error) {
      ++failures_;
      EXPECT_EQ(error.shortage().live_bytes, live_bytes_);
      return;
    }
    CheckNew(block);
    std::memset(block.begin, block.fill, static_cast<size_t>(block.bytes));
    live_bytes_ += block.bytes;
    live_by_tag_[static_cast<size_t>(block.tag)] += block.bytes;
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
    ++allocations_;
    live_.push_back(block);
  }

  void CheckNew(const ModelBlock& block) {
    const int64_t alignment = block.bytes > kMaxSmallBytes ? kAlignment : kBufferAlignment;
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block.begin) % static_cast<uintptr_t>(alignment), 0U);
    ASSERT_TRUE(source_->Backs(block.begin, block.bytes));
    std::erase_if(awaited_, [](const ModelBlock& other) { return !other.IsUsedByStreams(); });
    for (const auto* others : {&live_, &awaited_}) {
      for (const ModelBlock& other : *others) {
        ASSERT_TRUE(block.begin + block.bytes <= other.begin ||
                    other.begin + other.bytes <= block.begin)
            << "two blocks overlap";
      }
    }
    const auto [owner, is_new] =
        stream_of_segment_.emplace(source_->SerialOf(block.begin), block.stream);
    ASSERT_EQ(owner->second, block.stream) << "a block came from another stream";
  }

  void Use() {
    if (live_.empty() || !GetParam().has_streams) return;
    ModelBlock& block = live_[static_cast<size_t>(Draw(static_cast<int64_t>(live_.size())))];
    FakeStream* stream = DrawStream();
    stream->Issue();
    allocator_->RecordUse(block.begin, stream);
    if (stream != block.stream) block.uses[stream] = stream->issued;
  }

  void Free() {
    if (live_.empty()) return;
    std::swap(live_[static_cast<size_t>(Draw(static_cast<int64_t>(live_.size())))], live_.back());
    const ModelBlock block = live_.back();
    live_.pop_back();
    for (int64_t i = 0; i < block.bytes; i += 61) {
      ASSERT_EQ(static_cast<unsigned char>(block.begin[i]), block.fill) << "overwritten";
    }
    allocator_->Free(block.begin, block.bytes);
    live_bytes_ -= block.bytes;
    live_by_tag_[static_cast<size_t>(block.tag)] -= block.bytes;
    if (block.IsUsedByStreams()) awaited_.push_back(block);
  }

  void CheckStatistics() {
    const AllocatorStatistics statistics = allocator_->statistics();
    ASSERT_EQ(statistics.live_bytes, live_bytes_);
    ASSERT_EQ(statistics.peak_bytes, peak_bytes_);
    ASSERT_EQ(statistics.allocations, allocations_);
    ASSERT_EQ(statistics.live_blocks, static_cast<int64_t>(live_.size()));
    ASSERT_EQ(statistics.reserved_bytes, source_->in_use_bytes);
    ASSERT_GE(statistics.reserved_bytes, live_bytes_);
    ASSERT_GE(statistics.peak_reserved_bytes, statistics.reserved_bytes);
    ASSERT_EQ(statistics.system_allocations, source_->reservations + source_->commits);
    ASSERT_EQ(statistics.system_releases, source_->releases + source_->decommits);
    for (size_t i = 0; i < kMemoryTagCount; ++i) {
      ASSERT_EQ(statistics.by_tag[i].live_bytes, live_by_tag_[i]);
    }
    ASSERT_TRUE(GetParam().limit_bytes == 0 ||
                statistics.peak_reserved_bytes <= GetParam().limit_bytes);
    // In addition to the slack: the rounding of blocks, and granules that free memory shares with a
    // live block.
    const int64_t slack = GetParam().slack_beyond_peak_bytes;
    if (slack < CachingOptions::kUnbounded) {
      ASSERT_LE(statistics.peak_reserved_bytes, 5 * peak_bytes_ / 4 + slack);
    }
  }

  void Step() {
    // Phases in which the number of blocks grows alternate with phases in which it shrinks.
    const bool grows = steps_++ / 300 % 2 == 0;
    const int64_t what = Draw(100);
    if (what < (grows ? 50 : 35)) {
      Allocate();
    } else if (what < 85) {
      Free();
    } else if (what < 95) {
      Use();
    } else if (what < 99) {
      streams_[static_cast<size_t>(Draw(3))].Finish();
    } else if (Draw(4) == 0) {
      allocator_->ReleaseCached();
    }
  }

  std::mt19937_64 random_{7};
  std::shared_ptr<FakeSource> source_;
  std::array<FakeStream, 3> streams_;
  std::unique_ptr<CachingAllocator> allocator_;
  std::vector<ModelBlock> live_;
  std::vector<ModelBlock> awaited_;
  std::map<int64_t, FakeStream*> stream_of_segment_;
  std::array<int64_t, kMemoryTagCount> live_by_tag_{};
  int64_t live_bytes_ = 0;
  int64_t peak_bytes_ = 0;
  int64_t allocations_ = 0;
  int64_t failures_ = 0;
  int64_t steps_ = 0;
};

TEST_P(RandomWork, KeepsWhatTheInterfacePromises) {
  for (int i = 0; i < 20000; ++i) {
    Step();
    CheckStatistics();
    if (HasFatalFailure()) FAIL() << "step " << i;
  }
  EXPECT_EQ(failures_ > 0, GetParam().limit_bytes > 0 || GetParam().source.capacity_bytes <
                                                             FakeSource::Options().capacity_bytes);
  while (!live_.empty()) Free();
  allocator_->ReleaseCached();
  EXPECT_EQ(source_->in_use_bytes, 0);
  EXPECT_EQ(allocator_->statistics().reserved_bytes, 0);
  EXPECT_EQ(allocator_->statistics().live_bytes, 0);
}

// The caller's mistake, but the memory still goes back to the system.
TEST_P(RandomWork, ReturnsEverythingWhenTheAllocatorGoes) {
  for (int i = 0; i < 1000; ++i) Step();
  EXPECT_GT(source_->in_use_bytes, 0);
  allocator_.reset();
  EXPECT_EQ(source_->in_use_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(
    CachingAllocator, RandomWork,
    ::testing::Values(Workload{.name = "segments"},
                      Workload{.name = "segments_of_a_small_system",
                               .source = {.capacity_bytes = 1 << 20}},
                      Workload{.name = "segments_under_a_limit", .limit_bytes = 1 << 20},
                      Workload{.name = "segments_with_a_small_cache", .max_cached_bytes = 1 << 16},
                      Workload{.name = "segments_and_streams",
                               .source = {.capacity_bytes = 2 << 20},
                               .has_streams = true},
                      Workload{.name = "committed", .source = {.commit_granularity = 1024}},
                      Workload{.name = "committed_within_the_peak",
                               .source = {.commit_granularity = 1024},
                               .slack_beyond_peak_bytes = 1 << 14},
                      Workload{.name = "committed_on_a_small_system",
                               .source = {.capacity_bytes = 1 << 20, .commit_granularity = 4096}},
                      Workload{.name = "committed_under_a_limit",
                               .source = {.commit_granularity = 4096},
                               .limit_bytes = 1 << 20},
                      Workload{.name = "committed_with_a_small_cache",
                               .source = {.commit_granularity = 4096},
                               .max_cached_bytes = 1 << 16},
                      Workload{.name = "committed_and_streams",
                               .source = {.capacity_bytes = 2 << 20, .commit_granularity = 4096},
                               .has_streams = true}),
    [](const ::testing::TestParamInfo<Workload>& info) { return info.param.name; });

}  // namespace
}  // namespace skiff
