#include "framework/training/compiled_training.h"

#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "framework/training/evaluation.h"

namespace skiff::training {

CompiledTraining::CompiledTraining(const TrainingProgram* program, const TrainerOptions& options)
    : program_(*program), executor_(options.place), metrics_(*program) {
  Compile(options.compile);
  if (program_.average != nullptr) average_.emplace(program_.average.get(), &executor_);
  executor_.Run(*program_.startup);
}

void CompiledTraining::Compile(const CompileOptions& options) {
  training_.emplace(executor_.Compile(*program_.main, options), metrics_.training_fetches());
  evaluation_.emplace(executor_.Compile(*program_.test, options), metrics_.evaluation_fetches());
}

void CompiledTraining::Prepare(const Reader& train, const Reader& validation) {
  for (const auto& feeds : train.batch_shapes()) training_->Prepare(feeds);
  for (const auto& feeds : validation.batch_shapes()) evaluation_->Prepare(feeds);
}

MetricValues CompiledTraining::Evaluate(Reader* validation, Communicator* ranks) {
  return training::Evaluate(metrics_, validation, &*evaluation_, ranks);
}

std::unique_ptr<ReplacedValues> CompiledTraining::ApplyAverages() {
  if (!average_) return nullptr;
  return std::unique_ptr<ReplacedValues>(new ReplacedValues(average_->Apply()));
}

std::string CompiledTraining::WeightsHash() const {
  return skiff::WeightsHash(executor_.scope(), PersistableNames(*program_.test));
}

}  // namespace skiff::training
