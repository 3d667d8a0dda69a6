// The flags about a network that pre-training and fine-tuning have in common: --preset, --config,
// and one for each size. A single flag wins over the file, and the file over the preset.
#pragma once

#include "models/ernie/ernie_options.h"

namespace skiff::models {

// Returns the options that the flags give. Throws an Error (kInvalidArgument) for an unknown
// preset, and for what the file says if that doesn't fit the data; what ReadFile and
// ErnieOptionsFromJson throw. Errors about the file name it.
ErnieOptions ErnieOptionsFromFlags(const ErnieDataSizes& data);

// Returns the options of a saved model with the dropout of the flags. Throws an Error
// (kInvalidArgument) for other flags: a model keeps its sizes.
ErnieOptions WithDropoutFromFlags(const ErnieOptions& of_model);

}  // namespace skiff::models
