// What an op gives each of several ranks, which are threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/prepared_op.h"
#include "tests/harness/thread_ranks.h"

namespace skiff::harness {

struct RankRun {
  // By rank.
  std::vector<NamedTensors> outputs;
  std::vector<std::string> errors;  // "" without an Error
  std::vector<int64_t> bytes_sent;
};

// Runs the op once on each rank, with the inputs of that rank. Drawn delays, from `seed`, are
// between the messages. `settings` are those of each rank, and have no communicator. The op must be
// legal; Errors of the run are in the result, and so are writes that the op mustn't do.
inline RankRun RunOpOnRanks(const Op& op, const std::vector<NamedTensors>& inputs,
                            uint64_t seed = 1, const OpSettings& settings = {}) {
  RankRun run;
  run.outputs.resize(inputs.size());
  run.bytes_sent.resize(inputs.size());
  run.errors = RunOnThreadRanks(static_cast<int32_t>(inputs.size()),
                                {.time_limit = 60, .seed = seed}, [&](Communicator* communicator) {
                                  const auto rank = static_cast<size_t>(communicator->world().rank);
                                  OpSettings own = settings;
                                  own.communicator = communicator;
                                  PreparedOp prepared(DefaultOpRegistry(), op, inputs[rank], own);
                                  // Scratch memory and outputs hold NaN before the run.
                                  prepared.Load(inputs[rank], 0xFF);
                                  prepared.Run();
                                  for (const std::string& fault : prepared.Faults()) {
                                    Throw(ErrorCode::kFailedPrecondition, fault);
                                  }
                                  run.outputs[rank] = prepared.Outputs();
                                  run.bytes_sent[rank] = communicator->bytes_sent();
                                });
  return run;
}

}  // namespace skiff::harness
