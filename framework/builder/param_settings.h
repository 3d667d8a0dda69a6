// How the settings of a parameter (ParamAttr) are kept in its variable.
#pragma once

#include <string>
#include <string_view>

#include "framework/builder/regularizer.h"

namespace skiff {

// Keys of the settings in a parameter's Var::attrs; set only where they differ from the default.
inline constexpr const char* kRegularizerVarAttr = "regularizer";
inline constexpr const char* kNeedClipVarAttr = "need_clip";
inline constexpr const char* kDoModelAverageVarAttr = "do_model_average";

// Returns the text of a parameter's own regularizer in its variable's attributes: "l2_decay
// 0.0001"; an empty text if it is undefined.
std::string RegularizerToText(const Regularizer& regularizer);
// Returns the regularizer of such a text. Throws an Error (kInvalidArgument) if it is another text.
Regularizer RegularizerFromText(std::string_view text);

}  // namespace skiff
