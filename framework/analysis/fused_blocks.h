// Fused instructions: how their values are cut into blocks, and where each block is stored.
//
// A fused instruction cuts flattened arrays into blocks and runs all members on one block before
// the next, so that intermediate results stay in the cache. A member that repeats a value of fewer
// elements sees the whole value for every block.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns the meta of the values that a fused instruction cuts. All have the same shape and layout.
const TensorMeta& CutMeta(const Plan& plan, const Instruction& fused);

// Returns the shape of `elements` elements of a tensor of `shape`: the same rank, and the same dims
// from `row_axis` on. `elements` must be whole rows.
Shape BlockShape(const Shape& shape, int row_axis, int64_t elements);

// Returns the op context of an instruction whose values of shape `cut` are replaced by a plain
// block of shape `block`.
PrepareContext BlockContext(const Plan& plan, const Instruction& instruction, const Shape& cut,
                            const Shape& block);

// Where the blocks of a value are: in an input or an output of the instruction (by index), or in
// the thread's scratch memory, at an offset. All are negative if only the value's shape is read.
struct FusedValue {
  ValueId value;
  bool is_cut = false;
  int input = -1;
  int output = -1;
  int64_t scratch_offset = -1;
};

struct FusedPlacement {
  std::vector<FusedValue> values;  // of all members, each value once
  int64_t scratch_bytes = 0;       // per thread
  // Pairs of an input and an output of the instruction that may share storage: no block of the
  // input is read after a block is written there.
  std::vector<std::pair<int, int>> in_place;
};

// Returns where each value is stored. An intermediate result uses the storage of the output that it
// becomes, if every member on the way works in place, else scratch memory.
FusedPlacement PlaceFused(const Plan& plan, const Instruction& fused);

}  // namespace skiff
