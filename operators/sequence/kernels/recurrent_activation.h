// The activations of recurrent layers.
#pragma once

#include <string_view>

#include "framework/base/static_text.h"
#include "framework/op/op_context.h"

namespace skiff {

enum class RecurrentActivation { kIdentity, kSigmoid, kTanh, kRelu };

// Returns the activation that a string attribute names.
RecurrentActivation ActivationOf(const OpContext& context, std::string_view attribute);

// Returns the definition of such an attribute.
AttrDef ActivationAttr(StaticText name, StaticText default_value, StaticText doc);

}  // namespace skiff
