#include "operators/optimizer/kernels/adam_definition.h"

#include "framework/base/error.h"

namespace skiff {
namespace {

SlotDef Override(StaticText slot, StaticText attr) {
  return {.name = slot,
          .doc = StrCat("One element: overrides the attribute ", attr, "."),
          .dispensable = true};
}

}  // namespace

std::vector<UpdateOp::State> AdamMoments() {
  return {{.input = "Moment1",
           .output = "Moment1Out",
           .doc = "The means of the gradients, each of its parameter's shape."},
          {.input = "Moment2",
           .output = "Moment2Out",
           .doc = "The means of their squares, each of its parameter's shape."}};
}

std::vector<UpdateOp::State> AdamPowers() {
  return {{.input = "Beta1Pow",
           .output = "Beta1PowOut",
           .doc = "One element: beta1 to the power of the step, from 1 on."},
          {.input = "Beta2Pow",
           .output = "Beta2PowOut",
           .doc = "One element: beta2 to the power of the step, from 1 on."}};
}

std::vector<AttrDef> AdamAttrs(float epsilon) {
  return {FloatAttr("beta1", 0.9f, "The decay of Moment1."),
          FloatAttr("beta2", 0.999f, "The decay of Moment2."),
          FloatAttr("epsilon", epsilon,
                    "Keeps the quotient finite; with 0 it is NaN where all gradients were 0.")};
}

UpdateOp MakeAdamOp(StaticText type, StaticText doc) {
  UpdateOp op{.type = type,
              .doc = doc,
              .states = AdamMoments(),
              .scalars = AdamPowers(),
              .shared_scalars = {Override("Beta1Tensor", "beta1"), Override("Beta2Tensor", "beta2"),
                                 Override("EpsilonTensor", "epsilon")},
              .attrs = AdamAttrs(1e-8f)};
  op.attrs.push_back(
      BoolAttr("lazy_mode", "A sparse gradient updates the rows that it has, and no others."));
  // Threads are used by the number of elements here, but Fluid's programs set the attribute.
  op.attrs.push_back({.name = "min_row_size_to_use_multithread",
                      .type = AttrType::kLong,
                      .default_value = int64_t{1000},
                      .doc = "A hint of Fluid's; ignored."});
  op.attrs.push_back(
      BoolAttr("use_global_beta_pow", "The program advances the powers, not this op."));
  return op;
}

}  // namespace skiff
