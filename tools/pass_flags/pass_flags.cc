#include "tools/pass_flags/pass_flags.h"

#include <gflags/gflags.h>

#include "framework/base/error.h"
#include "framework/command_line/argument_text.h"
#include "framework/transpiler/dump_passes.h"

DEFINE_string(
    passes, "",
    "comma-separated changes to the passes that run: -layout leaves a pass out, +fuse_optimizer "
    "runs one that doesn't run by default (flatten_parameters, merge_optimizer, and on the CPU "
    "fuse_optimizer); none leaves all out");
DEFINE_int32(pass_limit, -1,
             "run only this many program passes and this many plan passes, the first ones, to find "
             "the one that breaks something; -1: all");
DEFINE_string(dump_passes, "",
              "folder for the program or plan after each pass, one file each; empty: none");
DEFINE_string(
    policy, "arena",
    "how values share memory: none, equal, best_fit, grow (whole buffers), arena (offsets)");
DEFINE_string(
    recompute, "almost_free",
    "activations to compute again in the backward pass, to save memory: nothing, "
    "almost_free (what takes at most 2 % of a step, by estimate), cheap_ops, checkpoints, "
    "budget, least_memory");
DEFINE_string(checkpoints, "",
              "with --recompute=checkpoints: the variables of the forward pass to keep, separated "
              "by commas");
DEFINE_int64(budget_bytes, 0, "with --recompute=budget: the most bytes of the arena");
DEFINE_int64(flat_alignment_bytes, 64,
             "with flatten_parameters: tensors begin at multiples of this power of two");

namespace skiff {

PipelineOptions PassesFromFlags() {
  SKIFF_ENFORCE(FLAGS_pass_limit >= -1, kInvalidArgument, "--pass_limit=", FLAGS_pass_limit,
                ": expected at least 0, or -1 for all");
  PipelineOptions options = ParsePasses(FLAGS_passes);
  options.pass_limit = FLAGS_pass_limit;
  if (!FLAGS_dump_passes.empty()) DumpPasses(FLAGS_dump_passes, &options);
  return options;
}

MemoryOptions MemoryFromFlags() { return MemoryFromFlags(ParseReusePolicy(FLAGS_policy)); }

MemoryOptions MemoryFromFlags(ReusePolicy policy) {
  MemoryOptions memory;
  memory.policy = policy;
  memory.recompute = ParseRecompute(FLAGS_recompute);
  memory.checkpoints = SplitNames(FLAGS_checkpoints);
  memory.budget_bytes = FLAGS_budget_bytes;
  memory.flat_alignment_bytes = FLAGS_flat_alignment_bytes;
  return memory;
}

}  // namespace skiff
