#include "tests/framework/onnx/imported_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/onnx/model_file.h"
#include "tests/harness/error_text.h"

namespace skiff {

std::string PathFor(const std::string& name) { return testing::TempDir() + "/" + name; }

std::string Written(const ModelBuilder& builder) {
  const std::string path = PathFor("model.onnx");
  WriteOnnxModel(path, builder.model);
  return path;
}

InferenceModel Imported(const ModelBuilder& builder, Executor* exe,
                        const OnnxImportOptions& options) {
  return ImportOnnx(Written(builder), &exe->scope(), options);
}

std::string Refusal(ErrorCode code, const ModelBuilder& builder) {
  Scope scope;
  std::string text = ErrorText(code, [&] { ImportOnnx(Written(builder), &scope); });
  EXPECT_THAT(scope.Names(), testing::IsEmpty())
      << "an import that fails leaves the scope as it was";
  return text;
}

}  // namespace skiff
