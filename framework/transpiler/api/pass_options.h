// Which passes run, with which kernels, and what the passes report.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace skiff {

class Program;
namespace ir {
struct Plan;
}  // namespace ir
namespace internal {
class PlanPass;
class ProgramPass;
}  // namespace internal

// From types of ops to names of kernels.
using KernelNames = std::map<std::string, std::string>;

// What a pass did. The pass's header says what `changes` counts; 0: nothing.
struct PassReport {
  std::string pass = {};
  int64_t changes = 0;
  std::string summary = {};  // one line for people
};

struct PipelineOptions {
  std::vector<std::string> skip = {};  // names of passes to leave out, unless a plan requires them
  // Names of passes that run only on request. They and the passes that they need run where
  // default_pipelines.txt has them. `skip` wins.
  std::vector<std::string> also = {};
  // Passes of the caller, which run after all other passes.
  std::vector<std::shared_ptr<const internal::ProgramPass>> program_passes = {};
  std::vector<std::shared_ptr<const internal::PlanPass>> plan_passes = {};
  // Of each kind, run only the first so many passes, and the passes that a plan requires; -1: all.
  int32_t pass_limit = -1;
  // Called after each pass that ran, with the resulting program or plan; see dump_passes.h.
  std::function<void(const PassReport&, const Program&)> program_observer = {};
  std::function<void(const PassReport&, const ir::Plan&)> plan_observer = {};
};

// Returns the `skip` and `also` that a flag asks for: "+fuse_optimizer,-layout" runs the first as
// well and leaves out the second; "none" leaves out every pass, and "" none. Throws an Error
// (kInvalidArgument) for a name without a sign; unknown names are found when passes run.
PipelineOptions ParsePasses(std::string_view text);

}  // namespace skiff
