// Plain filters, [outputs, inputs, taps], as matrices of blocks: what blocked convolutions multiply
// with.
#pragma once

#include <cstdint>

namespace skiff {

struct FilterTaps {
  int64_t outputs = 0;
  int64_t inputs = 0;
  int64_t taps = 1;
};

// FloatLanes() outputs x FloatLanes() inputs of the filters as [tap][input][output], or, if
// `by_output`, as [tap][output][input]. Filters outside are 0. `taps` and `scratch` hold
// FloatLanes()² · shape.taps floats each and are aligned to a vector.
void LoadFilterTaps(const FilterTaps& shape, const float* filters, int64_t output_block,
                    int64_t input_block, bool by_output, float* scratch, float* taps);
// The reverse of [tap][input][output]; filters outside are left out.
void StoreFilterTaps(const FilterTaps& shape, const float* taps, int64_t output_block,
                     int64_t input_block, float* scratch, float* filters);

}  // namespace skiff
