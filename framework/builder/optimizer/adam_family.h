// The common part of Adam and the optimizers built on Adam.
#pragma once

#include <source_location>
#include <string>
#include <utility>

#include "framework/builder/optimizer.h"

namespace skiff::optimizer {

class AdamFamily : public Optimizer {
 protected:
  // `options` has beta1, beta2 and epsilon. Throws an Error (kInvalidArgument) if a beta isn't in
  // [0, 1) or epsilon isn't positive.
  template <class Options>
  AdamFamily(std::string op, const Options& options, const std::source_location& site)
      : Optimizer(std::move(op), options, site),
        beta1_(options.beta1),
        beta2_(options.beta2),
        epsilon_(options.epsilon) {
    CheckFraction("beta1", beta1_);
    CheckFraction("beta2", beta2_);
    // Without it 0 / 0 where there never was a gradient.
    CheckPositive("epsilon", epsilon_);
  }

  // The moments, the powers of the betas, and these three attributes.
  void Complete(const Update& update, ir::Op* op) const override;

 private:
  float beta1_;
  float beta2_;
  float epsilon_;
};

}  // namespace skiff::optimizer
