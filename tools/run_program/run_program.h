// Runs a serialised Fluid program with arrays from files: NumPy archives, or safetensors for names
// that end with `.safetensors`. In both, `x.lod0`, `x.lod1`, … are the offsets of a ragged `x`
// (framework/io/lod_entries.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/io/array_names.h"
#include "framework/tensor/tensor.h"
#include "framework/transpiler/pass.h"

namespace skiff {

struct RunProgramOptions {
  std::string program;             // file with a serialised ProgramDesc
  std::string startup;             // the same, run first; empty: none
  std::string params;              // arrays that set persistables after the startup program
  std::string feed;                // arrays of the feeds
  ArrayNames params_names = {};    // of the arrays to take from `params`
  ArrayNames feed_names = {};      // and from `feed`
  std::vector<std::string> fetch;  // names of variables
  int64_t steps = 1;               // runs with the same feed
  std::string save_params;         // arrays of all persistables after the last run; empty: none
  std::string out;                 // arrays of the fetches; empty: none
  PipelineOptions passes = {};     // of the program
  // bfloat16 or float16: the program, which must have no gradients, is rewritten to compute in it
  // (docs/precision.md). Fetches stay float32.
  DType precision = DType::kFloat32;
};

struct RunProgramResult {
  std::vector<std::pair<std::string, Tensor>> fetches;  // of the last run
  std::vector<double> step_ms;                          // of every run
};

// Runs the program and writes to `out` the last value of each fetch under its name and, for fetches
// of one element, the value of every step as `<name>.steps`. Throws Error for unreadable or corrupt
// files, for a params entry that isn't a persistable of the program, and as RewriteForInference and
// Executor.
RunProgramResult RunProgramFile(const RunProgramOptions& options);

// Returns a description for people: the number of steps; from 5 steps on, the median milliseconds
// of those after the second, and the peak RSS; and a line per fetch with dtype, shape, LoD and the
// first values.
std::string DescribeRun(const RunProgramResult& result);

// Runs a job for each line of a JSON-lines file. A line is an object with the options as keys
// (`save-params` or `save_params`; `fetch` is a string of names separated by commas); `defaults`
// provides absent keys. If a job fails or has an unknown key, prints its line number and a message,
// and continues with the next one. Skips empty lines. Returns how many jobs failed. Throws Error if
// the file itself can't be read.
int64_t RunProgramJobs(const std::string& path, const RunProgramOptions& defaults);

}  // namespace skiff
