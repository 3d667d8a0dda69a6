// The state that a trainer keeps in each checkpoint: its progress, its settings, the states of the
// callbacks, the number of threads and, if a tuner chose kernels, its choices.
//
// Nothing but the state and the persistables decides the next steps. So a resumed training equals
// an unbroken training, bit for bit.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "framework/io/trainer_state.h"
#include "framework/training/callback.h"
#include "framework/training/metric.h"
#include "framework/training/reader.h"
#include "framework/training/trainer_options.h"
#include "framework/training/training_progress.h"
#include "framework/tuning/kernel_choices.h"

namespace skiff::training {

// Returns the state to save. `metrics`: those of the progress.
TrainerState StateToSave(const TrainingProgress& progress, const std::vector<Metric>& metrics,
                         const TrainerOptions& options);

struct RestoredState {
  TrainingProgress progress = {};             // without `step`
  std::optional<KernelChoices> choices = {};  // none if the training had no tuner
};

// Reads the state of a training with the same settings and metrics. Restores the states of the
// callbacks and, within an epoch, of the reader. Throws what CheckSettings and ProgressIn throw; an
// Error (kFailedPrecondition) for a callback of another name than the saved name; and what reader,
// callbacks and ParseKernelChoices throw. After an Error some callbacks, and the reader, may have
// the saved states.
RestoredState RestoreState(const TrainerState& state, const std::vector<Metric>& metrics,
                           const TrainerOptions& options, Reader* reader);

// Returns the states of the callbacks, in their order.
std::vector<TrainerState> StatesOf(const std::vector<std::shared_ptr<Callback>>& callbacks);
// Gives each callback its state, unless the state is empty. Throws what Callback::Restore throws,
// after the number of the callback.
void RestoreCallbacks(const std::vector<std::shared_ptr<Callback>>& callbacks,
                      const std::vector<TrainerState>& states);

// Writes a warning if the state was saved with another number of threads than this process has,
// because the bits of the result depend on it.
void WarnOfOtherThreads(const TrainerState& state, std::ostream* out);

}  // namespace skiff::training
