#include "operators/nn/filter_taps_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/filter_taps_kernel.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/nn/filter_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {

void LoadFilterTapsImpl(const FilterTaps& shape, const float* filters, int64_t output_block,
                        int64_t input_block, bool by_output, float* scratch, float* taps) {
  LoadFilterBlock(shape, filters, output_block, input_block, scratch, taps);
  if (!by_output) return;
  for (int64_t tap = 0; tap < shape.taps; ++tap) {
    TransposeTap(taps + tap * kLanes * kLanes, kLanes, taps + tap * kLanes * kLanes);
  }
}

void StoreFilterTapsImpl(const FilterTaps& shape, const float* taps, int64_t output_block,
                         int64_t input_block, float* scratch, float* filters) {
  StoreFilterBlock(shape, taps, output_block, input_block, scratch, filters);
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(LoadFilterTapsImpl);
HWY_EXPORT(StoreFilterTapsImpl);

void LoadFilterTaps(const FilterTaps& shape, const float* filters, int64_t output_block,
                    int64_t input_block, bool by_output, float* scratch, float* taps) {
  HWY_DYNAMIC_DISPATCH(LoadFilterTapsImpl)
  (shape, filters, output_block, input_block, by_output, scratch, taps);
}

void StoreFilterTaps(const FilterTaps& shape, const float* taps, int64_t output_block,
                     int64_t input_block, float* scratch, float* filters) {
  HWY_DYNAMIC_DISPATCH(StoreFilterTapsImpl)
  (shape, taps, output_block, input_block, scratch, filters);
}

}  // namespace skiff
#endif
