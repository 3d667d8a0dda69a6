#include "framework/training/compiled_training.h"

#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"

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

MetricValues CompiledTraining::Evaluate(Reader* validation) {
  return metrics_.Evaluate(validation, &*evaluation_);
}

std::unique_ptr<ReplacedValues> CompiledTraining::ApplyAverages() {
  if (!average_) return nullptr;
  return std::unique_ptr<ReplacedValues>(new ReplacedValues(average_->Apply()));
}

std::string CompiledTraining::WeightsHash() const {
  return skiff::WeightsHash(executor_.scope(), PersistableNames(*program_.test));
}

}  // namespace skiff::training
