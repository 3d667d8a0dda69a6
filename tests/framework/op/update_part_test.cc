#include "framework/op/update_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <vector>

namespace skiff {

// For failures of tests.
static void PrintTo(const PartPiece& piece, std::ostream* out) {
  *out << "[" << piece.begin << ", " << piece.begin + piece.count << ") at " << piece.place;
}

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;

auto Piece(int64_t begin, int64_t count, int64_t place) {
  return AllOf(Field(&PartPiece::begin, begin), Field(&PartPiece::count, count),
               Field(&PartPiece::place, place));
}

TEST(UpdatePart, HasAPieceOfEachParameter) {
  const std::vector<int64_t> counts = {20, 0, 5, 30};
  EXPECT_THAT(PiecesOf(counts, 18, 40),
              ElementsAre(Piece(18, 2, 0), Piece(0, 0, 16), Piece(0, 5, 16), Piece(0, 15, 32)));
  EXPECT_THAT(PiecesOf(counts, 0, 55),
              ElementsAre(Piece(0, 20, 0), Piece(0, 0, 32), Piece(0, 5, 32), Piece(0, 30, 48)));
  EXPECT_THAT(PiecesOf(counts, 21, 22),
              ElementsAre(Piece(20, 0, 0), Piece(0, 0, 0), Piece(1, 1, 0), Piece(0, 0, 16)));
}

TEST(UpdatePart, HasRoomForItsPiecesInAShard) {
  EXPECT_EQ(ShardElements(PiecesOf({20, 0, 5, 30}, 0, 55)), 80);
  EXPECT_EQ(ShardElements(PiecesOf({20, 0, 5, 30}, 19, 21)), 32);
  // A tensor without elements has no storage.
  EXPECT_EQ(ShardElements(PiecesOf({20, 0, 5, 30}, 20, 20)), 1);
}

TEST(UpdatePart, IsGivenInElementsOrInParameters) {
  Op op("sgd");
  EXPECT_FALSE(HasPart(op));
  EXPECT_THAT(PartOf(op, {20, 5}), ElementsAre(0, 25));
  op.SetAttr(kPartAttr, std::vector<int64_t>{3, 21});
  EXPECT_TRUE(HasPart(op));
  EXPECT_THAT(PartOf(op, {20, 5}), ElementsAre(3, 21));
  Op of_whole("lamb");
  of_whole.SetAttr(kParameterPartAttr, std::vector<int64_t>{1, 3});
  EXPECT_TRUE(HasPart(of_whole));
  EXPECT_THAT(PartOf(of_whole, {20, 5, 4, 6}), ElementsAre(20, 29));
}

}  // namespace
}  // namespace skiff
