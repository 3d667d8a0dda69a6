// The numbers of parameters that tensors of one element hold, in a run on the CPU. Thousands of
// them are read in a step, so where they lie is found once.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/optimizer/scalar_ref_shared.h"
#include "operators/optimizer/update_arguments_shared.h"
#include "operators/optimizer/update_numbers_shared.h"

namespace skiff {

class UpdateScalars {
 public:
  // `arguments` must outlive it.
  explicit UpdateScalars(const UpdateArguments& arguments);

  // As Kernel::Bind.
  void Bind(const KernelContext& run);
  // Of the gradients.
  double scale() const { return scale_.is_bound() ? scale_.Get() : 1.0; }
  // Writes what the tensors hold for parameter i over what attributes say.
  void Read(size_t i, UpdateNumbers* numbers) const;
  // Moves the scalars of parameter i on, in a step with these numbers.
  void Advance(size_t i, const UpdateNumbers& numbers) const;

 private:
  struct Scalar {
    ScalarRef in;
    ScalarRef out;  // unbound: it isn't moved
  };

  const UpdateArguments& arguments_;
  ScalarRef scale_;
  std::vector<ScalarRef> rates_;                       // one, or one a parameter
  std::vector<std::pair<size_t, ScalarRef>> numbers_;  // of all parameters, by their index
  std::vector<Scalar> scalars_;                        // by parameter, then by scalar
};

}  // namespace skiff
