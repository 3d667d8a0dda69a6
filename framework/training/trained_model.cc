#include "framework/training/trained_model.h"

#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/precision/precision_choice.h"
#include "framework/training/half_model.h"

namespace skiff::training {
namespace {

// All parameters are in one file, which so never holds the weights of two epochs, whenever writing
// is cut off.
InferenceModelFiles Files() { return {.params_filename = kCombinedParamsFile}; }

}  // namespace

TrainedModel::TrainedModel(const TrainingProgram* program, const TrainerOptions* options)
    : program_(*program), options_(*options) {
  const PrecisionOptions& precision = options_.saved_precision;
  if (precision.dtype == DType::kFloat32) return;
  // An entry may name what is in the training alone, so the model isn't asked.
  CheckKeepFloat32(*program_.main, precision.keep_float32);
  half_ = MakeHalfModel(*this->program().CloneForTest(), precision, program_.model_outputs);
}

const Program& TrainedModel::program() const {
  if (half_ != nullptr) return *half_;
  return program_.model != nullptr ? *program_.model : *program_.test;
}

void TrainedModel::Save(const std::string& directory, const Scope& scope) const {
  const std::unique_ptr<Executor> rounded = half_ == nullptr ? nullptr : ValuesFor(*half_, scope);
  SaveInferenceModel(directory, program_.model_inputs, program_.model_outputs, program(),
                     rounded == nullptr ? scope : rounded->scope(), {.files = Files()});
  for (const auto& [name, text] : options_.model_files) {
    AtomicWriteFile(JoinPath(directory, name), text);
  }
}

std::vector<std::string> TrainedModel::FileNames() const {
  const InferenceModelFiles files = Files();
  std::vector<std::string> names = {files.model_filename, files.params_filename};
  for (const auto& [name, text] : options_.model_files) names.push_back(name);
  return names;
}

}  // namespace skiff::training
