// Models of a ModelBuilder, imported.
#pragma once

#include <string>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/inference_model.h"
#include "framework/onnx/import.h"
#include "tests/framework/onnx/model_builder.h"

namespace skiff {

// Returns a path in the folder of the test.
std::string PathFor(const std::string& name);

// Writes the model to a file, and returns its path.
std::string Written(const ModelBuilder& builder);

InferenceModel Imported(const ModelBuilder& builder, Executor* exe,
                        const OnnxImportOptions& options = {});

// Returns the text of the Error that the import of the model throws. The scope is as before.
std::string Refusal(ErrorCode code, const ModelBuilder& builder);

}  // namespace skiff
