#include <gflags/gflags.h>
#include <omp.h>

#include <cstdio>

#include "framework/base/error.h"
#include "framework/command_line/argument_text.h"
#include "framework/command_line/command_line.h"
#include "tools/pass_flags/pass_flags.h"
#include "tools/run_program/run_program.h"

DEFINE_string(program, "", "serialised ProgramDesc to run, with or without feed and fetch ops");
DEFINE_string(startup, "", "serialised ProgramDesc to run first");
DEFINE_string(
    params, "",
    "arrays (.npz or .safetensors) that set persistable variables after the startup program");
DEFINE_string(feed, "", "arrays of feeds; x.lod0, x.lod1, … hold the offsets of a ragged x");
DEFINE_string(params_names, "",
              "comma-separated names of the arrays of --params to take; empty: all");
DEFINE_string(feed_names, "", "comma-separated names of the arrays of --feed to take; empty: all");
DEFINE_string(fetch, "", "comma-separated names of the variables to fetch");
DEFINE_int64(steps, 1, "how often to run the program with the same feed");
DEFINE_string(save_params, "", "file of arrays to write all persistable variables to at the end");
DEFINE_string(out, "",
              "file of arrays to write the fetches to; <name>.steps holds every step's value");
DEFINE_string(
    precision, "float32",
    "bfloat16 or float16: computes a program without gradients in it (docs/precision.md); "
    "what is fetched stays float32");
DEFINE_string(jobs, "", "file of JSON lines: run a job for each; its keys are the flags above");
DEFINE_int32(threads, 0, "threads inside ops; 0: OMP_NUM_THREADS decides");

namespace skiff {
namespace {

ArrayNames NamesFromFlag(const std::string& flag) {
  return flag.empty() ? ArrayNames() : SplitNames(flag);
}

int Main() {
  SKIFF_ENFORCE(FLAGS_threads >= 0, kInvalidArgument, "threads = ", FLAGS_threads,
                ": expected no negative number");
  if (FLAGS_threads > 0) omp_set_num_threads(FLAGS_threads);
  const RunProgramOptions options{.program = FLAGS_program,
                                  .startup = FLAGS_startup,
                                  .params = FLAGS_params,
                                  .feed = FLAGS_feed,
                                  .params_names = NamesFromFlag(FLAGS_params_names),
                                  .feed_names = NamesFromFlag(FLAGS_feed_names),
                                  .fetch = SplitNames(FLAGS_fetch),
                                  .steps = FLAGS_steps,
                                  .save_params = FLAGS_save_params,
                                  .out = FLAGS_out,
                                  .passes = PassesFromFlags(),
                                  .precision = DTypeFromName(FLAGS_precision)};
  if (!FLAGS_jobs.empty()) return RunProgramJobs(FLAGS_jobs, options) == 0 ? 0 : 1;
  std::fputs(DescribeRun(RunProgramFile(options)).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace skiff

int main(int argc, char** argv) {
  return skiff::CommandMain(
      argc, argv,
      {.usage = "run_program --program=main.pb --fetch=loss [flags]",
       .summary = "Runs a Fluid program with arrays from NumPy archives or safetensors files.",
       .run = skiff::Main});
}
