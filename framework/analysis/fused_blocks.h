// Fused instructions: how their values are cut into blocks, and where a block of each lies.
//
// A member of a fused instruction runs on one block of the flattened arrays after the other, and
// all members on a block before the next, so that what they hand on stays in the cache. Values of
// fewer elements, which a member repeats, are seen whole by every block.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/plan/plan.h"

namespace skiff {

// The values that a fused instruction cuts: they have one shape and one layout.
const TensorMeta& CutMeta(const Plan& plan, const Instruction& fused);

// The shape of `elements` elements of a tensor of `shape`, with the same rank and the same dims
// from `row_axis` on. They are whole rows.
Shape BlockShape(const Shape& shape, int row_axis, int64_t elements);

// The op context of an instruction whose values of the shape `cut` are replaced by a plain block of
// the shape `block`.
PrepareContext BlockContext(const Plan& plan, const Instruction& instruction, const Shape& cut,
                            const Shape& block);

// Where blocks of a value lie: in an input or an output of the instruction (an index), or in
// scratch memory of the thread, at an offset. Nowhere, if only its shape is read.
struct FusedValue {
  int32_t value = -1;
  bool is_cut = false;
  int input = -1;
  int output = -1;
  int64_t scratch_offset = -1;
};

struct FusedPlacement {
  std::vector<FusedValue> values;  // of all members, each once
  int64_t scratch_bytes = 0;       // of a thread
  // Inputs and outputs of the instruction that may share storage: no block of the input is read
  // after a block is written there.
  std::vector<std::pair<int, int>> in_place;
};

// What members hand on lies in the storage of the output that it becomes, where each of them works
// in place, and else in scratch memory.
FusedPlacement PlaceFused(const Plan& plan, const Instruction& fused);

}  // namespace skiff
