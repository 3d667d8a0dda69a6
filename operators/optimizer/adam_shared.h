// What adam has in common with the optimizers built on it, adamw and lamb.
#pragma once

#include <string>
#include <vector>

#include "operators/optimizer/update_kernel_shared.h"
#include "operators/optimizer/update_op_shared.h"

namespace skiff {

// The slots and attributes of adam.
UpdateOp MakeAdamOp(std::string type, std::string doc);
std::vector<UpdateOp::State> AdamMoments();
std::vector<UpdateOp::State> AdamPowers();
// beta1, beta2, epsilon.
std::vector<AttrDef> AdamAttrs(float epsilon);

// The numbers of AdamFormula.
class AdamCoefficients {
 public:
  explicit AdamCoefficients(const OpContext& context);
  // Those below AdamFormula::kOthers, for a step at `learning_rate`.
  void Set(const UpdateFormula::Parameter& parameter, double learning_rate,
           double* coefficients) const;
  // Moves the powers of beta on.
  void Finish(const KernelContext& run, size_t i) const;

 private:
  OverriddenNumber beta1_;
  OverriddenNumber beta2_;
  OverriddenNumber epsilon_;
  BetaPower beta1_pow_;
  BetaPower beta2_pow_;
};

}  // namespace skiff
