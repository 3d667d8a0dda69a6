// What follows a convolution within one op: batch normalization by running statistics, an addition
// and relu. Kernels fold the normalization into the filters, which they keep in that form.
//
//   Output = act(slope[o] · conv + shift[o] + Z),
//   slope = Scale / sqrt(Variance + epsilon), shift = Bias - Mean · slope
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/nn/convolution_shared.h"

namespace skiff {

// Slots and attributes, besides those of the convolution.
std::vector<SlotDef> EpilogueSlots();
std::vector<AttrDef> EpilogueAttrs();

class ConvolutionEpilogue {
 public:
  // Whether the op has one: whether its definition has the slots.
  static bool IsIn(const OpContext& context);
  ConvolutionEpilogue(const OpContext& context, const Convolution& conv);

  int64_t channels() const { return channels_; }
  // Index of Z; -1: nothing is added.
  int addend() const { return addend_; }
  bool rectifies() const { return rectifies_; }
  // Indices of what FoldFilters and Shifts read.
  std::vector<int> inputs() const;

  // slope and shift for each of channels().
  template <typename T>
  void Lines(const KernelContext& run, T* slope, T* shift) const;
  // Filter times slope, plain. It allocates: for derived forms.
  std::vector<float> FoldFilters(const KernelContext& run) const;
  // Asks for a derived form with a shift for each channel, and 0 for those that fill up a block.
  // Returns its index.
  int RequestShifts(PrepareContext& context, int64_t block = 1) const;

 private:
  int64_t channels_;
  int64_t channel_elements_;  // of the filters, for each of the channels
  int filter_;
  int scale_;
  int bias_;
  int mean_;
  int variance_;
  int addend_;
  double epsilon_;
  bool rectifies_;
};

// The epilogue of an op that has one.
std::optional<ConvolutionEpilogue> EpilogueOf(const OpContext& context, const Convolution& conv);

}  // namespace skiff
