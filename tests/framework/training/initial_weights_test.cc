#include "framework/training/initial_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "framework/builder/data.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/io/inference_model.h"
#include "framework/io/safetensors.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x -> body -> head, of given widths; the head's parameters are named after `head`.
class Network {
 public:
  Network(int64_t body_width, const std::string& head, uint64_t seed) {
    startup_.seed = seed;
    const ProgramGuard guard(&main_, &startup_);
    const Variable x = layers::Data("x", {-1, 3});
    const Variable body =
        layers::Fc(x, body_width, {.param_attr = {.name = "body"}, .bias_attr = std::nullopt});
    output_ = layers::Fc(body, 2, {.param_attr = {.name = head}, .bias_attr = std::nullopt});
    executor_.Run(startup_);
  }

  void Save(const std::string& directory) const {
    SaveInferenceModel(directory, {"x"}, {output_.name()}, main_, executor_.scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
  }
  InitialWeights Take(const std::string& directory,
                      const std::vector<std::string>& new_parameters = {}) {
    return TakeWeights(directory, main_, &executor_.scope(), new_parameters);
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
  EXPECT_EQ(InvalidArgumentText([&] {
              network.Take(directory.path(), {"rank", "pool"});
            }),
            directory.path() +
                ": the model lacks the parameters classify: expected all but those of rank and "
                "pool: the model has another configuration");
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

}  // namespace
}  // namespace skiff::training
