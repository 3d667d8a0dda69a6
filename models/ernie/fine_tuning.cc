#include "models/ernie/fine_tuning.h"

#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "models/common/training_programs.h"
#include "models/ernie/ernie.h"

namespace skiff::models {

training::TrainingProgram BuildErnieFineTuning(const ErnieOptions& options, int64_t length,
                                               int64_t classes,
                                               const training::OptimizationOptions& optimization,
                                               uint64_t seed) {
  training::TrainingProgram program = EmptyTraining(optimization, seed);
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const ErnieInputs inputs = ErnieFeeds(options, length);
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable pooled = ErniePool(ErnieEncoder(inputs, options), options);
  const Variable scores = ErnieSequenceScores(pooled, classes, kErnieClassifier, options);
  const Variable loss = AddClassification(scores, label, &program);
  program.model_inputs = InputNames(inputs, options);
  program.test = program.main->CloneForTest();
  AddOptimization(loss, optimization, &program);
  return program;
}

std::vector<std::string> NewParametersOfFineTuning() { return {kErnieClassifier, kErniePooler}; }

}  // namespace skiff::models
