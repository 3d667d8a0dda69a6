// Checks that a program can run: what the executor and the passes rely on.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

struct VerifyOptions {
  // Variables that a run sets before it starts, besides persistables.
  std::vector<std::string> feeds;
  // Treat every variable that no op writes as fed: for programs whose feeds are not known.
  bool infer_feeds = true;
  // Leave to the run what depends on its feeds: reads before the first write, writes of feeds, and
  // shapes (files of other versions declare some of them otherwise).
  bool structure_only = false;
};

// All that is wrong with the program, one message each, naming block, op and creation site:
// - an op that the registry lacks, or that its definition refuses (slots, attributes);
// - an argument without a variable (`feed` and `fetch`, which the executor runs itself, are exempt
//   from both where the registry lacks them);
// - a read before the first write of a variable that is neither persistable nor fed, wherever it is
//   declared (a gradient block sees the variables of its forward block, too);
// - a variable whose shape or dtype is not what the shape rule of the op that writes it says;
// - one variable in two output positions of an op;
// - an op that writes a feed, or a sub-block index that is out of range, the op's own block or an
//   ancestor of it, or nested too deeply;
// - a block whose forward block is itself, or out of range;
// - a variable whose dims make no shape: below -1, too many, or more bytes than 63 bits count;
// - an op_role, op_namescope or op_role_var of another type than int, string and strings.
// Whatever the program, this comes to an end and throws nothing.
std::vector<std::string> VerifyProgram(const OpRegistry& registry, const Program& program,
                                       const VerifyOptions& options = {});

// Error (kInvalidArgument) with all messages if there are any.
void CheckProgram(const OpRegistry& registry, const Program& program,
                  const VerifyOptions& options = {});

}  // namespace skiff
