#include "tests/fuzz/mutant_check.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/executor/guarded_memory.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "tests/harness/array_tensor.h"

namespace skiff::fuzz {
namespace {

constexpr int64_t kMostIterations = 50;
constexpr int kRuns = 2;

// Returns a copy that ends at a guard.
Tensor BetweenGuards(const Tensor& tensor) {
  Tensor copy(tensor.shape(), tensor.dtype(),
              GuardedBlock(tensor.byte_count(),
                           tensor.layout().is_plain() ? SizeOf(tensor.dtype()) : kBufferAlignment),
              0, tensor.layout());
  CopyTensor(tensor, &copy);
  copy.ShareLoD(tensor.shared_lod());
  return copy;
}

struct Outcome {
  std::optional<Error> error;
  bool is_bound = false;  // the error came later, if there is one
  std::vector<Tensor> fetches;
  harness::NamedTensors after;  // in the scope
};

Outcome RunProgram(const Mutant& mutant, const Program& program, const CompileOptions& options) {
  Outcome outcome;
  Executor executor(Place::Cpu());
  for (const auto& [name, tensor] : mutant.seed->variables) {
    executor.scope().Set(name, BetweenGuards(tensor));
  }
  FeedList feeds;
  for (const auto& [name, tensor] : mutant.feeds) feeds.emplace_back(name, BetweenGuards(tensor));
  try {
    CompiledProgram compiled = executor.Compile(program, options);
    BoundProgram bound = compiled.Bind(feeds, mutant.fetches);
    outcome.is_bound = true;
    for (int run = 0; run < kRuns; ++run) {
      // The first run may have made variables of the scope that others have now.
      if (!bound.is_current()) bound = compiled.Bind(feeds, mutant.fetches);
      bound.Step();
      for (size_t i = 0; i < mutant.fetches.size(); ++i) {
        const Tensor& fetch = bound.fetch(i);
        // A copy without the undefined values of unused rows.
        const bool is_rows = fetch.is_selected_rows();
        outcome.fetches.push_back(fetch.array() != nullptr ? Tensor()
                                  : is_rows                ? harness::ToPlain(fetch)
                                                           : CopyToCpu(fetch));
      }
    }
  } catch (const Error& error) {
    outcome.error = error;
  }
  for (const std::string& name : executor.scope().Names()) {
    const Tensor& tensor = executor.scope().Get(name);
    if (tensor.array() == nullptr) outcome.after.emplace(name, CopyToCpu(tensor));
  }
  return outcome;
}

std::string TensorDifference(const Tensor& guarded, const Tensor& reused) {
  if (guarded.shape() != reused.shape()) {
    return StrCat("shape ", guarded.shape(), " and ", reused.shape());
  }
  if (guarded.lod() != reused.lod()) return "LoDs";
  if (harness::SameBits(guarded, reused)) return {};
  return StrCat("values: ",
                harness::FirstDifference(harness::ToArray(guarded), harness::ToArray(reused), 0));
}

// Memory runs out sooner between guards, and a plan for the very rows can do what none for a
// capacity can.
bool MayDiffer(const Error& error) {
  return error.code() == ErrorCode::kResourceExhausted ||
         std::string_view(error.what()).find("exact rows") != std::string_view::npos;
}

std::string Difference(const Mutant& mutant, const Outcome& guarded, const Outcome& reused) {
  if (guarded.error.has_value() != reused.error.has_value()) {
    const Error& error = guarded.error ? *guarded.error : *reused.error;
    if (MayDiffer(error)) return {};
    return StrCat("throws ", guarded.error ? "between guards" : "with reuse",
                  " only: ", error.what());
  }
  for (size_t i = 0; !guarded.error && i < guarded.fetches.size(); ++i) {
    const std::string difference = TensorDifference(guarded.fetches[i], reused.fetches[i]);
    if (difference.empty()) continue;
    const size_t count = mutant.fetches.size();
    return StrCat("run ", i / count, ", fetch ", mutant.fetches[i % count], ": ", difference);
  }
  for (const auto& [name, tensor] : guarded.after) {
    const auto other = reused.after.find(name);
    if (other == reused.after.end()) return StrCat("no ", name, " in the scope with reuse");
    const std::string difference = TensorDifference(tensor, other->second);
    if (!difference.empty()) return StrCat("in the scope, ", name, ": ", difference);
  }
  return {};
}

// Returns the program as a file has it. Throws an Error if the format can't hold it.
std::unique_ptr<Program> ThroughFile(const Program& program, std::string* problem) {
  // Dims below -1 become -1, and a block is no forward block of its own; what is read stays so.
  std::unique_ptr<Program> read = ParseProgram(SerializeProgram(program));
  const std::string bytes = SerializeProgram(*read);
  if (SerializeProgram(*ParseProgram(bytes)) != bytes) {
    *problem = "the file reads back as another program";
  }
  const std::string text = PrintProgram(*read);
  if (PrintProgram(*ParseProgramText(text)) != text) {
    *problem = "the text reads back as another program";
  }
  read->seed = program.seed;
  return read;
}

void Check(const Mutant& mutant, MutantReport* report) {
  std::unique_ptr<Program> program;
  try {
    program = ThroughFile(*mutant.program, &report->problem);
  } catch (const Error&) {
    report->end = MutantReport::End::kCodec;
    program = mutant.program->Clone();
  }
  // A run goes by the shape rules, whatever the file declares.
  std::vector<std::string> warnings;
  VerifyOptions verify{.infer_feeds = false, .warnings = &warnings};
  for (const auto& [name, tensor] : mutant.feeds) verify.feeds.push_back(name);
  const std::vector<std::string> found = VerifyProgram(DefaultOpRegistry(), *program, verify);
  if (!found.empty()) report->end = MutantReport::End::kVerify;
  CompileOptions guards{
      .memory = {.guards = true}, .exact_rows = true, .max_loop_iterations = kMostIterations};
  const Outcome guarded = RunProgram(mutant, *program, guards);
  const Outcome reused =
      RunProgram(mutant, *program,
                 {.memory = {.poison_dead_memory = true}, .max_loop_iterations = kMostIterations});
  if (report->problem.empty()) report->problem = Difference(mutant, guarded, reused);
  if (!guarded.error && !found.empty()) report->only_verify = found.front();
  if (!guarded.error || !found.empty()) return;
  report->end = guarded.is_bound ? MutantReport::End::kRun : MutantReport::End::kCompile;
  const bool is_memory = guarded.error->code() == ErrorCode::kResourceExhausted;
  if (guarded.is_bound || mutant.feeds_are_changed || is_memory) return;
  report->unverified = guarded.error->what();
}

}  // namespace

MutantReport CheckMutant(const Mutant& mutant) {
  MutantReport report;
  try {
    Check(mutant, &report);
  } catch (const std::exception& error) {
    report.problem = StrCat("threw: ", error.what());
  }
  return report;
}

std::string MutantText(const Mutant& mutant) {
  std::string text = StrCat("# mutant ", mutant.number, " of ", mutant.seed->name, "\n");
  for (const std::string& change : mutant.changes) text += StrCat("# changed: ", change, "\n");
  for (const auto& [name, tensor] : mutant.feeds) {
    text += StrCat("# feed ", name, ": ", tensor.dtype(), " ", tensor.shape());
    for (const std::vector<uint64_t>& level : tensor.lod())
      text += StrCat(" {", Join(level, ", "), "}");
    text += "\n";
  }
  return text +
         StrCat("# fetches ", Join(mutant.fetches, ", "), "\n", PrintProgram(*mutant.program));
}

}  // namespace skiff::fuzz
