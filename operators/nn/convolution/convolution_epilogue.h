// The epilogue of a convolution, in the same op: batch normalization by running statistics, an
// addition and relu. Kernels fold the normalization into the filters and keep the folded filters.
//
//   Output = act(slope[o] · conv + shift[o] + Z),
//   slope = Scale / sqrt(Variance + epsilon), shift = Bias - Mean · slope
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/op/arguments.h"
#include "operators/nn/convolution/convolution_geometry.h"

namespace skiff {

// Return the slots and attributes of an epilogue.
std::vector<SlotDef> EpilogueSlots();
std::vector<AttrDef> EpilogueAttrs();

class ConvolutionEpilogue {
 public:
  // Returns whether the op has an epilogue: whether its definition has the slots.
  static bool IsIn(const OpContext& context);
  ConvolutionEpilogue(const OpContext& context, const Convolution& conv);

  int64_t channels() const { return channels_; }
  // Z; if it isn't there, nothing is added.
  const In<>& addend() const { return addend_; }
  bool rectifies() const { return rectifies_; }
  // The indices of the inputs that FoldFilters and Shifts read.
  std::vector<int> inputs() const;

  // Returns slope and shift for each of channels().
  template <typename T>
  void Lines(const KernelContext& run, T* slope, T* shift) const;
  // Returns Filter, float32 or half, times slope, plain. Allocates, so only derived forms may use
  // it.
  std::vector<float> FoldFilters(const KernelContext& run) const;
  // Requests a derived form with the shift of each channel, and 0 for channels that pad a block.
  // Returns its index.
  int RequestShifts(PrepareContext& context, int64_t block = 1) const;

 private:
  int64_t channels_;
  int64_t channel_elements_;  // the elements of a channel's filters
  In<> filter_;
  In<> scale_;
  In<> bias_;
  In<> mean_;
  In<> variance_;
  In<> addend_;
  double epsilon_;
  bool rectifies_;
};

// Returns the epilogue of the op, or nothing if it has none.
std::optional<ConvolutionEpilogue> EpilogueOf(const OpContext& context, const Convolution& conv);

}  // namespace skiff
