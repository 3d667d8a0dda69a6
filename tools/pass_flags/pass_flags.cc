#include "tools/pass_flags/pass_flags.h"

#include <gflags/gflags.h>

#include "framework/base/error.h"
#include "framework/command_line/argument_text.h"
#include "framework/transpiler/dump_passes.h"

DEFINE_string(
    passes, "",
    "changes to the passes that run, with commas between them: -layout leaves a pass out, "
    "+fuse_optimizer runs one that doesn't run by default (fuse_optimizer, "
    "flatten_parameters, merge_optimizer); none leaves all out");
DEFINE_int32(pass_limit, -1,
             "run only the first so many program passes, and as many plan passes, to find the one "
             "that breaks something; -1: all");
DEFINE_string(dump_passes, "",
              "folder to write the program or plan to after each pass, a file each; empty: none");
DEFINE_string(
    policy, "arena",
    "how values share memory: none, equal, best_fit, grow (whole buffers), arena (offsets)");
DEFINE_string(recompute, "nothing",
              "what is computed again in the backward pass to save memory: nothing, cheap_ops, "
              "checkpoints, budget, least_memory");
DEFINE_string(checkpoints, "",
              "with --recompute=checkpoints: variables of the forward pass that are kept, with "
              "commas between them");
DEFINE_int64(budget_bytes, 0, "with --recompute=budget: what the arena may take");
DEFINE_int64(flat_alignment_bytes, 64,
             "with flatten_parameters: where tensors begin, at multiples of this power of two");

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
