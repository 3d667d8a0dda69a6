// Writes training programs, their initial parameters and a batch, so that PaddlePaddle can run them
// and the results can be compared (run_in_paddle.py; docs/outside_check.md):
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
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric_layers.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adadelta.h"
#include "framework/builder/optimizer/adagrad.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/adamax.h"
#include "framework/builder/optimizer/adamw.h"
#include "framework/builder/optimizer/decayed_adagrad.h"
#include "framework/builder/optimizer/ftrl.h"
#include "framework/builder/optimizer/lamb.h"
#include "framework/builder/optimizer/lars_momentum.h"
#include "framework/builder/optimizer/model_average.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/rmsprop.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/command_line/command_line.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/io/parameters.h"
#include "framework/ir/codec.h"
#include "framework/transpiler/merge_optimizer_pass.h"
#include "models/lenet/lenet.h"
#include "models/resnet/resnet.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/op_case.h"
#include "tests/oracle/ernie_training.h"
#include "tests/oracle/training.h"

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
  // The pass that rewrites the program; nullptr: none.
  std::shared_ptr<const ProgramPass> pass = nullptr;
  int64_t words = 0;  // if not 0, the inputs are ids of this many words instead of images
};

std::vector<ParameterGradient> MinimizeByMomentum(const Variable& loss, double rate) {
  return optimizer::Momentum(
             {.learning_rate = rate, .momentum = 0.9f, .regularization = L2Decay(1e-4f)})
      .Minimize(loss)
      .trained;
}

std::vector<ParameterGradient> MinimizeByClippedAdam(const Variable& loss) {
  return optimizer::Adam({.learning_rate = 0.001, .clip = ClipByGlobalNorm(1.0f)})
      .Minimize(loss)
      .trained;
}

std::vector<ParameterGradient> MinimizeBySchedule(const Variable& loss) {
  const Variable cosine =
      learning_rate::Cosine({.start = 0.02f, .steps_per_epoch = 3, .epochs = 10});
  const Variable rate =
      learning_rate::LinearWarmup(cosine, {.warmup_steps = 5, .start = 0.0f, .end = 0.02f});
  return optimizer::Momentum({.learning_rate = rate, .momentum = 0.9f, .use_nesterov = true})
      .Minimize(loss)
      .trained;
}

Variable SmallNet(const Variable& image, int64_t classes) {
  const Variable hidden = layers::Fc(image, 12, {.num_flatten_dims = 1, .act = "tanh"});
  return layers::Fc(hidden, classes, {.param_attr = {.learning_rate = 0.5f}});
}

// A small network trained by an optimizer, with clipping and decay.
template <class Made, class Options>
Classifier By(const std::string& name, Options options, GradientClip clip = {},
              std::shared_ptr<const ProgramPass> pass = nullptr) {
  options.clip = clip;
  return {
      .name = "net_" + name,
      .dtypes = {DType::kFloat64, DType::kFloat32},
      .image_dims = {8, 1, 6, 6},
      .classes = 5,
      .logits = SmallNet,
      .minimize = [options](const Variable& loss) { return Made(options).Minimize(loss).trained; },
      .pass = std::move(pass)};
}

// The same with words as inputs. Some occur in a batch several times, some not at all; the
// gradients of their embeddings are selected rows.
template <class Made, class Options>
Classifier OfWordsBy(const std::string& name, Options options, GradientClip clip = {}) {
  Classifier classifier = By<Made>("sparse_" + name, options, clip);
  classifier.image_dims = {8, 2};
  classifier.words = 24;
  return classifier;
}

std::vector<Classifier> SparseOptimizers() {
  using namespace optimizer;  // NOLINT(google-build-using-namespace): a table of all of them
  return {
      OfWordsBy<Sgd>("sgd", SgdOptions{.learning_rate = 0.5}),
      OfWordsBy<Sgd>("sgd_clipped", SgdOptions{.learning_rate = 0.5}, ClipByGlobalNorm(0.2f)),
      OfWordsBy<Momentum>("momentum", MomentumOptions{.learning_rate = 0.1}),
      OfWordsBy<Momentum>("nesterov", MomentumOptions{.learning_rate = 0.1, .use_nesterov = true}),
      // In rows that a batch lacks, PaddlePaddle uses epsilon as it is; in all others, and in dense
      // tensors, it scales epsilon by the bias correction of Moment2.
      OfWordsBy<Adam>("adam", AdamOptions{.learning_rate = 0.02, .epsilon = 1e-30f}),
      OfWordsBy<Adam>("lazy_adam", AdamOptions{.learning_rate = 0.02, .lazy_mode = true}),
      OfWordsBy<Adagrad>("adagrad", AdagradOptions{.learning_rate = 0.1}),
      OfWordsBy<RmsProp>("rmsprop", RmsPropOptions{.learning_rate = 0.02}),
      OfWordsBy<Lamb>("lamb", LambOptions{.learning_rate = 0.02})};
}

// Every optimizer, kind of clipping and merged op that PaddlePaddle also has.
std::vector<Classifier> Optimizers() {
  using namespace optimizer;  // NOLINT(google-build-using-namespace): a table of all of them
  const auto merge = std::make_shared<MergeOptimizerPass>();
  const Regularizer l1 = L1Decay(1e-3f);
  const Regularizer l2 = L2Decay(1e-3f);
  const std::vector<std::string> biases = {".b_"};
  std::vector<Classifier> all = {
      By<Sgd>("sgd", SgdOptions{.learning_rate = 0.1, .regularization = l1}, ClipByValue(0.05f)),
      By<Momentum>("momentum", MomentumOptions{.learning_rate = 0.1, .regularization = l2}),
      By<Momentum>("nesterov", MomentumOptions{.learning_rate = 0.1, .use_nesterov = true},
                   ClipByGlobalNorm(0.2f)),
      By<Momentum>("merged_momentum", MomentumOptions{.learning_rate = 0.1, .use_nesterov = true},
                   {}, merge),
      By<LarsMomentum>("lars_momentum", LarsMomentumOptions{.learning_rate = 0.5,
                                                            .coefficient = 0.1f,
                                                            .exclude_from_decay = biases}),
      By<LarsMomentum>("merged_lars_momentum",
                       LarsMomentumOptions{
                           .learning_rate = 0.5, .coefficient = 0.1f, .exclude_from_decay = biases},
                       {}, merge),
      By<Adam>("adam", AdamOptions{.learning_rate = 0.01, .regularization = l2},
               ClipByGlobalNorm(0.2f)),
      By<Adam>("merged_adam", AdamOptions{.learning_rate = 0.01}, {}, merge),
      By<AdamW>("adamw", AdamWOptions{.learning_rate = 0.01, .exclude_from_decay = biases}),
      By<Adamax>("adamax", AdamaxOptions{.learning_rate = 0.01}),
      By<Adagrad>("adagrad", AdagradOptions{.learning_rate = 0.05}),
      By<Adadelta>("adadelta", AdadeltaOptions{.learning_rate = 1.0}),
      By<RmsProp>("rmsprop", RmsPropOptions{.learning_rate = 0.01, .momentum = 0.5f}),
      By<RmsProp>("centered_rmsprop", RmsPropOptions{.learning_rate = 0.01, .centered = true}),
      By<Lamb>("lamb", LambOptions{.learning_rate = 0.01, .exclude_from_decay = biases})};
  // PaddlePaddle has only float32 kernels of these.
  const auto add_float32 = [&all](Classifier classifier) {
    classifier.dtypes = {DType::kFloat32};
    all.push_back(std::move(classifier));
  };
  add_float32(
      By<Momentum>("clipped_by_norm", MomentumOptions{.learning_rate = 0.1}, ClipByNorm(0.1f)));
  add_float32(By<DecayedAdagrad>("decayed_adagrad", DecayedAdagradOptions{.learning_rate = 0.01}));
  add_float32(By<Ftrl>("ftrl", FtrlOptions{.learning_rate = 0.05, .l1 = 0.001f, .l2 = 0.001f}));
  Classifier averaged = By<Sgd>("model_average", SgdOptions{.learning_rate = 0.1});
  averaged.minimize = [](const Variable& loss) {
    std::vector<ParameterGradient> pairs = Sgd({.learning_rate = 0.1}).Minimize(loss).trained;
    ModelAverage({.average_window_rate = 0.5f, .min_average_window = 2, .max_average_window = 6});
    return pairs;
  };
  all.push_back(std::move(averaged));
  std::ranges::move(SparseOptimizers(), std::back_inserter(all));
  return all;
}

// Reads images [batch, 1, 6, 6] row by row, by a layer that is written step by step.
Variable RowsByStaticRnn(const Variable& image, int64_t classes) {
  constexpr int64_t kHidden = 7;
  const Variable rows =
      layers::Transpose(layers::Reshape(image, {-1, 6, 6}), {1, 0, 2});  // [6, batch, 6]
  const Variable first = layers::FillConstantBatchSizeLike(rows, {-1, kHidden}, image.dtype(), 0.0,
                                                           {.input_dim_idx = 1});
  layers::StaticRnn rnn;
  rnn.Body([&] {
    const Variable row = rnn.StepInput(rows);
    const Variable before = rnn.Memory(first);
    const Variable state = layers::Tanh(layers::Fc(layers::Concat({row, before}, 1), kHidden));
    rnn.UpdateMemory(before, state);
    rnn.StepOutput(state);
  });
  const Variable states = rnn.Outputs()[0];
  return layers::Fc(layers::ReduceMean(states, {.dims = {0}}), classes);
}

// Reads the rows of images [8, 1, 6, 6] as sequences of different lengths, by a layer that is
// written step by step. What it sees besides the rows starts and stays with its sequence.
Variable RowsByDynamicRnn(const Variable& image, int64_t classes) {
  constexpr int64_t kHidden = 7;
  std::vector<int32_t> offsets = {0};
  for (const int32_t length : {3, 9, 6, 1, 12, 6, 4, 7}) {
    offsets.push_back(offsets.back() + length);
  }
  const Variable rows = layers::LoDReset(layers::Reshape(image, {-1, 6}), offsets);
  const Variable first = layers::Fc(image, kHidden, {.num_flatten_dims = 1, .act = "tanh"});
  layers::DynamicRnn rnn;
  rnn.Body([&] {
    const Variable row = rnn.StepInput(rows);
    const Variable seen = rnn.StaticInput(first);
    const Variable from_first = rnn.Memory(first);
    const Variable from_zero = rnn.Memory({kHidden}, 0.0f, image.dtype());
    const Variable one =
        layers::Tanh(layers::Fc(layers::Concat({row, from_first, seen}, 1), kHidden));
    const Variable other = layers::Tanh(layers::Fc(layers::Concat({one, from_zero}, 1), kHidden));
    rnn.UpdateMemory(from_first, one);
    rnn.UpdateMemory(from_zero, other);
    rnn.StepOutput(other);
  });
  return layers::Fc(layers::SequencePool(rnn.Outputs()[0], "LAST"), classes);
}

// A cell that a while repeats three times.
Variable CellInAWhile(const Variable& image, int64_t classes) {
  const Variable first = layers::Fc(image, 7, {.num_flatten_dims = 1, .act = "tanh"});
  const Variable zero = layers::FillConstant({1}, DType::kInt64, 0.0);
  const Variable end = layers::FillConstant({1}, DType::kInt64, 3.0);
  const Variables last =
      layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], end); },
                        [&](const Variables& v) {
                          const Variable next = layers::Tanh(layers::Fc(v[1], 7) + first * 0.5f);
                          return Variables{layers::Scale(v[0], {.bias = 1.0f}), next};
                        },
                        {zero, first});
  return layers::Fc(last[1], classes);
}

// One of two branches, by what the images are like.
Variable OneOfTwoBranches(const Variable& image, int64_t classes) {
  const Variable hidden = layers::Fc(image, 7, {.num_flatten_dims = 1, .act = "tanh"});
  const Variable limit = layers::FillConstant({1}, image.dtype(), 0.0);
  const Variable flag =
      layers::LessThan(limit, layers::Reshape(layers::Mean(layers::Square(image)), {1}));
  const Variables out = layers::Cond(
      flag, [&] { return Variables{layers::Tanh(layers::Fc(hidden, 7))}; },
      [&] { return Variables{layers::Sigmoid(layers::Fc(hidden, 7))}; });
  return layers::Fc(out[0], classes);
}

std::vector<Classifier> LoopsAndBranches() {
  const auto with = [](const std::string& name, auto logits) {
    Classifier classifier =
        By<optimizer::Adam>("", optimizer::AdamOptions{.learning_rate = 0.01, .epsilon = 1e-5f});
    classifier.name = name;
    classifier.logits = logits;
    return classifier;
  };
  return {with("static_rnn_adam", RowsByStaticRnn), with("while_adam", CellInAWhile),
          with("cond_adam", OneOfTwoBranches), with("dynamic_rnn_adam", RowsByDynamicRnn)};
}

std::vector<Classifier> Classifiers() {
  const std::vector<DType> both = {DType::kFloat64, DType::kFloat32};
  const auto momentum = [](const Variable& loss) { return MinimizeByMomentum(loss, 0.01); };
  // At larger rates, two float32 runs that round differently diverge within a few steps, while
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
  std::vector<Classifier> classifiers = {
      {"lenet_momentum", both, {16, 1, 28, 28}, 10, models::LeNet, momentum},
      {"lenet_adam", both, {16, 1, 28, 28}, 10, models::LeNet, MinimizeByClippedAdam},
      // Schedules always compute in float32.
      {"lenet_schedule", {DType::kFloat32}, {16, 1, 28, 28}, 10, models::LeNet, MinimizeBySchedule},
      {"resnet20_momentum", both, {8, 3, 32, 32}, 10, resnet(20), slow_momentum}};
  std::ranges::move(LoopsAndBranches(), std::back_inserter(classifiers));
  std::ranges::move(Optimizers(), std::back_inserter(classifiers));
  return classifiers;
}

TensorMap Batch(const Classifier& classifier, DType dtype) {
  harness::Array image = harness::Uniform(Shape(classifier.image_dims), 11, -2.0, 2.0);
  if (classifier.words > 0) {
    image = harness::Integers(Shape(classifier.image_dims), 11, 0, classifier.words);
  }
  const harness::Array label =
      harness::Integers({classifier.image_dims[0], 1}, 12, 0, classifier.classes);
  return {{"image", harness::ToTensor(image, classifier.words > 0 ? DType::kInt64 : dtype)},
          {"label", harness::ToTensor(label, DType::kInt64)}};
}

Training Build(const Classifier& classifier, DType dtype) {
  Training training{.name = StrCat(classifier.name, "_", dtype),
                    .dtype = dtype,
                    .feeds = Batch(classifier, dtype)};
  training.main->seed = 1;
  training.startup->seed = 1;
  const ProgramGuard guard(training.main.get(), training.startup.get());
  std::vector<int64_t> dims = classifier.image_dims;
  dims[0] = -1;
  Variable image = layers::Data("image", dims, classifier.words > 0 ? DType::kInt64 : dtype);
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  if (classifier.words > 0) {
    image = layers::Embedding(
        image, {.rows = classifier.words, .width = 4, .is_sparse = true, .dtype = dtype});
  }
  const Variable logits = classifier.logits(image, classifier.classes);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  training.loss = loss;
  training.metrics = {layers::Accuracy(layers::Softmax(logits), label)};
  for (const ParameterGradient& pair : classifier.minimize(loss)) {
    if (pair.gradient->kind == VarKind::kSelectedRows) continue;
    training.gradients.emplace_back(pair.parameter->name, pair.gradient->name);
  }
  if (classifier.pass != nullptr) {
    classifier.pass->Apply(DefaultOpRegistry(), training.main.get());
  }
  return training;
}

bool HasSparseGradients(const Program& program) {
  return std::ranges::any_of(program.root()->vars(),
                             [](const auto& var) { return var->kind == VarKind::kSelectedRows; });
}

TensorMap InitialValues(const Training& training) {
  Executor executor(Place::Cpu());
  executor.Run(*training.startup);
  const bool is_sparse = HasSparseGradients(*training.main);
  TensorMap values;
  for (const std::string& name : PersistableNames(*training.main)) {
    const Tensor* value = executor.scope().Find(name);
    SKIFF_ENFORCE(value != nullptr, kNotFound, "the startup program does not set \"", name, "\"");
    values[name] = *value;
    // With moments that aren't 0, rows that no batch reads change, too, except with lazy_mode.
    const bool moves = name.ends_with("_moment1_0") || name.ends_with("_moment2_0") ||
                       name.ends_with("_velocity_0");
    if (is_sparse && moves) {
      values[name] =
          harness::ToTensor(harness::Uniform(value->shape(), 3, 1e-5, 1e-4), value->dtype());
    }
  }
  return values;
}

// Returns whether PaddlePaddle gives the outputs of the op no values where a branch isn't taken.
bool LeavesOutputsUnset(const Op& op) {
  return op.type == "conditional_block" || op.type == "select_output";
}

// Returns the variables that ops write, except persistables, selected rows, which PaddlePaddle
// doesn't fetch, results of branches that may not have run, and outputs that only gradient ops
// read, which each framework stores in its own form.
std::vector<std::string> ComparedVariables(const Program& program) {
  std::set<std::string> names;
  for (const auto& op : program.root()->ops()) {
    if (LeavesOutputsUnset(*op)) continue;
    for (const SlotArguments& slot : op->outputs) {
      if (slot.slot == "XShape" || slot.slot == "ReserveSpace") continue;
      if (slot.slot == "MaxIndex") continue;
      for (const std::string& name : slot.arguments) {
        const Var* var = program.root()->FindLocalVar(name);
        if (var == nullptr || var->persistable || var->kind != VarKind::kLoDTensor) continue;
        names.insert(name);
      }
    }
  }
  return {names.begin(), names.end()};
}

nlohmann::json Describe(const Training& training) {
  nlohmann::json gradients = nlohmann::json::object();
  for (const auto& [parameter, gradient] : training.gradients) gradients[parameter] = gradient;
  return {{"name", training.name},       {"dtype", StrCat(training.dtype)},
          {"steps", FLAGS_steps},        {"loss", training.loss},
          {"metrics", training.metrics}, {"variables", ComparedVariables(*training.main)},
          {"gradients", gradients},      {"rounding", training.rounding}};
}

// Returns two lines for tools/run_program: all steps, and one step that fetches everything.
std::string SkiffJobs(const nlohmann::json& description, const std::string& folder) {
  nlohmann::json training = {{"program", JoinPath(folder, "main.pb")},
                             {"params", JoinPath(folder, "params.npz")},
                             {"feed", JoinPath(folder, "feed.npz")}};
  nlohmann::json step = training;
  std::vector<std::string> watched = description.at("metrics");
  watched.push_back(description.at("loss"));
  training["steps"] = FLAGS_steps;
  training["fetch"] = Join(watched, ",");
  training["out"] = JoinPath(folder, "skiff_training.npz");
  training["save_params"] = JoinPath(folder, "skiff_params.npz");
  step["fetch"] = Join(description.at("variables").get<std::vector<std::string>>(), ",");
  step["out"] = JoinPath(folder, "skiff_step.npz");
  step["save_params"] = JoinPath(folder, "skiff_step_params.npz");
  return training.dump() + "\n" + step.dump() + "\n";
}

std::vector<Training> Trainings() {
  std::vector<Training> trainings;
  for (const Classifier& classifier : Classifiers()) {
    for (const DType dtype : classifier.dtypes) trainings.push_back(Build(classifier, dtype));
  }
  if (!FLAGS_timing) std::ranges::move(ErnieTrainings(FLAGS_steps), std::back_inserter(trainings));
  return trainings;
}

void WriteAll(const std::string& out) {
  nlohmann::json descriptions = nlohmann::json::array();
  std::string jobs;
  for (const Training& training : Trainings()) {
    const std::string folder = JoinPath(out, training.name);
    CreateDirectories(folder);
    AtomicWriteFile(JoinPath(folder, "main.pb"), SerializeProgram(*training.main));
    AtomicWriteFile(JoinPath(folder, "startup.pb"), SerializeProgram(*training.startup));
    WriteNpz(JoinPath(folder, "params.npz"), InitialValues(training));
    WriteNpz(JoinPath(folder, "feed.npz"), training.feeds);
    descriptions.push_back(Describe(training));
    jobs += SkiffJobs(descriptions.back(), folder);
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
