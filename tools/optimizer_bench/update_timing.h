// Times the forms of a program's updates, beside a stream of memory.
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

// Returns the names of the forms, each made by passes: loop (none), merged (merge_optimizer), flat
// (fuse_optimizer and flatten_parameters).
std::vector<std::string> FormNames();

struct FormTiming {
  std::string form;
  double step_seconds = 0;             // median of the turns
  double fastest_seconds = 0;          // a step
  int64_t launches = 0;                // instructions of the plan, each of which runs a kernel
  int64_t planned_bytes = 0;           // of temporaries
  double compile_seconds = 0;          // to compile and bind the program
  double stream_share = 0;             // bytes/s of the update over bytes/s of the stream in the
                                       // same turn
  std::optional<double> loop_over_it;  // the loop's time over this form's in the same turn
};

struct UpdateTiming {
  int64_t bytes = 0;                  // of the memory traffic of a step, by SweepsOf
  double stream_seconds = 0;          // median of the turns
  double fastest_stream_seconds = 0;  // a step
  std::vector<FormTiming> forms;
};

// Returns about how many bytes the forms and the stream hold at the same time.
int64_t BytesHeld(const UpdateWork& work, size_t forms);

struct UpdateTimingOptions {
  Place place = Place::Cpu();
  MemoryOptions memory = {};
  InTurnOptions in_turn = {};
};

// Times the same program in each of the forms, each with parameters of its own, in turn with the
// stream. All other options are the defaults. Throws Error for an unknown optimizer or form, and if
// memory runs out.
UpdateTiming TimeUpdates(const UpdateWork& work, const std::vector<std::string>& forms,
                         const UpdateTimingOptions& options = {});

}  // namespace skiff
