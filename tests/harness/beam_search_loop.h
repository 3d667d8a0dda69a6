// A beam search as Fluid's programs have it, a while over arrays.
#pragma once

#include <cstdint>

#include "framework/base/dtype.h"
#include "framework/builder/beam_search.h"

namespace skiff::harness {

struct BeamSearchSizes {
  DType dtype = DType::kFloat32;  // of states and scores
  int64_t tokens = 0;
  int64_t most = 0;  // steps
  int64_t beam_size = 0;
  int64_t end_id = 0;
};

// Builds the search in the current program. The state after a token is 3 * tanh(state + row `token`
// of the table); its log softmax has the scores of what comes next. Feeds, for n sources: table
// [tokens, tokens], first [n, tokens] (states), and ids (int64) and scores [n, 1], both with the
// two levels that element 0 of a search has (framework/builder/beam_search.h).
layers::BeamSentences BeamSearchLoop(const BeamSearchSizes& sizes);

}  // namespace skiff::harness
