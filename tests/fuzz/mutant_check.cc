#include "tests/fuzz/mutant_check.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/executor/lowering/block_lowering.h"
#include "framework/executor/lowering/lowering.h"
#include "framework/executor/lowering/plan_check.h"
#include "framework/executor/storage/guarded_memory.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "framework/op/declared_types.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/tensor_array.h"
#include "tests/fuzz/small_memory.h"
#include "tests/harness/array_tensor.h"

namespace skiff::fuzz {
namespace {

constexpr int64_t kMostIterations = 50;
constexpr int kRuns = 2;

// What depends on the feeds and fetches of a run, or on what the scope holds.
constexpr std::string_view kUnverified[] = {"feed \"", "fetch \"", "the scope holds ",
                                            "which the scope holds as", "is not initialized"};

// Calls use(op, description) for each op.
void ForEachOp(const Program& program, const auto& use) {
  for (size_t b = 0; b < program.block_count(); ++b) {
    const auto block = static_cast<int32_t>(b);
    const auto& ops = program.block(block)->ops();
    for (size_t i = 0; i < ops.size(); ++i) use(*ops[i], DescribeOp(*ops[i], block, i));
  }
}

// Returns the names of variables whose shape may follow from data, or from the LoDs of ragged
// feeds, neither of which VerifyProgram is given. (Variables of one name count as one.)
std::set<std::string> NamesOfUnknownShape(const Mutant& mutant, const Program& program,
                                          const OpRegistry& registry) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : mutant.feeds) {
    if (!tensor.lod().empty()) names.insert(name);
  }
  size_t before = 0;
  do {
    before = names.size();
    ForEachOp(program, [&](const Op& op, const std::string&) {
      const OpDef* def = registry.Find(op.type);
      const auto is_unknown = [&](const std::string& name) { return names.contains(name); };
      // Which element of an array is read, with which rows, is data, too.
      const bool depends_on_data =
          def != nullptr && (def->data_dependent_shape || (def->sets_rows && def->sets_rows(op)));
      const bool makes_unknown =
          depends_on_data || std::ranges::any_of(op.InputNames(), is_unknown);
      if (!makes_unknown) return;
      for (const std::string& name : op.OutputNames()) names.insert(name);
    });
  } while (names.size() > before);
  return names;
}

// Returns whether VerifyProgram needn't have found the error.
bool IsKnownToBeUnverified(const Mutant& mutant, const Program& program, const OpRegistry& registry,
                           std::string_view error) {
  const auto has = [&](std::string_view text) {
    return error.find(text) != std::string_view::npos;
  };
  if (std::ranges::any_of(kUnverified, has)) return true;
  const std::set<std::string> names = NamesOfUnknownShape(mutant, program, registry);
  const auto is_unknown = [&](const std::string& name) { return names.contains(name); };
  bool is_known = false;
  ForEachOp(program, [&](const Op& op, const std::string& description) {
    if (!has(description)) return;
    is_known = is_known || std::ranges::any_of(op.InputNames(), is_unknown) ||
               std::ranges::any_of(op.OutputNames(), is_unknown);
  });
  return is_known;
}

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

// By what they are: "fetch loss", "element 2 of a", "in the scope, w".
using NamedValues = std::vector<std::pair<std::string, Tensor>>;

struct RunOutcome {
  std::optional<Error> error;
  NamedValues results;  // fetches and elements of arrays
  NamedValues scope;    // after the run
};

struct Outcome {
  bool is_bound = false;  // what refuses the program, if anything, is a run
  NamedValues scope;      // before the first run
  std::vector<RunOutcome> runs;

  const std::optional<Error>& error() const { return runs.front().error; }
};

NamedValues ValuesOf(const Scope& scope) {
  NamedValues values;
  for (const std::string& name : scope.Names()) {
    values.emplace_back("in the scope, " + name, CopyToCpu(scope.Get(name)));
  }
  return values;
}

// Arrays are no fetches. They lie in the scope, where Names doesn't tell of them.
void AddArrays(const Program& program, Scope* scope, NamedValues* values) {
  std::set<std::string> names;
  for (size_t block = 0; block < program.block_count(); ++block) {
    for (const auto& var : program.block(static_cast<int32_t>(block))->vars())
      names.insert(var->name);
  }
  for (const std::string& name : names) {
    const Tensor* held = scope->FindMutable(name);
    const TensorArray* array = held == nullptr ? nullptr : held->array();
    for (int64_t i = 0; array != nullptr && i < array->size(); ++i) {
      if (array->Find(i) == nullptr) continue;
      values->emplace_back(StrCat("element ", i, " of ", name), CopyToCpu(array->At(i)));
    }
  }
}

// Compiles the program once and runs it kRuns times, whether runs throw or not: an Error must leave
// nothing that a later run trips over.
Outcome RunProgram(const Mutant& mutant, const Program& program, const OpRegistry& registry,
                   const CompileOptions& options) {
  Outcome outcome;
  Executor executor(Place::Cpu(), nullptr, &registry);
  Scope& scope = executor.scope();
  for (const auto& [name, tensor] : mutant.seed->variables) scope.Set(name, BetweenGuards(tensor));
  FeedList feeds;
  for (const auto& [name, tensor] : mutant.feeds) feeds.emplace_back(name, BetweenGuards(tensor));
  outcome.scope = ValuesOf(scope);
  std::optional<CompiledProgram> compiled;
  std::optional<BoundProgram> bound;
  for (int i = 0; i < kRuns; ++i) {
    RunOutcome& run = outcome.runs.emplace_back();
    try {
      if (!compiled) compiled = executor.Compile(program, options);
      // The first run may have made variables of the scope that others have now.
      if (!bound || !bound->is_current()) bound = compiled->Bind(feeds, mutant.fetches);
      outcome.is_bound = true;
      bound->Step();
      for (size_t fetch = 0; fetch < mutant.fetches.size(); ++fetch) {
        const Tensor& found = bound->fetch(fetch);
        // A copy without the undefined values of unused rows.
        run.results.emplace_back("fetch " + mutant.fetches[fetch], found.is_selected_rows()
                                                                       ? harness::ToPlain(found)
                                                                       : CopyToCpu(found));
      }
      AddArrays(compiled->program(), &scope, &run.results);
    } catch (const Error& error) {
      run.error = error;
    }
    run.scope = ValuesOf(scope);
  }
  return outcome;
}

std::string TensorDifference(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return StrCat("shape ", a.shape(), " and ", b.shape());
  if (a.lod() != b.lod()) return "LoDs";
  if (harness::SameBits(a, b)) return {};
  return StrCat("values: ", harness::FirstDifference(harness::ToArray(a), harness::ToArray(b), 0));
}

std::string Difference(const NamedValues& a, const NamedValues& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].first != b[i].first) return StrCat(a[i].first, " and ", b[i].first);
    const std::string difference = TensorDifference(a[i].second, b[i].second);
    if (!difference.empty()) return StrCat(a[i].first, ": ", difference);
  }
  if (a.size() == b.size()) return {};
  return StrCat((a.size() > b.size() ? a : b)[std::min(a.size(), b.size())].first, " is missing");
}

bool IsOutOfMemory(const RunOutcome& run) {
  return run.error && run.error->code() == ErrorCode::kResourceExhausted;
}

// A run that throws leaves the scope as it was, so that the next one throws, too.
std::string ProblemAfterErrors(const Outcome& outcome) {
  const NamedValues* before = &outcome.scope;
  for (size_t i = 0; i < outcome.runs.size(); ++i) {
    const RunOutcome& run = outcome.runs[i];
    const bool refuses = run.error && !IsOutOfMemory(run);
    const std::string difference = refuses ? Difference(*before, run.scope) : std::string();
    if (!difference.empty()) {
      return StrCat(difference, ", changed by a run that throws: ", run.error->what());
    }
    if (refuses && i + 1 < outcome.runs.size() && !outcome.runs[i + 1].error) {
      return StrCat("throws in run ", i, " only: ", run.error->what());
    }
    before = &run.scope;
  }
  return {};
}

// Returns whether the body of a loop has rows that vary beside rows that a plan for the very rows
// takes as fixed; in one for a capacity, these vary with them.
bool IsOfFixedRows(const RunOutcome& run) {
  if (!run.error || run.error->code() != ErrorCode::kUnimplemented) return false;
  const std::string_view text = run.error->what();
  return text.find("no plan for all counts up to") != std::string_view::npos ||
         text.find("and not by an affine form") != std::string_view::npos;
}

// Returns whether rows that an op of a body sets, and of which the last ones leave the loop, are no
// longer those of the plan: of a plan for the very rows they may be.
bool IsOfRowsThatLeave(const RunOutcome& run) {
  return run.error && run.error->code() == ErrorCode::kUnimplemented &&
         std::string_view(run.error->what()).find(" in others or outside: expected an array") !=
             std::string_view::npos;
}

// Memory runs out sooner between guards, where values share none; with reuse, in a plan for a
// capacity, which has more rows (CapacityText in executor.cc).
bool MayDiffer(const RunOutcome& guarded, const RunOutcome& reused) {
  return IsOutOfMemory(guarded) || IsOfFixedRows(guarded) || IsOfRowsThatLeave(reused) ||
         (IsOutOfMemory(reused) &&
          std::string_view(reused.error->what()).find("exact_rows: about") !=
              std::string_view::npos);
}

std::string Difference(const Outcome& guarded, const Outcome& reused) {
  for (size_t i = 0; i < guarded.runs.size(); ++i) {
    const RunOutcome& a = guarded.runs[i];
    const RunOutcome& b = reused.runs[i];
    if (a.error.has_value() != b.error.has_value()) {
      if (MayDiffer(a, b)) return {};
      return StrCat("run ", i, " throws ", a.error ? "between guards" : "with reuse",
                    " only: ", (a.error ? *a.error : *b.error).what());
    }
    std::string difference = a.error ? std::string() : Difference(a.results, b.results);
    if (difference.empty()) difference = Difference(a.scope, b.scope);
    if (!difference.empty()) return StrCat("run ", i, ", ", difference);
  }
  return {};
}

// Adds why no run has a plan. Returns false if one may have.
bool AddNoPlan(const OpRegistry& registry, const Program& program,
               std::vector<std::string>* found) {
  const std::optional<NoPlan> none = FindNoPlan(registry, program);
  if (!none || !none->is_certain) return false;
  found->push_back(none->why);
  return true;
}

// Returns what `skiff verify` says if the program declares what it is fed.
std::vector<std::string> ProblemsWithFeeds(const Mutant& mutant, const OpRegistry& registry,
                                           const Program& program, VerifyOptions options) {
  std::vector<std::string> warnings;
  options.warnings = &warnings;
  const std::unique_ptr<Program> declared = program.Clone();
  for (const auto& [name, tensor] : mutant.feeds) {
    Var* var = declared->root()->FindLocalVar(name);
    if (var == nullptr) continue;
    var->dims.assign(tensor.shape().dims().begin(), tensor.shape().dims().end());
  }
  std::vector<std::string> found = VerifyProgram(registry, *declared, options);
  if (found.empty()) AddNoPlan(registry, *declared, &found);
  return found;
}

// Makes the plan of the first segment, for the very feeds, if there is one. Throws an Error
// (kResourceExhausted) if memory runs out, and std::bad_alloc.
void Lower(const Mutant& mutant, const OpRegistry& registry, const Program& program) {
  Scope scope;
  for (const auto& [name, tensor] : mutant.seed->variables) scope.Set(name, tensor);
  std::vector<std::pair<std::string, TensorMeta>> feeds;
  for (const auto& [name, tensor] : mutant.feeds) {
    feeds.emplace_back(name, MetaOfHeld(tensor));
    feeds.back().second.persistable = false;
  }
  const std::unique_ptr<Program> typed = program.Clone();
  TakeDeclaredTypes(registry, typed.get());
  try {
    // Which lowering relies on.
    CheckProgram(registry, program, {.structure_only = true});
    LowerSegment({.registry = registry, .scope = scope, .place = Place::Cpu()}, *typed, feeds,
                 mutant.fetches);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kResourceExhausted) throw;
  }
}

// Returns how the program differs once it has been written and read, which it has before; empty: it
// doesn't. Dims below -1 have become -1, and a block is no forward block of its own.
std::string ProblemOfFiles(const Program& read) {
  const std::string bytes = SerializeProgram(read);
  if (SerializeProgram(*ParseProgram(bytes)) != bytes) {
    return "the file reads back as another program";
  }
  const std::string text = PrintProgram(read);
  if (PrintProgram(*ParseProgramText(text)) != text) {
    return "the text reads back as another program";
  }
  return {};
}

void Check(const Mutant& mutant, const OpRegistry& registry, MutantReport* report) {
  // The first refusal counts.
  const auto refuse = [&](MutantReport::End end) {
    if (report->end == MutantReport::End::kComputed) report->end = end;
  };
  const auto fail = [&](const std::string& problem) {
    if (report->problem.empty()) report->problem = problem;
  };
  std::unique_ptr<Program> program;
  try {
    program = ParseProgram(SerializeProgram(*mutant.program));
    program->seed = mutant.program->seed;
  } catch (const Error&) {
    refuse(MutantReport::End::kCodec);
    program = mutant.program->Clone();
  }
  if (report->end != MutantReport::End::kCodec) fail(ProblemOfFiles(*program));
  // A run goes by the shape rules, whatever the file declares.
  std::vector<std::string> warnings;
  VerifyOptions verify{.infer_feeds = false, .warnings = &warnings};
  for (const auto& [name, tensor] : mutant.feeds) verify.feeds.push_back(name);
  std::vector<std::string> found;
  bool has_no_plan = false;
  {
    // Neither verifying nor lowering makes tensors, however large the program says that they are.
    const SmallMemory small;
    found = VerifyProgram(registry, *program, verify);
    has_no_plan = found.empty() && AddNoPlan(registry, *program, &found);
    Lower(mutant, registry, *program);
  }
  if (!found.empty()) refuse(MutantReport::End::kVerify);
  const Outcome guarded = RunProgram(
      mutant, *program, registry,
      {.memory = {.guards = true}, .exact_rows = true, .max_loop_iterations = kMostIterations});
  CompileOptions reuse{.memory = {.poison_dead_memory = true},
                       .max_loop_iterations = kMostIterations};
  Outcome reused = RunProgram(mutant, *program, registry, reuse);
  if (guarded.error() && !reused.error()) {
    // A plan for the very rows knows more of ops that nothing needs, and may refuse them. They must
    // refuse their rows themselves, too.
    reuse.passes.skip = {"dead_code"};
    reused = RunProgram(mutant, *program, registry, reuse);
  }
  fail(Difference(guarded, reused));
  fail(ProblemAfterErrors(guarded));
  fail(ProblemAfterErrors(reused));
  if (!guarded.error()) {
    if (has_no_plan && !mutant.feeds_are_changed)
      fail("computed, though no plan: " + found.front());
    if (!found.empty()) report->only_verify = found.front();
    return;
  }
  refuse(guarded.is_bound ? MutantReport::End::kRun : MutantReport::End::kCompile);
  if (!found.empty() || guarded.is_bound || mutant.feeds_are_changed ||
      IsOutOfMemory(guarded.runs.front()) ||
      !ProblemsWithFeeds(mutant, registry, *program, verify).empty()) {
    return;
  }
  report->unverified = guarded.error()->what();
  // Of shapes that are declared otherwise than an op makes them, VerifyProgram only warns, and it
  // knows nothing of them beyond the block.
  if (warnings.empty() && !IsKnownToBeUnverified(mutant, *program, registry, report->unverified)) {
    fail(StrCat("verified, but refused: ", report->unverified));
  }
}

}  // namespace

MutantReport CheckMutant(const Mutant& mutant, const OpRegistry& registry) {
  MutantReport report;
  try {
    Check(mutant, registry, &report);
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
