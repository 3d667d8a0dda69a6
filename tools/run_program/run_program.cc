// The counterpart of running a program in PaddlePaddle with NumPy arrays: tests/oracle runs the
// same program, parameters and feeds in both and compares what this tool writes.
#include "tools/run_program/run_program.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/command_line/argument_text.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/json.h"
#include "framework/io/lod_entries.h"
#include "framework/io/npz.h"
#include "framework/io/parameters.h"
#include "framework/io/safetensors.h"
#include "framework/io/text_lines.h"
#include "framework/ir/codec.h"
#include "framework/training/half_model.h"
#include "operators/common/half.h"
#include "operators/tensor/kernels/tensor_text.h"
#include "tools/benchmark/process_memory.h"
#include "tools/benchmark/run_times.h"

namespace skiff {
namespace {

TensorMap ReadArrays(const std::string& path, const ArrayNames& names) {
  if (!IsSafetensorsPath(path)) return ReadNpz(path, {.names = names});
  ArrayNames entries;
  if (names) entries = EntriesOf(path, *names, SafetensorsFile(path).names());
  TensorMap arrays = ReadSafetensors(path, entries);
  TakeLoDEntries(path, &arrays);
  return arrays;
}

void WriteArrays(const std::string& path, const TensorMap& arrays) {
  if (IsSafetensorsPath(path)) return WriteSafetensors(path, WithLoDEntries(arrays));
  WriteNpz(path, arrays);
}

FeedList ReadFeeds(const std::string& path, const ArrayNames& names) {
  if (path.empty()) return {};
  const TensorMap arrays = ReadArrays(path, names);
  return {arrays.begin(), arrays.end()};
}

void SetParameters(const std::string& path, const ArrayNames& names, const Program& program,
                   Scope* scope) {
  if (path.empty()) return;
  const std::vector<std::string> persistables = PersistableNames(program);
  for (const auto& [name, tensor] : ReadArrays(path, names)) {
    SKIFF_ENFORCE(std::ranges::binary_search(persistables, name), kNotFound, path, ": \"", name,
                  "\" isn't a persistable variable of the program");
    scope->Assign(name, tensor);
  }
}

// Appends the only element of each one-element fetch to its series. The series of a loss, say,
// shows at which step two frameworks begin to differ; the last value alone wouldn't.
void AppendToSeries(const FetchList& names, const BoundProgram& bound,
                    std::map<std::string, std::vector<double>>* series) {
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor& value = bound.fetch(i);
    if (value.element_count() != 1) continue;
    VisitDType<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t, bool, uint8_t>(
        value.dtype(), names[i], [&]<typename T>(T) {
          const auto number = static_cast<WideType<T>>(*value.data<T>());
          (*series)[names[i]].push_back(static_cast<double>(number));
        });
  }
}

TensorMap ResultsOf(const FetchList& names, const BoundProgram& bound,
                    const std::map<std::string, std::vector<double>>& series) {
  TensorMap results;
  for (size_t i = 0; i < names.size(); ++i) results[names[i]] = bound.fetch(i);
  for (const auto& [name, values] : series) {
    results[name + ".steps"] =
        Tensor::FromValues<double>({static_cast<int64_t>(values.size())}, values);
  }
  return results;
}

// As the op `print` writes it.
std::string TextOfLoD(const LoD& lod) {
  std::string levels;
  for (const std::vector<uint64_t>& offsets : lod) levels += StrCat("{", Join(offsets, ", "), "}");
  return StrCat("{", levels, "}");
}

// Sets the option that has the name of the key.
void SetOption(const std::string& key, const nlohmann::json& value, RunProgramOptions* options) {
  const std::map<std::string, std::string*> paths = {
      {"program", &options->program},         {"startup", &options->startup},
      {"params", &options->params},           {"feed", &options->feed},
      {"save_params", &options->save_params}, {"out", &options->out}};
  std::string name = key;
  std::ranges::replace(name, '-', '_');
  const auto path = paths.find(name);
  if (path != paths.end()) {
    *path->second = value.get<std::string>();
  } else if (name == "fetch") {
    options->fetch = SplitNames(value.get<std::string>());
  } else if (name == "params_names") {
    options->params_names = SplitNames(value.get<std::string>());
  } else if (name == "feed_names") {
    options->feed_names = SplitNames(value.get<std::string>());
  } else if (name == "steps") {
    options->steps = value.get<int64_t>();
  } else if (name == "precision") {
    options->precision = DTypeFromName(value.get<std::string>());
  } else {
    Throw(ErrorCode::kInvalidArgument, "a job has no \"", key,
          "\"; expected program, startup, params, params_names, feed, feed_names, fetch, steps, "
          "precision, save_params or out");
  }
}

RunProgramOptions JobOptions(std::string_view line, const RunProgramOptions& defaults) {
  RunProgramOptions options = defaults;
  try {
    const nlohmann::json job =
        ParseJson(line, "the line isn't a valid job", ErrorCode::kInvalidArgument);
    SKIFF_ENFORCE(job.is_object(), kInvalidArgument, "a job is a JSON object, found ",
                  QuotedJson(job));
    for (const auto& [key, value] : job.items()) SetOption(key, value, &options);
  } catch (const nlohmann::json::exception& error) {
    Throw(ErrorCode::kInvalidArgument, "the line isn't a valid job: ", error.what());
  }
  return options;
}

}  // namespace

RunProgramResult RunProgramFile(const RunProgramOptions& options) {
  SKIFF_ENFORCE(!options.program.empty(), kInvalidArgument, "no program file given");
  SKIFF_ENFORCE(options.steps > 0, kInvalidArgument, "steps = ", options.steps,
                ": expected at least 1");
  // Parameters come after the startup program, so that an archive may set only some of them.
  std::unique_ptr<Program> program = ParseProgram(ReadFile(options.program));
  Executor executor(Place::Cpu());
  if (!options.startup.empty()) executor.Run(*ParseProgram(ReadFile(options.startup)));
  SetParameters(options.params, options.params_names, *program, &executor.scope());
  if (options.precision != DType::kFloat32) {
    program = training::MakeHalfModel(*program, {.dtype = options.precision}, options.fetch);
    training::CastToDeclared(*program, &executor);
  }
  CompiledProgram compiled = executor.Compile(*program, {.passes = options.passes});
  BoundProgram bound = compiled.Bind(ReadFeeds(options.feed, options.feed_names), options.fetch);
  RunProgramResult result;
  std::map<std::string, std::vector<double>> series;
  for (int64_t i = 0; i < options.steps; ++i) {
    result.step_ms.push_back(SecondsOf([&] { bound.Step(); }) * 1e3);
    AppendToSeries(options.fetch, bound, &series);
  }
  for (size_t i = 0; i < options.fetch.size(); ++i) {
    result.fetches.emplace_back(options.fetch[i], bound.fetch(i));
  }
  if (!options.out.empty()) WriteArrays(options.out, ResultsOf(options.fetch, bound, series));
  if (options.save_params.empty()) return result;
  TensorMap persistables;
  for (const std::string& name : PersistableNames(*program)) {
    // Without a startup program, some may have no value.
    const Tensor* tensor = executor.scope().Find(name);
    if (tensor != nullptr) persistables[name] = *tensor;
  }
  WriteArrays(options.save_params, persistables);
  return result;
}

std::string DescribeRun(const RunProgramResult& result) {
  constexpr size_t kUntimedSteps = 2;  // the first steps touch their memory for the first time
  constexpr int64_t kShownValues = 8;
  const size_t steps = result.step_ms.size();
  std::string text = StrCat(steps, steps == 1 ? " step" : " steps");
  if (steps >= 5) {
    const Percentiles times =
        PercentilesOf({result.step_ms.begin() + kUntimedSteps, result.step_ms.end()});
    text +=
        StrCat(": ", FormatFixed(times.median, 2), " ms a step (median of ", steps - kUntimedSteps,
               "), peak RSS ", FormatFixed(PeakRssMegabytes(), 0), " MB");
  }
  text += "\n";
  for (const auto& [name, value] : result.fetches) {
    text += StrCat(name, " ", value.dtype(), " ", value.shape());
    if (!value.lod().empty()) text += StrCat(" lod ", TextOfLoD(value.lod()));
    text += StrCat(" = ", ElementsAsText(value, kShownValues));
    if (value.element_count() > kShownValues) text += " …";
    text += "\n";
  }
  return text;
}

int64_t RunProgramJobs(const std::string& path, const RunProgramOptions& defaults) {
  const std::string file = ReadTextFile(path);
  int64_t ran = 0;
  int64_t failed = 0;
  int64_t number = 0;
  for (const std::string_view line : LinesOf(file)) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    // One bad job must not hide the results of the others.
    try {
      RunProgramFile(JobOptions(line, defaults));
      ++ran;
    } catch (const std::exception& error) {
      ++failed;
      std::printf("job %lld: %s\n", static_cast<long long>(number), error.what());
    }
  }
  std::printf("%lld ran, %lld failed\n", static_cast<long long>(ran),
              static_cast<long long>(failed));
  return failed;
}

}  // namespace skiff
