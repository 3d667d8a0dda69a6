// The reduction of kldiv_loss.
#pragma once

#include <string>

#include "framework/base/error.h"
#include "framework/op/op_context.h"

namespace skiff {

// Whether Loss is one number.
inline bool IsReduced(const OpContext& context) {
  return context.Attr<std::string>("reduction") != "none";
}

// The divisor of the sum of the losses.
class KldivDivisor {
 public:
  explicit KldivDivisor(const OpContext& context)
      : type_(context.def().type),
        by_elements_(context.Attr<std::string>("reduction") == "mean"),
        by_rows_(context.Attr<std::string>("reduction") == "batchmean") {
    // Mistakes are found before any run.
    For(context.Input("Target").shape);
  }

  // Throws Error if it is 0.
  double For(const Shape& shape) const {
    if (!by_elements_ && !by_rows_) return 1;
    SKIFF_ENFORCE(shape.element_count() > 0, kInvalidArgument, type_, ": X of shape ", shape,
                  " has no elements, expected at least one for reduction ",
                  by_elements_ ? "mean" : "batchmean");
    return static_cast<double>(by_elements_ ? shape.element_count() : shape[0]);
  }

 private:
  StaticText type_;
  bool by_elements_;
  bool by_rows_;
};

}  // namespace skiff
