// Checks that a program can run: everything that the executor and the passes rely on.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

struct VerifyOptions {
  // Variables that a run sets before it starts, besides persistables.
  std::vector<std::string> feeds;
  // Whether to treat every variable that no op writes as fed, for programs whose feeds are unknown.
  bool infer_feeds = true;
  // Whether to leave checks that depend on feeds to the run: reads before the first write, writes
  // of feeds, and shapes (files of other versions declare some of them otherwise).
  bool structure_only = false;
  // If given, gets messages about what a run tolerates:
  // - shapes and dtypes that are declared otherwise than the shape rule says, which the result then
  //   lacks (a run goes by the shape rules);
  // - attributes of the wrong type whose value fits the declared type (TakeDeclaredTypes);
  // - what shape rules warn of (framework/op/shape_warning.h).
  std::vector<std::string>* warnings = nullptr;
};

// Returns one message per problem of the program, naming block, op and creation site:
// - an op that the registry lacks, or that doesn't fit its definition (slots, attributes);
// - an argument without a variable (`feed` and `fetch`, which the executor runs itself, are exempt
//   from both if the registry lacks them);
// - a read before the first write of a variable that is neither persistable nor fed, wherever it is
//   declared (a gradient block also sees the variables of its forward block);
// - an input that gives an attribute (SlotDef::attribute) and depends on data;
// - a variable whose shape or dtype differs from the result of its writer's shape rule (as in a
//   run, the rules of later ops get the result, not the declaration);
// - an op for whose dtype there is no kernel;
// - one variable in two output positions of an op;
// - an op that writes a feed;
// - a sub-block index that is out of range, names the op's own block or an ancestor, or is nested
//   too deeply;
// - a block whose forward block is itself or out of range;
// - a variable whose dims aren't a shape: below -1, too many, or more than 2^63 - 1 bytes;
// - a variable with a negative LoD level, or with more than 64 levels;
// - an op_role, op_namescope or op_role_var whose type isn't int, string or strings.
//
// Terminates and doesn't throw, whatever the program.
std::vector<std::string> VerifyProgram(const OpRegistry& registry, const Program& program,
                                       const VerifyOptions& options = {});

// Throws Error (kInvalidArgument) with all messages if there are any.
void CheckProgram(const OpRegistry& registry, const Program& program,
                  const VerifyOptions& options = {});

}  // namespace skiff
