#include "framework/training/training_checks.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "framework/base/error.h"
#include "framework/comm/gather.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameters.h"
#include "framework/ir/master_name.h"
#include "framework/ir/used_names.h"

namespace skiff::training {
namespace {

// Throws an Error unless the program has the variable and it may be one number.
void CheckNumber(const Program& program, std::string_view whose, std::string_view what,
                 const std::string& name) {
  const Var* var = program.root()->FindVar(name);
  SKIFF_ENFORCE(var != nullptr, kNotFound, what, " \"", name, "\": ", whose,
                " has no such variable");
  const bool is_number = var->dtype == DType::kFloat32 || var->dtype == DType::kFloat64 ||
                         var->dtype == DType::kInt32 || var->dtype == DType::kInt64;
  const bool is_one = std::ranges::all_of(var->dims, [](int64_t dim) { return dim <= 1; });
  SKIFF_ENFORCE(var->kind == VarKind::kLoDTensor && is_number && is_one, kInvalidArgument, what,
                " \"", name, "\" of ", whose, " is of ", DTypeName(var->dtype), " ",
                Shape(std::span<const int64_t>(var->dims)),
                ", expected one number (float32, float64, int32 or int64)");
}

void CheckMetric(const Program& program, std::string_view whose, const Metric& metric) {
  CheckNumber(program, whose, StrCat("the metric \"", metric.name, "\""), metric.variable);
  if (metric.weight.empty()) return;
  CheckNumber(program, whose, StrCat("the weight of the metric \"", metric.name, "\""),
              metric.weight);
}

// Throws an Error (kFailedPrecondition) for a variable that the program keeps, but neither the
// startup program nor a training step makes.
void CheckInitialized(const Program& program, std::string_view whose, const Program& main,
                      const Scope& scope) {
  const std::set<std::string> written = NamesWritten(main);
  for (const std::string& name : PersistableNames(program)) {
    SKIFF_ENFORCE(scope.Find(name) != nullptr || written.contains(name), kFailedPrecondition,
                  "variable \"", name, "\" of ", whose,
                  ": neither the startup program nor a training step gives it a value");
  }
}

// Throws an Error (kInvalidArgument) if the program declares a parameter in another dtype than the
// main program does. `may_take_masters`: it may be float32 where that has master weights.
void CheckParameters(const Program& program, const char* name, bool may_take_masters,
                     const Program& main) {
  for (const auto& var : program.root()->vars()) {
    const Var* trained = main.root()->FindVar(var->name);
    if (trained == nullptr || trained->dtype == var->dtype) continue;
    if (!var->is_parameter && !trained->is_parameter) continue;
    const bool takes_master = may_take_masters && var->dtype == DType::kFloat32 &&
                              IsHalf(trained->dtype) &&
                              main.root()->FindVar(MasterName(var->name)) != nullptr;
    SKIFF_ENFORCE(takes_master, kInvalidArgument, "parameter \"", var->name, "\" of the ", name,
                  " program is ", var->dtype, ", expected ", trained->dtype,
                  " as in the main program: clone the ", name, " program after minimize");
  }
}

void CheckShared(int32_t ranks, const Reader& train, const Reader& validation) {
  SKIFF_ENFORCE(train.ranks() == ranks, kInvalidArgument,
                "the reader of the training's batches is ", "shared by ", train.ranks(),
                " ranks, expected ", ranks, ": see ShardedReader");
  SKIFF_ENFORCE(validation.ranks() == ranks || validation.ranks() == 1, kInvalidArgument,
                "the reader of the validation's batches is shared by ", validation.ranks(),
                " ranks, expected ", ranks, " or 1");
}

}  // namespace

TrainerOptions CheckedOptions(TrainerOptions options, const Reader* train,
                              const Reader* validation) {
  SKIFF_ENFORCE(options.epochs >= 1, kInvalidArgument, "epochs = ", options.epochs,
                ": expected at least 1");
  SKIFF_ENFORCE(options.save_every_steps >= 0, kInvalidArgument,
                "save_every = ", options.save_every_steps, ": expected no negative number");
  SKIFF_ENFORCE(options.early_stop_epochs >= 0, kInvalidArgument,
                "early_stop = ", options.early_stop_epochs, ": expected no negative number");
  SKIFF_ENFORCE(train != nullptr, kInvalidArgument, "there is no reader of the training's batches");
  SKIFF_ENFORCE(validation != nullptr, kInvalidArgument,
                "there is no reader of the validation's batches");
  SKIFF_ENFORCE(std::ranges::count(options.callbacks, nullptr) == 0, kInvalidArgument,
                "a callback is nullptr");
  for (const Reader* reader : {train, validation}) {
    SKIFF_ENFORCE(options.compile.tuner == nullptr || !reader->batch_shapes().empty(),
                  kInvalidArgument,
                  "kernels can't be tuned: a reader doesn't know the shapes of its batches before "
                  "the first step");
  }
  CheckShared(RankCount(options.compile.data_parallel.communicator.get()), *train, *validation);
  return options;
}

void CheckPrograms(const TrainingProgram& program, const std::vector<Metric>& metrics,
                   const Program& saved_model, const Scope& scope) {
  const Program& main = *program.main;
  const Program& test = *program.test;
  CheckParameters(test, "test", /*may_take_masters=*/false, main);
  if (program.model != nullptr) {
    CheckParameters(*program.model, "model", /*may_take_masters=*/true, main);
  }
  for (const Metric& metric : metrics) {
    for (const std::string& variable : metric.streamed) {
      SKIFF_ENFORCE(test.root()->FindVar(variable) != nullptr, kNotFound, "the metric \"",
                    metric.name, "\" \"", variable, "\": the test program has no such variable");
    }
    if (metric.streaming != nullptr) continue;
    CheckMetric(main, "the main program", metric);
    CheckMetric(test, "the test program", metric);
  }
  CheckNumber(main, "the main program", "the learning rate", program.learning_rate);
  CheckInitialized(test, "the test program", main, scope);
  try {
    const auto model =
        MakeInferenceProgram(saved_model, program.model_inputs, program.model_outputs, {});
    CheckInitialized(*model, "its program", main, scope);
  } catch (const Error& error) {
    throw error.WithContext("the model that the training would save");
  }
}

}  // namespace skiff::training
