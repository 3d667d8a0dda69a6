// What a trainer tells people while it trains.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "framework/base/place.h"
#include "framework/executor/api/plan_statistics.h"
#include "framework/plan/plan.h"
#include "framework/tensor/scope.h"
#include "framework/training/initial_weights.h"
#include "framework/training/trainer_options.h"
#include "framework/training/training_metrics.h"
#include "framework/training/training_record.h"

namespace skiff::training {

// Tells how many parameters begin with the weights of `model`, and which are new.
void ReportInitialWeights(const InitialWeights& weights, const std::string& model,
                          std::ostream* out);

// Tells of the ops of a training step for which kernels lack, on the place and in half, and of the
// ops that are computed again. Writes nothing if there are no such ops.
void ReportPlan(const Plan& plan, const Place& place, std::ostream* out);

// Tells of an epoch in one line. `scope` holds the count of skipped updates and the loss scale, if
// the training has any.
void ReportEpoch(const TrainingRecord& record, const TrainingMetrics& metrics,
                 const TrainerOptions& options, const Scope& scope, std::ostream* out);

// Tells what making plans took of the time of a training, if there were more than the usual plans:
// one for full batches and one for the last batch. `seconds`: of the training since it began or was
// resumed, since plans aren't saved.
void ReportPreparation(const PreparationStatistics& preparation, double seconds, std::ostream* out);

}  // namespace skiff::training
