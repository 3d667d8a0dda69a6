#include "operators/sequence/kernels/recurrent_activation.h"

namespace skiff {

RecurrentActivation ActivationOf(const OpContext& context, std::string_view attribute) {
  const auto& name = context.Attr<std::string>(attribute);
  if (name == "sigmoid") return RecurrentActivation::kSigmoid;
  if (name == "tanh") return RecurrentActivation::kTanh;
  return name == "relu" ? RecurrentActivation::kRelu : RecurrentActivation::kIdentity;
}

AttrDef ActivationAttr(StaticText name, StaticText default_value, StaticText doc) {
  return ChoiceAttr(name, default_value, {"sigmoid", "tanh", "relu", "identity"}, doc);
}

}  // namespace skiff
