// What all ops that drop elements have in common: attributes, and the numbers by which they drop.
//
// Element i is dropped if word i of a Philox stream is below the threshold, whatever the dtype. So
// ops with the same key drop the same elements, on any thread, instruction set and place. The key
// is the run's seed, the op's id and the step. With fix_seed, or a `seed` other than 0, it is
// {seed, 0, step}: ops with one seed drop the same elements.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/op/kernel.h"

namespace skiff {

struct DropoutSettings {
  double probability = 0;  // of an element to be dropped
  bool is_test = false;    // nothing is dropped
  bool upscale = false;    // training divides by 1 - probability; else evaluation multiplies by it
  int64_t seed = 0;
  bool fixed_seed = false;

  // The factor of an element that is kept.
  double scale() const;
  bool drops_all() const { return !is_test && probability >= 1.0; }
  // Whether random numbers decide which elements are dropped. Nothing is drawn to drop nothing.
  bool draws() const { return !is_test && probability < 1.0 && threshold() > 0; }
  uint32_t threshold() const;
  RandomKey KeyOf(const KernelContext& run) const;
};

// Returns the attributes of DropoutAttrs, or of UpscaledDropoutAttrs.
DropoutSettings DropoutSettingsOf(const OpContext& context);

// Returns dropout_prob, with this default, is_test, dropout_implementation, fix_seed and seed.
std::vector<AttrDef> DropoutAttrs(float default_probability = 0.5f);
// The same for an op that always divides in training: without dropout_implementation, and with a
// dropout_prob below 1, by default 0.
std::vector<AttrDef> UpscaledDropoutAttrs();

}  // namespace skiff
