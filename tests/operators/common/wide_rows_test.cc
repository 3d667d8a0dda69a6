// A kernel on half sees rows of float32; one on float32 sees the rows themselves.
#include "operators/common/cpu/wide_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <set>
#include <vector>

#include "framework/op/op_def.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

template <typename T>
std::vector<T> Halves(const std::vector<float>& numbers) {
  std::vector<T> halves;
  for (const float number : numbers) halves.emplace_back(number);
  return halves;
}

TEST(WideRows, AreConvertedAndRounded) {
  std::vector<BFloat16> data = Halves<BFloat16>({1, 2, 3, 4});
  std::array<float, 2> scratch{};
  const float* row = ReadRow(data.data(), 2, 2, scratch.data());
  EXPECT_EQ(row, scratch.data());
  EXPECT_EQ(scratch, (std::array<float, 2>{3, 4}));
  float* place = PlaceOfRow(data.data(), 0, scratch.data());
  EXPECT_EQ(place, scratch.data());
  place[0] = 1.0f + 0x1p-7f + 0x1p-8f;  // a tie, which goes to even
  WriteRow(place, 2, data.data(), 0);
  const std::vector<BFloat16> expected = Halves<BFloat16>({1.0f + 0x1p-6f, 4, 3, 4});
  for (size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i].bits, expected[i].bits);
}

TEST(WideRows, AreTheDataOfFloat32) {
  std::vector<float> data = {1, 2, 3, 4};
  EXPECT_EQ(ReadRow<float>(data.data(), 2, 2, nullptr), data.data() + 2);
  EXPECT_EQ(PlaceOfRow<float>(data.data(), 1, nullptr), data.data() + 1);
}

TEST(WideRows, OfWhatIsntThereAreNullptr) {
  std::array<float, 2> scratch{};
  EXPECT_EQ(ReadRow<BFloat16>(nullptr, 2, 2, scratch.data()), nullptr);
  EXPECT_EQ(PlaceOfRow<BFloat16>(nullptr, 2, scratch.data()), nullptr);
  WriteRow<BFloat16>(scratch.data(), 2, nullptr, 2);
}

// The rows that the iterations of a loop of `count` get, which requests `workspaces`.
template <typename T>
std::vector<WideType<T>*> RowsOfIterations(int64_t count, int64_t grain, size_t workspaces) {
  const Op op("any");
  const OpDef def;
  PrepareContext context(op, def, {}, {}, Place::Cpu());
  const ThreadScratch<T> scratch(context, count, /*rows=*/2, /*size=*/3);
  EXPECT_EQ(context.workspace_bytes().size(), workspaces);
  std::vector<std::vector<char>> memory;
  KernelContext run;
  for (const int64_t bytes : context.workspace_bytes()) {
    run.workspaces.push_back(memory.emplace_back(static_cast<size_t>(bytes)).data());
  }
  std::vector<WideType<T>*> rows(static_cast<size_t>(count));
  std::vector<int> visits(static_cast<size_t>(count));
  scratch.ForEach(run, count, grain, [&](int64_t i, const WideRows<T>& wide) {
    rows[static_cast<size_t>(i)] = wide[1];
    ++visits[static_cast<size_t>(i)];
  });
  EXPECT_EQ(visits, std::vector<int>(static_cast<size_t>(count), 1));
  return rows;
}

TEST(ThreadScratch, GivesEachThreadRowsOfItsOwn) {
  const harness::ThreadCount threads(3);
  for (const int64_t grain : {1, 100}) {
    const std::vector<float*> rows = RowsOfIterations<BFloat16>(10, grain, /*workspaces=*/1);
    EXPECT_TRUE(std::ranges::is_sorted(rows));
    const std::set<float*> different(rows.begin(), rows.end());
    EXPECT_EQ(different.size(), 3u);
    EXPECT_EQ(rows.back() - rows.front(), 2 * 2 * 3);
  }
}

TEST(ThreadScratch, IsEmptyUnlessForHalf) {
  const std::vector<float*> rows = RowsOfIterations<float>(10, 1, /*workspaces=*/0);
  EXPECT_EQ(rows, std::vector<float*>(10, nullptr));
}

}  // namespace
}  // namespace skiff
