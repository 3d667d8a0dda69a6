// What the kernels of recurrent layers find out about their arguments, on all places.
#pragma once

#include <string_view>

#include "framework/op/arguments.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {

// The most rows and sequences of a run.
struct RowCapacity {
  int64_t rows = 0;
  int64_t sequences = 0;
};

// Returns those of the ragged input "Input".
inline RowCapacity InputCapacity(const OpContext& context) {
  return {context.Input("Input").shape[0], SequenceCount(context, "Input")};
}

// Returns an output, as one that the op lacks even if the definition has no such slot: of the ops
// with the same cell only some have it.
template <typename T>
Out<T> OutputIfAny(const OpContext& context, std::string_view slot) {
  return context.def().FindOutput(slot) == nullptr ? Out<T>() : Out<T>(context, slot);
}

}  // namespace skiff
