// Checks and slots that the optimizer ops share.
#pragma once

#include <string>
#include <vector>

#include "framework/op/registry.h"

namespace skiff {

// Why no optimizer op has a gradient.
inline constexpr const char* kNoOptimizerGradient =
    "an update of parameters is no part of what is differentiated";

SlotDef ParamSlot();
SlotDef GradSlot();
SlotDef LearningRateSlot();
SlotDef ParamOutSlot();
// MasterParam and MasterParamOut, which RejectMultiPrecision refuses.
SlotDef MasterParamSlot();
SlotDef MasterParamOutSlot();
AttrDef MultiPrecisionAttr();

// Error (kUnimplemented) if multi_precision is set or MasterParam connected: parameters are float32
// or float64.
void RejectMultiPrecision(const OpContext& context);

// `slot` has the shape and dtype of Param; unknown dims agree with anything.
void CheckLikeParam(const OpContext& context, const std::string& slot);

// `slot`, if connected, has one element of float32 or of Param's dtype.
void CheckScalar(const OpContext& context, const std::string& slot);

// The element of a tensor that passed CheckScalar.
double ScalarOf(const Tensor& tensor);

// An attribute of type float with a default.
AttrDef FloatAttr(std::string name, float default_value, std::string doc);
AttrDef BoolAttr(std::string name, std::string doc);

}  // namespace skiff
