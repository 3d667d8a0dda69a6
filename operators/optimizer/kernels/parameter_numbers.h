// The numbers from which the coefficients of each parameter are computed, in a run on the CPU. Some
// are attributes, others are in tensors of one element. A step reads thousands of these tensors, so
// Bind looks their addresses up once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/optimizer/kernels/scalar_ref.h"
#include "operators/optimizer/kernels/update_arguments.h"
#include "operators/optimizer/kernels/update_numbers.h"

namespace skiff {

class ParameterNumbers {
 public:
  // `arguments` must outlive the object.
  explicit ParameterNumbers(const UpdateArguments& arguments);

  // Looks up the addresses of the tensors, as Kernel::Bind does.
  void Bind(const KernelContext& run);
  // Reads the numbers of all parameters and sets their norms to 0.
  void Read();
  // Sets the norms of parameter i, which last until the next Read.
  void SetNorms(size_t i, double param_norm, double step_norm);
  // Returns the numbers of parameter i.
  const UpdateNumbers& operator[](size_t i) const { return numbers_[i]; }
  // Returns whether parameters i - 1 and i have the same numbers, and so the same coefficients. i
  // must not be 0.
  bool MatchPrevious(size_t i) const;
  // Returns the number in GradScale, or 1 if the op has no such input.
  double gradient_scale() const { return scale_.is_bound() ? scale_.Get() : 1.0; }
  // Writes the next values of all scalars.
  void AdvanceScalars() const;

 private:
  struct Scalar {
    ScalarRef in;
    ScalarRef out;  // unbound: the op doesn't advance it
  };

  void ReadOf(size_t i);

  const UpdateArguments& arguments_;
  ScalarRef scale_;
  std::vector<ScalarRef> rates_;                        // for all parameters, or per parameter
  std::vector<std::pair<size_t, ScalarRef>> replaced_;  // numbers that tensors replace, by index
  std::vector<Scalar> scalars_;                         // by parameter, then by scalar
  std::vector<UpdateNumbers> numbers_;                  // by parameter
  std::vector<uint8_t> has_previous_attrs_;  // by parameter: its attributes are the previous one's
};

}  // namespace skiff
