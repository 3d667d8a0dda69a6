// Metrics inside the program. Errors of all layers: layers.h.
#pragma once

#include <cstdint>
#include <source_location>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// Returns the share of samples whose label, int64 or int32 of shape [N, 1] or [N], is among the k
// best of `scores` [N, classes]: a float32 scalar (rank 0).
Variable Accuracy(const Variable& scores, const Variable& label, int64_t k = 1,
                  Site site = Site::current());

struct EditDistanceOptions {
  bool normalized = true;                    // divides by the length of the label
  std::vector<int32_t> ignored_tokens = {};  // which count nowhere; for ragged ids alone
  // Of padded ids, [sequences] or [sequences, 1], int64: the ids of each. Both or none.
  Variable input_length = {};
  Variable label_length = {};
};
struct EditDistances {
  Variable distance = {};   // [sequences, 1], float32
  Variable sequences = {};  // [1], int64: how many there are
};
// The fewest ids to insert, to delete and to replace that make the ids of `label` of those of
// `input` (Levenshtein 1966), for each sequence. Both are int64 or int32, ragged [rows, 1], or with
// lengths [sequences, ids]. The sum over all sequences by the sum of their lengths is an error
// rate. A label without ids is an Error (kOutOfRange) of the run if the distances are normalized.
EditDistances EditDistance(const Variable& input, const Variable& label,
                           const EditDistanceOptions& options = {}, Site site = Site::current());

}  // namespace skiff::layers
