#include "framework/training/training_program.h"

#include <utility>

namespace skiff::training {

void EvaluateInHalf(TrainingProgram* program) {
  if (program->model == nullptr) program->model = std::move(program->test);
  program->test = program->main->CloneForTest();
}

}  // namespace skiff::training
