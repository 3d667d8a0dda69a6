#include "framework/training/training_state.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/base/str_cat.h"
#include "framework/training/state_text.h"
#include "framework/training/training_settings.h"
#include "framework/tuning/kernel_tuner.h"

namespace skiff::training {
namespace {

// How many threads computed.
constexpr const char* kThreads = "threads";
// Which kernels a tuner has chosen; absent if there was no tuner.
constexpr const char* kKernelChoices = "kernel_choices";

// Of the state of a callback.
std::string CallbackPrefix(size_t i) { return StrCat("callback.", i, "."); }
// Of Callback::Name, of a callback with a state.
std::string CallbackName(size_t i) { return StrCat("callback_name.", i); }

// Returns the kernel choices in the state; none if the checkpoint's training had no tuner.
std::optional<KernelChoices> SavedChoices(const TrainerState& state) {
  const auto saved = state.find(kKernelChoices);
  if (saved == state.end()) return {};
  return ParseKernelChoices(saved->second, StrCat("the checkpoint's state, ", kKernelChoices));
}

// Adds the states of the callbacks that have any, and their names.
void AddCallbacks(const std::vector<std::shared_ptr<Callback>>& callbacks, TrainerState* state) {
  const std::vector<TrainerState> states = StatesOf(callbacks);
  for (size_t i = 0; i < states.size(); ++i) {
    if (!states[i].empty()) (*state)[CallbackName(i)] = callbacks[i]->Name();
    for (const auto& [name, value] : states[i]) (*state)[CallbackPrefix(i) + name] = value;
  }
}

std::vector<TrainerState> SavedCallbackStates(
    const std::vector<std::shared_ptr<Callback>>& callbacks, const TrainerState& state) {
  std::vector<TrainerState> states;
  for (size_t i = 0; i < callbacks.size(); ++i) {
    states.push_back(PartOf(state, CallbackPrefix(i)));
    const auto saved = state.find(CallbackName(i));
    const std::string name = callbacks[i]->Name();
    SKIFF_ENFORCE(saved == state.end() || saved->second == name, kFailedPrecondition,
                  "the checkpoint has the state of callback ", i, ", \"",
                  saved == state.end() ? "" : saved->second, "\", but callback ", i, " is \"", name,
                  "\": expected the callbacks of the earlier training, in their order");
  }
  return states;
}

}  // namespace

TrainerState StateToSave(const TrainingProgress& progress, const std::vector<Metric>& metrics,
                         const TrainerOptions& options) {
  TrainerState state = {{kThreads, std::to_string(omp_get_max_threads())}};
  AddProgress(progress, metrics, &state);
  AddCallbacks(options.callbacks, &state);
  if (options.compile.tuner != nullptr) {
    state[kKernelChoices] = PrintKernelChoices(options.compile.tuner->choices());
  }
  AddSettings(options, &state);
  return state;
}

RestoredState RestoreState(const TrainerState& state, const std::vector<Metric>& metrics,
                           const TrainerOptions& options, Reader* reader) {
  CheckSettings(options, state);
  RestoredState restored = {.progress = ProgressIn(state, metrics)};
  if (!restored.progress.reader.empty()) {
    try {
      // Only checks whether the reader accepts the state; a training goes there when it begins.
      reader->Restore(restored.progress.reader);
    } catch (const Error& error) {
      throw error.WithContext("the reader");
    }
  }
  restored.choices = SavedChoices(state);
  RestoreCallbacks(options.callbacks, SavedCallbackStates(options.callbacks, state));
  return restored;
}

std::vector<TrainerState> StatesOf(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  std::vector<TrainerState> states;
  for (const auto& callback : callbacks) states.push_back(callback->State());
  return states;
}

void RestoreCallbacks(const std::vector<std::shared_ptr<Callback>>& callbacks,
                      const std::vector<TrainerState>& states) {
  for (size_t i = 0; i < states.size(); ++i) {
    // A callback without a state, or one that the checkpoint's training didn't have.
    if (states[i].empty()) continue;
    try {
      callbacks[i]->Restore(states[i]);
    } catch (const Error& error) {
      throw error.WithContext(StrCat("callback ", i));
    }
  }
}

void WarnOfOtherThreads(const TrainerState& state, std::ostream* out) {
  const std::string threads = std::to_string(omp_get_max_threads());
  const auto saved = state.find(kThreads);
  if (saved != state.end() && saved->second != threads) {
    *out << "warning: the checkpoint was made with threads = " << saved->second
         << ", but now it is " << threads
         << ": the result will not be that of the unbroken training, bit for bit\n";
  }
}

}  // namespace skiff::training
