// Times the forms that the updates of a program can take, beside a stream of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/place.h"
#include "framework/plan/plan.h"
#include "tools/benchmark/in_turn.h"
#include "tools/optimizer_bench/update_program.h"

namespace skiff {

// The options of CompileOptions that make them: loop (none), merged (merge_optimizer), flat
// (fuse_optimizer and flatten_parameters).
std::vector<std::string> FormNames();

struct FormTiming {
  std::string form;
  double step_seconds = 0;             // median of the turns
  double fastest_seconds = 0;          // a step
  int64_t launches = 0;                // instructions of the plan, each of which runs a kernel
  int64_t planned_bytes = 0;           // of temporaries
  double compile_seconds = 0;          // until it was ready to run
  double stream_share = 0;             // bytes/s, of those of the stream in the same turn
  std::optional<double> loop_over_it;  // how many times as long the loop takes, in the same turn
};

struct UpdateTiming {
  int64_t bytes = 0;                  // that a step must move, as SweepsOf counts them
  double stream_seconds = 0;          // median of the turns
  double fastest_stream_seconds = 0;  // a step
  std::vector<FormTiming> forms;
};

// Bytes that the forms and the stream hold at the same time, about.
int64_t BytesHeld(const UpdateWork& work, size_t forms);

struct UpdateTimingOptions {
  Place place = Place::Cpu();
  MemoryOptions memory = {};
  InTurnOptions in_turn = {};
};

// The same program in each of the forms, with parameters of its own, in turn with the stream. All
// else is compiled as by default. Error for an unknown optimizer or form, and if there is no
// memory.
UpdateTiming TimeUpdates(const UpdateWork& work, const std::vector<std::string>& forms,
                         const UpdateTimingOptions& options = {});

}  // namespace skiff
