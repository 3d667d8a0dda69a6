// Writes training programs, their initial parameters and a batch, so that PaddlePaddle can run them
// beside Skiff (run_in_paddle.py; docs/outside_check.md):
//
//   write_training_programs --out=DIR
//
// DIR/<name>/ then holds main.pb, startup.pb, params.npz (every persistable variable after the
// startup program) and feed.npz; DIR/programs.json lists the programs, and DIR/skiff_jobs.jsonl
// holds what tools/run_program has to run: --steps steps, and one from the start that fetches
// every variable.
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/program_guard.h"
#include "framework/command_line/command_line.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/io/parameters.h"
#include "framework/ir/codec.h"
#include "models/lenet/lenet.h"
#include "models/resnet/resnet.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/op_case.h"

DEFINE_string(out, "", "folder to write to; made if it isn't there");
DEFINE_int64(steps, 20, "training steps that the losses are compared over");
DEFINE_bool(timing, false, "write only ResNet-18 for 64 images of 3x32x32, which is to be timed");

namespace skiff::oracle {
namespace {

struct Classifier {
  std::string name;
  std::vector<DType> dtypes;
  std::vector<int64_t> image_dims;  // the batch is fed, so dim 0 of the program is -1
  int64_t classes;
  std::function<Variable(const Variable& image, int64_t classes)> logits;
  std::function<std::vector<ParameterGradient>(const Variable& loss)> minimize;
};

std::vector<ParameterGradient> MinimizeByMomentum(const Variable& loss, double rate) {
  return optimizer::Momentum(
             {.learning_rate = rate, .momentum = 0.9f, .regularization = L2Decay(1e-4f)})
      .Minimize(loss);
}

std::vector<ParameterGradient> MinimizeByClippedAdam(const Variable& loss) {
  return optimizer::Adam({.learning_rate = 0.001, .clip = ClipByGlobalNorm(1.0f)}).Minimize(loss);
}

std::vector<ParameterGradient> MinimizeBySchedule(const Variable& loss) {
  const Variable cosine =
      learning_rate::Cosine({.start = 0.02f, .steps_per_epoch = 3, .epochs = 10});
  const Variable rate =
      learning_rate::LinearWarmup(cosine, {.warmup_steps = 5, .start = 0.0f, .end = 0.02f});
  return optimizer::Momentum({.learning_rate = rate, .momentum = 0.9f, .use_nesterov = true})
      .Minimize(loss);
}

std::vector<Classifier> Classifiers() {
  const std::vector<DType> both = {DType::kFloat64, DType::kFloat32};
  const auto momentum = [](const Variable& loss) { return MinimizeByMomentum(loss, 0.01); };
  // At larger rates two float32 runs that round differently are apart within a few steps, while
  // float64 runs still agree.
  const auto slow_momentum = [](const Variable& loss) { return MinimizeByMomentum(loss, 0.0003); };
  const auto resnet = [](int32_t depth) {
    return [depth](const Variable& image, int64_t classes) {
      return models::ResNet(image, {.depth = depth, .classes = classes});
    };
  };
  if (FLAGS_timing) {
    return {{"resnet18_momentum", {DType::kFloat32}, {64, 3, 32, 32}, 10, resnet(18), momentum}};
  }
  return {
      {"lenet_momentum", both, {16, 1, 28, 28}, 10, models::LeNet, momentum},
      {"lenet_adam", both, {16, 1, 28, 28}, 10, models::LeNet, MinimizeByClippedAdam},
      // Schedules compute in float32, whatever the parameters are.
      {"lenet_schedule", {DType::kFloat32}, {16, 1, 28, 28}, 10, models::LeNet, MinimizeBySchedule},
      {"resnet20_momentum", both, {8, 3, 32, 32}, 10, resnet(20), slow_momentum}};
}

struct TrainingPrograms {
  std::unique_ptr<Program> main = std::make_unique<Program>();
  std::unique_ptr<Program> startup = std::make_unique<Program>();
  std::string loss;
  std::string accuracy;
  std::vector<std::pair<std::string, std::string>> gradients;  // parameter, gradient
};

TrainingPrograms Build(const Classifier& classifier, DType dtype) {
  TrainingPrograms programs;
  programs.main->seed = 1;
  programs.startup->seed = 1;
  const ProgramGuard guard(programs.main.get(), programs.startup.get());
  std::vector<int64_t> dims = classifier.image_dims;
  dims[0] = -1;
  const Variable image = layers::Data("image", dims, dtype);
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable logits = classifier.logits(image, classifier.classes);
  programs.loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  programs.accuracy = layers::Accuracy(layers::Softmax(logits), label);
  const Variable loss(programs.main->root(), programs.loss);
  for (const ParameterGradient& pair : classifier.minimize(loss)) {
    programs.gradients.emplace_back(pair.parameter->name, pair.gradient->name);
  }
  return programs;
}

TensorMap Batch(const Classifier& classifier, DType dtype) {
  const harness::Array image = harness::Uniform(Shape(classifier.image_dims), 11, -2.0, 2.0);
  const harness::Array label =
      harness::Integers({classifier.image_dims[0], 1}, 12, 0, classifier.classes);
  return {{"image", harness::ToTensor(image, dtype)},
          {"label", harness::ToTensor(label, DType::kInt64)}};
}

TensorMap InitialValues(const TrainingPrograms& programs) {
  Executor executor(Place::Cpu());
  executor.Run(*programs.startup);
  TensorMap values;
  for (const std::string& name : PersistableNames(*programs.main)) {
    const Tensor* value = executor.scope().Find(name);
    SKIFF_ENFORCE(value != nullptr, kNotFound, "the startup program does not set \"", name, "\"");
    values[name] = *value;
  }
  return values;
}

// The name, and the folder it is written to below `out`.
std::string NameOf(const Classifier& classifier, DType dtype) {
  return StrCat(classifier.name, "_", dtype);
}

// What ops write, but for persistables and for what only gradient ops read, in a form of each
// framework's own.
std::vector<std::string> ComparedVariables(const Program& program) {
  std::set<std::string> names;
  for (const auto& op : program.root()->ops()) {
    for (const SlotArguments& slot : op->outputs) {
      if (slot.slot == "XShape" || slot.slot == "ReserveSpace") continue;
      for (const std::string& name : slot.arguments) {
        const Var* var = program.root()->FindLocalVar(name);
        if (var != nullptr && !var->persistable) names.insert(name);
      }
    }
  }
  return {names.begin(), names.end()};
}

nlohmann::json Describe(const TrainingPrograms& programs, const std::string& name, DType dtype) {
  nlohmann::json gradients = nlohmann::json::object();
  for (const auto& [parameter, gradient] : programs.gradients) gradients[parameter] = gradient;
  return {{"name", name},
          {"dtype", StrCat(dtype)},
          {"steps", FLAGS_steps},
          {"loss", programs.loss},
          {"accuracy", programs.accuracy},
          {"variables", ComparedVariables(*programs.main)},
          {"gradients", gradients}};
}

// Two lines for tools/run_program: all steps, and one step that fetches everything.
std::string SkiffJobs(const nlohmann::json& description, const std::string& folder) {
  nlohmann::json training = {{"program", JoinPath(folder, "main.pb")},
                             {"params", JoinPath(folder, "params.npz")},
                             {"feed", JoinPath(folder, "feed.npz")}};
  nlohmann::json step = training;
  training["steps"] = FLAGS_steps;
  training["fetch"] = StrCat(description.at("loss").get<std::string>(), ",",
                             description.at("accuracy").get<std::string>());
  training["out"] = JoinPath(folder, "skiff_training.npz");
  training["save_params"] = JoinPath(folder, "skiff_params.npz");
  step["fetch"] = Join(description.at("variables").get<std::vector<std::string>>(), ",");
  step["out"] = JoinPath(folder, "skiff_step.npz");
  step["save_params"] = JoinPath(folder, "skiff_step_params.npz");
  return training.dump() + "\n" + step.dump() + "\n";
}

void WriteAll(const std::string& out) {
  nlohmann::json descriptions = nlohmann::json::array();
  std::string jobs;
  for (const Classifier& classifier : Classifiers()) {
    for (const DType dtype : classifier.dtypes) {
      const std::string name = NameOf(classifier, dtype);
      const std::string folder = JoinPath(out, name);
      CreateDirectories(folder);
      const TrainingPrograms programs = Build(classifier, dtype);
      AtomicWriteFile(JoinPath(folder, "main.pb"), SerializeProgram(*programs.main));
      AtomicWriteFile(JoinPath(folder, "startup.pb"), SerializeProgram(*programs.startup));
      WriteNpz(JoinPath(folder, "params.npz"), InitialValues(programs));
      WriteNpz(JoinPath(folder, "feed.npz"), Batch(classifier, dtype));
      descriptions.push_back(Describe(programs, name, dtype));
      jobs += SkiffJobs(descriptions.back(), folder);
    }
  }
  AtomicWriteFile(JoinPath(out, "programs.json"), descriptions.dump(1) + "\n");
  AtomicWriteFile(JoinPath(out, "skiff_jobs.jsonl"), jobs);
  std::printf("%zu training programs written to %s\n", descriptions.size(), out.c_str());
}

int Main() {
  SKIFF_ENFORCE(!FLAGS_out.empty(), kInvalidArgument, "no folder given: --out=DIR");
  SKIFF_ENFORCE(FLAGS_steps > 0, kInvalidArgument, "steps = ", FLAGS_steps,
                ": expected at least 1");
  WriteAll(FLAGS_out);
  return 0;
}

}  // namespace
}  // namespace skiff::oracle

int main(int argc, char** argv) {
  return skiff::CommandMain(argc, argv,
                            {.usage = "write_training_programs --out=DIR [flags]",
                             .summary = "Writes training programs for another framework to run.",
                             .run = skiff::oracle::Main});
}
