// The part of its parameters that an update op updates where several ranks share the work: each
// rank updates some elements, and keeps the optimizer states of only these.
//
// Take the elements of all parameters one after the other. The part is a range of them. So it
// begins and ends anywhere in a parameter, and has a piece of each parameter, which may be empty.
// An array that holds only the part is a *shard*: the pieces one after the other, each at a
// multiple of kPieceAlignment elements.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "framework/ir/program.h"

namespace skiff {

// Attributes of update ops; an op has one of the two if it can update a part. Empty: the op updates
// all elements.
// longs [begin, end): the elements of the part.
inline constexpr const char* kPartAttr = "part";
// longs [first, last): the parameters of the part, for an op that needs whole parameters.
inline constexpr const char* kParameterPartAttr = "parameter_part";
// strings: the input slots that have one argument, a shard.
inline constexpr const char* kShardedAttr = "sharded";
// strings, of no definition: the variables that the shards are made of, slot by slot.
inline constexpr const char* kShardOfAttr = "shard_of";

// A multiple of the elements that a vector has.
inline constexpr int64_t kPieceAlignment = 16;

struct PartPiece {
  int64_t begin = 0;  // in the parameter
  int64_t count = 0;
  int64_t place = 0;  // where the piece begins in a shard
};

// Returns the pieces of elements [begin, end) of arrays with so many elements.
std::vector<PartPiece> PiecesOf(const std::vector<int64_t>& counts, int64_t begin, int64_t end);

// Returns the elements [begin, end) that the op updates: all of them unless an attribute says
// otherwise. `counts`: the elements of the parameters. Throws an Error (kInvalidArgument), which
// starts with the op's type, for an attribute that is no range of them.
std::array<int64_t, 2> PartOf(const Op& op, const std::vector<int64_t>& counts);
// Returns the pieces of these elements. Throws what PartOf throws.
std::vector<PartPiece> PiecesOf(const Op& op, const std::vector<int64_t>& counts);

// Returns whether an attribute says what part the op updates.
bool HasPart(const Op& op);

// Returns the elements of a shard: at least 1.
int64_t ShardElements(const std::vector<PartPiece>& pieces);

}  // namespace skiff
