#include "framework/training/training_facts.h"

#include <string>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/base/parallel.h"
#include "framework/base/str_cat.h"
#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "framework/ir/api/text.h"
#include "framework/training/training_settings.h"

namespace skiff::training {
namespace {

void AddOptions(const TrainerOptions& options, RankFacts* facts) {
  const DataParallelOptions& ranks = options.compile.data_parallel;
  facts->insert(facts->end(), {{"epochs", StrCat(options.epochs)},
                               {"save_every", StrCat(options.save_every_steps)},
                               {"early_stop", StrCat(options.early_stop_epochs)},
                               {"stop_after", StrCat(options.stop_after_steps)},
                               {"reduction", SumOrderName(ranks.order)},
                               {"bucket_bytes", StrCat(ranks.bucket_bytes)},
                               {"overlap", OverlapName(ranks.overlap)},
                               {"shard_optimizer", StrCat(ranks.shard_optimizer)},
                               {"sync_batch_norm", StrCat(ranks.sync_batch_norm)}});
  const CompileOptions& compile = options.compile;
  facts->insert(facts->end(),
                {{"the tuner of kernels", compile.tuner == nullptr ? "none" : "there is one"},
                 {"the math", MathModeName(compile.math)},
                 {"recompute", std::string(RecomputeName(compile.memory.recompute))},
                 {"budget_bytes", StrCat(compile.memory.budget_bytes)},
                 {"the passes to run also", Join(compile.passes.also, ", ")},
                 {"the passes to leave out", Join(compile.passes.skip, ", ")}});
  for (size_t i = 0; i < options.callbacks.size(); ++i) {
    facts->emplace_back(StrCat("callback ", i), options.callbacks[i]->Name());
  }
}

std::string HashOfVariables(const Program& program, const Scope& scope) {
  std::vector<std::string> names = PersistableNames(program);
  // Others get their first values in the first step.
  std::erase_if(names, [&](const std::string& name) { return scope.Find(name) == nullptr; });
  return WeightsHash(scope, names);
}

}  // namespace

RankFacts FactsOf(const TrainingProgram& program, const Reader& validation,
                  const TrainerOptions& options, const TrainingProgress& progress,
                  const Scope& scope) {
  RankFacts facts;
  for (const auto& setting : FixedSettings(options)) facts.push_back(setting);
  AddOptions(options, &facts);
  facts.insert(facts.end(),
               {{"the number of ranks that share the validation", StrCat(validation.ranks())},
                {"the number of threads", StrCat(omp_get_max_threads())},
                {"the instruction set", std::string(InstructionSetName(UsedInstructionSet()))},
                {"the place", options.place.is_cpu() ? "the CPU" : "a device"},
                {"the main program", PrintProgram(*program.main)},
                {"the test program", PrintProgram(*program.test)},
                {"the number of finished steps", StrCat(progress.step)},
                {"the number of finished epochs", StrCat(progress.epoch)},
                {"the number of finished batches of the epoch", StrCat(progress.batch)},
                {"the hash of the weights and states", HashOfVariables(*program.main, scope)}});
  return facts;
}

}  // namespace skiff::training
