// Hostile program files and texts: whatever their bytes, reading them gives a program or an Error,
// and takes memory in proportion to their length.
#include <gtest/gtest.h>

#include <random>

#include "framework/base/error.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "tests/framework/ir/live_memory.h"
#include "tests/framework/ir/random_program.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/wire_bytes.h"

namespace skiff {
namespace {

// An empty message takes two bytes of a file, but an object with a string or a list in it here.
constexpr int64_t kBytesPerByte = 256;
constexpr int64_t kBytesAtLeast = int64_t{1} << 20;

// Whether the bytes are a program.
bool ReadsProgram(const std::string& bytes) {
  const int64_t before = LiveBytes();
  ResetPeak();
  bool is_program = false;
  try {
    const auto program = ParseProgram(bytes);
    is_program = true;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kDataLoss || error.code() == ErrorCode::kUnimplemented)
        << error.what();
  }
  EXPECT_LE(PeakBytes() - before,
            kBytesAtLeast + kBytesPerByte * static_cast<int64_t>(bytes.size()));
  return is_program;
}

std::string Block(int index, int parent, const std::string& rest) {
  return BytesField(1, IntField(1, index) + IntField(2, parent) + rest);
}

TEST(HostileProgramFile, MemoryFollowsTheLengthOfTheFile) {
  constexpr size_t kMany = 100000;
  // Ops without anything but a type, and ops whose lists hold as much as fits.
  EXPECT_TRUE(ReadsProgram(Block(0, -1, Repeated(BytesField(4, BytesField(3, "")), kMany))));
  const std::string numbers =
      BytesField(4, BytesField(1, "a") + IntField(2, 3) + Repeated(IntField(6, 1), kMany));
  EXPECT_TRUE(ReadsProgram(Block(0, -1, BytesField(4, BytesField(3, "f") + numbers))));
  const std::string packed = BytesField(
      4, BytesField(1, "a") + IntField(2, 11) + BytesField(15, std::string(kMany, '\x01')));
  EXPECT_TRUE(ReadsProgram(Block(0, -1, BytesField(4, BytesField(3, "f") + packed))));
  const std::string slot = BytesField(1, BytesField(1, "X") + Repeated(BytesField(2, ""), kMany));
  EXPECT_TRUE(ReadsProgram(Block(0, -1, BytesField(4, slot + BytesField(3, "f")))));
  // Messages that lack what they need.
  EXPECT_FALSE(ReadsProgram(Repeated(BytesField(1, ""), kMany)));
  EXPECT_FALSE(ReadsProgram(Block(0, -1, Repeated(BytesField(3, ""), kMany))));
  EXPECT_FALSE(ReadsProgram(Block(0, -1, Repeated(BytesField(4, ""), kMany))));
  EXPECT_FALSE(ReadsProgram(Block(0, -1, BytesField(4, Repeated(BytesField(4, ""), kMany)))));
}

TEST(HostileProgramFile, ClaimsNoMoreBytesThanItHas) {
  for (const uint64_t claimed : {uint64_t{1} << 31, uint64_t{1} << 40, ~uint64_t{0}}) {
    EXPECT_FALSE(ReadsProgram(Varint(1 << 3 | 2) + Varint(claimed) + "abc"));
    EXPECT_FALSE(ReadsProgram(Block(0, -1, Varint(4 << 3 | 2) + Varint(claimed))));
  }
}

TEST(HostileProgramFile, MayNestBlocksDeeply) {
  std::string bytes;
  constexpr int kDepth = 20000;
  for (int i = 0; i < kDepth; ++i) bytes += Block(i, i - 1, "");
  EXPECT_TRUE(ReadsProgram(bytes));
  const auto program = ParseProgram(bytes);
  EXPECT_EQ(program->block(kDepth - 1)->FindVar("x"), nullptr);
  EXPECT_EQ(program->Clone()->block_count(), static_cast<size_t>(kDepth));
  EXPECT_FALSE(PrintDot(*program).empty());
}

TEST(HostileProgramFile, MayNestMessagesDeeply) {
  // Groups of unknown fields, one in the other.
  EXPECT_FALSE(ReadsProgram(std::string(100000, '\x63')));
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested = BytesField(100, nested);
  EXPECT_TRUE(ReadsProgram(Block(0, -1, "") + nested));
}

TEST(HostileProgramFile, IsAProgramOrAnErrorAfterAThousandMutations) {
  std::mt19937 random(20);
  int programs = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const std::string bytes =
        DamageBytes(SerializeProgram(*RandomProgram(seed, {.storable = true})), &random);
    if (!ReadsProgram(bytes)) continue;
    ++programs;
    // What could be read can be written, read again, printed, copied and drawn.
    const auto program = ParseProgram(bytes);
    EXPECT_TRUE(*ParseProgram(SerializeProgram(*program)) == *program);
    EXPECT_TRUE(*ParseProgramText(PrintProgram(*program)) == *program);
    EXPECT_TRUE(*program->Clone() == *program);
    EXPECT_FALSE(PrintDot(*program).empty());
  }
  EXPECT_GT(programs, 50);
  EXPECT_LT(programs, 950);
}

TEST(HostileProgramText, IsAProgramOrAnErrorAfterAThousandMutations) {
  std::mt19937 random(21);
  int programs = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = DamageBytes(PrintProgram(*RandomProgram(seed)), &random);
    const int64_t before = LiveBytes();
    ResetPeak();
    try {
      const auto program = ParseProgramText(text);
      ++programs;
      EXPECT_TRUE(*ParseProgramText(PrintProgram(*program)) == *program);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_EQ(std::string(error.what()).find("line "), 0u) << error.what();
    }
    EXPECT_LE(PeakBytes() - before,
              kBytesAtLeast + kBytesPerByte * static_cast<int64_t>(text.size()));
  }
  EXPECT_GT(programs, 20);
  EXPECT_LT(programs, 980);
}

}  // namespace
}  // namespace skiff
