#include "framework/training/initial_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameters.h"
#include "framework/io/safetensors.h"
#include "framework/ir/codec.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// x -> body -> head, of given widths; the head's parameters are named after `head`.
class Network {
 public:
  Network(int64_t body_width, const std::string& head, uint64_t seed) {
    startup_.seed = seed;
    const ProgramGuard guard(&main_, &startup_);
    const Variable x = layers::Data("x", {-1, 3});
    const Variable body =
        layers::Fc(x, body_width, {.param_attr = {.name = "body"}, .bias_attr = false});
    output_ = layers::Fc(body, 2, {.param_attr = {.name = head}, .bias_attr = false});
    executor_.Run(startup_);
  }

  void Save(const std::string& directory) const {
    SaveInferenceModel(directory, {"x"}, {output_.name()}, main_, executor_.scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
  }
  InitialWeights Take(const std::string& directory,
                      const std::vector<std::string>& new_parameters = {}) {
    return Take(directory, TakeWeightsOptions{.new_parameters = new_parameters,
                                              .allow_missing = new_parameters.empty(),
                                              .allow_unused = true});
  }
  InitialWeights Take(const std::string& model, const TakeWeightsOptions& options) {
    return TakeWeights(model, main_, &executor_.scope(), options);
  }
  void Write(const std::string& path, const std::vector<NameRule>& rename) const {
    WriteWeights(path, main_, executor_.scope(), rename);
  }
  std::vector<float> Values(const std::string& name) const {
    return executor_.scope().Get(name).ToVector<float>();
  }

 private:
  Program main_;
  Program startup_;
  Variable output_;
  Executor executor_;
};

TEST(InitialWeights, AreThoseOfTheSavedModelWhereTheNamesAgree) {
  const TempDirectory directory;
  const Network saved(4, "guess", 1);
  saved.Save(directory.path());
  Network network(4, "classify", 2);
  const std::vector<float> head = network.Values("classify");
  EXPECT_NE(network.Values("body"), saved.Values("body"));
  const InitialWeights weights = network.Take(directory.path());
  EXPECT_THAT(weights.taken, ElementsAre("body"));
  EXPECT_THAT(weights.missing, ElementsAre("classify"));
  EXPECT_EQ(network.Values("body"), saved.Values("body"));
  EXPECT_EQ(network.Values("classify"), head);
}

TEST(InitialWeights, LackOnlyWhatIsNew) {
  const TempDirectory directory;
  Network(4, "guess", 1).Save(directory.path());
  Network network(4, "classify", 2);
  EXPECT_THAT(network.Take(directory.path(), {"rank", "class"}).missing, ElementsAre("classify"));
  const std::vector<float> body = network.Values("body");
  Network(4, "guess", 3).Save(directory.path());
  EXPECT_EQ(
      InvalidArgumentText([&] {
        network.Take(directory.path(), {"rank", "pool"});
      }),
      directory.path() +
          ": the model lacks the parameters classify [4, 2]: expected all but those of rank and "
          "pool: the model has another configuration, or other names; it has what becomes no "
          "parameter: guess [4, 2]");
  EXPECT_EQ(network.Values("body"), body) << "nothing was taken";
}

TEST(InitialWeights, AreThoseOfASafetensorsFileWhereTheNamesAgree) {
  const TempDirectory directory;
  const std::string path = directory / "weights.safetensors";
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Tensor other = Tensor::FromValues<int8_t>({1}, {1});
  WriteSafetensors(path, {{"body", Tensor::FromValues<float>({3, 4}, values)}, {"other", other}});
  Network network(4, "classify", 2);
  const std::vector<float> head = network.Values("classify");
  const InitialWeights weights = network.Take(path);
  EXPECT_THAT(weights.taken, ElementsAre("body"));
  EXPECT_THAT(weights.missing, ElementsAre("classify"));
  EXPECT_EQ(network.Values("body"), values);
  EXPECT_EQ(network.Values("classify"), head);
}

TEST(InitialWeights, OfASafetensorsFileAreRefusedLikeThoseOfAModel) {
  const TempDirectory directory;
  const std::string path = directory / "weights.safetensors";
  Network network(4, "head", 2);
  const std::vector<float> before = network.Values("body");
  WriteSafetensors(path, {{"body", Tensor({4, 3}, DType::kFloat32)}});
  EXPECT_THAT(InvalidArgumentText([&] { network.Take(path); }),
              HasSubstr(path + ": parameter \"body\" is float32[4, 3], expected float32[3, 4]"));
  WriteSafetensors(path, {{"other", Tensor({4, 3}, DType::kFloat32)}});
  EXPECT_THAT(InvalidArgumentText([&] { network.Take(path); }),
              HasSubstr("the model has none of the parameters to train"));
  EXPECT_EQ(network.Values("body"), before);
}

// Trains a network, or one that was saved and loaded.
class LoadedNetwork : public testing::Test {
 protected:
  using Minimized = optimizer::Minimized;
  static constexpr int kLayers = 4;

  LoadedNetwork() {
    startup_.seed = 3;
    const ProgramGuard guard(&main_, &startup_);
    Variable x = layers::Data("x", {-1, 3});
    for (int i = 0; i < kLayers; ++i) {
      // Nobody trains the first.
      x = layers::Fc(x, 3, {.param_attr = ParamAttr{.trainable = i > 0}, .act = "tanh"});
    }
    output_ = x.name();
    Executor executor;
    executor.Run(startup_);
    SaveInferenceModel(directory_.path(), {"x"}, {output_}, main_, executor.scope());
    values_ = Values(main_, executor.scope());
  }

  static std::map<std::string, std::vector<float>> Values(const Program& program,
                                                          const Scope& scope) {
    std::map<std::string, std::vector<float>> values;
    for (const std::string& name : PersistableNames(program)) {
      if (name.starts_with("fc_")) values[name] = scope.Get(name).ToVector<float>();
    }
    return values;
  }

  // Minimizes the mean of squares of `output`.
  Minimized Train(Program* main, const std::string& output, Executor* executor) {
    Program startup;
    const ProgramGuard guard(main, &startup);
    const Variable y(main->root(), output);
    const Minimized minimized =
        optimizer::Sgd({.learning_rate = 0.5f}).Minimize(layers::Mean(layers::Square(y)));
    executor->Run(startup);
    CompiledProgram step = executor->Compile(*main);
    const Tensor x = Tensor::FromValues<float>({2, 3}, {1, 2, 3, -1, 0, 1});
    for (int i = 0; i < 5; ++i) step.Run({{"x", x}}, {});
    return minimized;
  }

  TempDirectory directory_;
  Program main_;
  Program startup_;
  std::string output_;
  std::map<std::string, std::vector<float>> values_;  // before training
};

TEST_F(LoadedNetwork, TrainsAsTheOneThatWasBuilt) {
  Executor built;
  built.Run(startup_);
  const Minimized of_built = Train(&main_, output_, &built);
  EXPECT_EQ(of_built.trained.size(), 2 * kLayers - 1);
  EXPECT_TRUE(of_built.left.empty());

  Executor executor;
  const InferenceModel model = LoadInferenceModel(directory_.path(), &executor.scope());
  EXPECT_EQ(Values(*model.program, executor.scope()), values_);
  const Minimized of_loaded = Train(model.program.get(), model.fetch_names[0], &executor);
  EXPECT_EQ(of_loaded.trained.size(), of_built.trained.size());
  EXPECT_TRUE(of_loaded.left.empty());
  const auto trained = Values(main_, built.scope());
  EXPECT_EQ(Values(*model.program, executor.scope()), trained);
  EXPECT_EQ(trained.at("fc_0.w_0"), values_.at("fc_0.w_0"));
  EXPECT_NE(trained.at("fc_3.w_0"), values_.at("fc_3.w_0"));
}

// A file of Fluid has no marks, and so doesn't tell what was frozen.
TEST_F(LoadedNetwork, TrainsAllIfItsFileHasNoMarks) {
  const auto program = ParseProgram(ReadFile(directory_ / "__model__"));
  for (const auto& var : program->root()->vars()) {
    var->is_parameter = var->stop_gradient = false;
  }
  AtomicWriteFile(directory_ / "__model__", SerializeProgram(*program));
  Executor executor;
  const InferenceModel model = LoadInferenceModel(directory_.path(), &executor.scope());
  const Minimized minimized = Train(model.program.get(), model.fetch_names[0], &executor);
  EXPECT_EQ(minimized.trained.size(), 2 * kLayers);
  EXPECT_TRUE(minimized.left.empty());
  for (const auto& [name, values] : Values(*model.program, executor.scope())) {
    EXPECT_NE(values, values_.at(name)) << name;
  }
}

TEST(InitialWeights, OfAnotherConfigurationAreRefused) {
  const TempDirectory directory;
  Network(4, "head", 1).Save(directory.path());
  Network network(5, "head", 2);
  const std::vector<float> before = network.Values("body");
  EXPECT_THAT(InvalidArgumentText([&] { network.Take(directory.path()); }),
              HasSubstr("parameter \"body\" is float32[3, 4], expected float32[3, 5]"));
  EXPECT_EQ(network.Values("body"), before);
}

TEST(InitialWeights, OfAModelWithOtherParametersAreRefused) {
  const TempDirectory directory;
  Network(4, "head", 1).Save(directory.path());
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  layers::Fc(layers::Data("x", {-1, 3}), 2, {.param_attr = {.name = "other"}});
  Executor executor;
  executor.Run(startup);
  EXPECT_THAT(InvalidArgumentText([&] { TakeWeights(directory.path(), main, &executor.scope()); }),
              HasSubstr("the model has none of the parameters to train"));
}

TEST(InitialWeights, MayLackOthersOnlyIfThatIsAllowed) {
  const TempDirectory directory;
  Network(4, "guess", 1).Save(directory.path());
  Network network(4, "classify", 2);
  EXPECT_EQ(InvalidArgumentText([&] { network.Take(directory.path(), TakeWeightsOptions()); }),
            directory.path() +
                ": the model lacks the parameters classify [4, 2]: expected all: the model has "
                "another configuration, or other names; it has what becomes no parameter: guess "
                "[4, 2]");
  EXPECT_EQ(InvalidArgumentText(
                [&] { network.Take(directory.path(), TakeWeightsOptions{.allow_missing = true}); }),
            directory.path() +
                ": the model has what becomes no parameter: guess [4, 2]: expected parameters of "
                "the program only");
  const InitialWeights weights = network.Take(
      directory.path(), TakeWeightsOptions{.allow_missing = true, .allow_unused = true});
  EXPECT_THAT(weights.unused, ElementsAre(Pair("guess", ElementsAre(4, 2))));
}

TEST(InitialWeights, OfNewParametersMayHaveAnotherShape) {
  const TempDirectory directory;
  const std::string path = directory / "weights.safetensors";
  WriteSafetensors(path, {{"body", Tensor({3, 4}, DType::kFloat32)},
                          {"head", Tensor({4, 1000}, DType::kFloat32)}});
  Network network(4, "head", 2);
  const std::vector<float> head = network.Values("head");
  const InitialWeights weights = network.Take(path, TakeWeightsOptions{.new_parameters = {"head"}});
  EXPECT_THAT(weights.missing, ElementsAre("head"));
  EXPECT_THAT(weights.unused, IsEmpty());
  EXPECT_EQ(network.Values("head"), head);
  EXPECT_THAT(InvalidArgumentText([&] { network.Take(path, TakeWeightsOptions()); }),
              HasSubstr("parameter \"head\" is float32[4, 1000], expected float32[4, 2]"));
}

TEST(InitialWeights, OfOtherNamesAreRenamedTransposedAndDropped) {
  const TempDirectory directory;
  const std::string path = directory / "weights.safetensors";
  const Tensor transposed =
      Tensor::FromValues<float>({4, 3}, {1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12});
  const Tensor head = Tensor::FromValues<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor count = Tensor::FromValues<int64_t>({}, {7});
  WriteSafetensors(path, {{"net.body.weight", transposed}, {"head", head}, {"net.count", count}});
  const std::vector<NameRule> rules = {
      {.pattern = R"(net\.(.*))", .to = "$1"},
      {.pattern = R"((body)\.weight)", .to = "$1", .change = NameChange::kTranspose},
      {.pattern = "count", .change = NameChange::kDrop}};
  Network network(4, "head", 2);
  const InitialWeights weights = network.Take(path, TakeWeightsOptions{.rename = rules});
  EXPECT_THAT(weights.taken, ElementsAre("body", "head"));
  EXPECT_THAT(weights.dropped, ElementsAre("net.count"));
  EXPECT_EQ(network.Values("body"), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(network.Values("head"), head.ToVector<float>());

  Network wider(5, "head", 2);
  EXPECT_THAT(InvalidArgumentText([&] { wider.Take(path, TakeWeightsOptions{.rename = rules}); }),
              HasSubstr("parameter \"body\" (tensor \"net.body.weight\", transposed) is "
                        "float32[3, 4], expected float32[3, 5]"));
}

TEST(InitialWeights, OfDirectoriesAreRenamed) {
  const TempDirectory directory;
  const Network saved(4, "guess", 1);
  saved.Save(directory.path());
  Network network(4, "classify", 2);
  const std::vector<NameRule> rules = {{.pattern = "guess", .to = "classify"}};
  network.Take(directory.path(), TakeWeightsOptions{.rename = rules});
  EXPECT_EQ(network.Values("classify"), saved.Values("guess"));
}

TEST(InitialWeights, OfTwoTensorsForOneParameterAreRefused) {
  const TempDirectory directory;
  const std::string path = directory / "weights.safetensors";
  const Tensor body({3, 4}, DType::kFloat32);
  WriteSafetensors(path, {{"a", body}, {"body", body}});
  Network network(4, "head", 2);
  const std::vector<NameRule> rules = {{.pattern = "a", .to = "body"}};
  EXPECT_EQ(InvalidArgumentText([&] { network.Take(path, TakeWeightsOptions{.rename = rules}); }),
            path + ": the tensors \"a\" and \"body\" both become parameter \"body\"");
}

TEST(InitialWeights, OfTiedTensorsMustBeEqual) {
  const TempDirectory directory;
  const std::string path = directory / "weights.safetensors";
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Tensor body = Tensor::FromValues<float>({3, 4}, values);
  const TakeWeightsOptions options{
      .allow_missing = true,
      .rename = {{.pattern = "tied", .to = "body", .change = NameChange::kTie}}};
  Network network(4, "head", 2);
  WriteSafetensors(path, {{"tied", body}});
  EXPECT_THAT(network.Take(path, options).taken, ElementsAre("body")) << "the only one";
  WriteSafetensors(path, {{"tied", body}, {"body", body}});
  EXPECT_THAT(network.Take(path, options).dropped, ElementsAre("tied"));
  EXPECT_EQ(network.Values("body"), values);
  WriteSafetensors(path, {{"tied", Tensor({3, 4}, DType::kFloat32)}, {"body", body}});
  EXPECT_THAT(InvalidArgumentText([&] { network.Take(path, options); }),
              HasSubstr(path + ": tensor \"tied\" differs from tensor \"body\""));
}

TEST(InitialWeights, AreWrittenUnderNamesOfOnesChoice) {
  const TempDirectory directory;
  const std::string path = directory / "weights.safetensors";
  const Network saved(4, "head", 1);
  saved.Write(path, {{.pattern = "body", .to = "fc.weight", .change = NameChange::kTranspose},
                     {.pattern = "head", .change = NameChange::kDrop}});
  const TensorMap written = ReadSafetensors(path);
  ASSERT_THAT(written, ElementsAre(Pair("fc.weight", testing::_)));
  EXPECT_EQ(written.at("fc.weight").shape(), Shape({4, 3}));
  Network network(4, "other", 2);
  network.Take(path, TakeWeightsOptions{.new_parameters = {"other"},
                                        .rename = {{.pattern = R"(fc\.weight)",
                                                    .to = "body",
                                                    .change = NameChange::kTranspose}}});
  EXPECT_EQ(network.Values("body"), saved.Values("body"));
  EXPECT_THAT(InvalidArgumentText([&] { saved.Write(path, {{.pattern = ".*", .to = "one"}}); }),
              HasSubstr("two parameters become tensor \"one\""));
}

}  // namespace
}  // namespace skiff::training
