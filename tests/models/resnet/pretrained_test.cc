#include "models/resnet/pretrained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/name_rules.h"
#include "framework/io/safetensors.h"
#include "framework/ir/api/text.h"
#include "framework/tensor/scope.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The name that the rules make.
std::string Ruled(ResNetSource from, int32_t depth, const std::string& name) {
  return ApplyRules(ResNetRules(from, depth), {name})[0].name;
}

TEST(ResNetRules, CountTheConvolutionsInTheirOrder) {
  const auto torch = [](int32_t depth, const char* name) {
    return Ruled(ResNetSource::kTorchvision, depth, name);
  };
  EXPECT_EQ(torch(18, "conv1.weight"), "conv2d_0.w_0");
  EXPECT_EQ(torch(18, "layer1.0.conv1.weight"), "conv2d_1.w_0");
  EXPECT_EQ(torch(18, "layer1.1.conv2.weight"), "conv2d_4.w_0");
  EXPECT_EQ(torch(18, "layer2.0.conv1.weight"), "conv2d_5.w_0");
  EXPECT_EQ(torch(18, "layer2.0.downsample.0.weight"), "conv2d_7.w_0");
  EXPECT_EQ(torch(18, "layer4.1.conv2.weight"), "conv2d_19.w_0");
  EXPECT_EQ(torch(50, "layer1.0.conv3.weight"), "conv2d_3.w_0");
  EXPECT_EQ(torch(50, "layer1.0.downsample.0.weight"), "conv2d_4.w_0");
  EXPECT_EQ(torch(50, "layer4.2.conv3.weight"), "conv2d_52.w_0");
  EXPECT_EQ(torch(101, "layer4.2.conv3.weight"), "conv2d_103.w_0");
}

TEST(ResNetRules, NameTheFourPartsOfABatchNorm) {
  const auto torch = [](const char* name) {
    return Ruled(ResNetSource::kTimm, 18, StrCat("layer2.0.downsample.1.", name));
  };
  EXPECT_EQ(torch("weight"), "batch_norm_7.w_0");
  EXPECT_EQ(torch("bias"), "batch_norm_7.b_0");
  EXPECT_EQ(torch("running_mean"), "batch_norm_7.w_1");
  EXPECT_EQ(torch("running_var"), "batch_norm_7.w_2");
}

TEST(ResNetRules, KnowTransformersNames) {
  const auto transformers = [](const char* name) {
    return Ruled(ResNetSource::kHuggingFace, 50, name);
  };
  EXPECT_EQ(transformers("resnet.embedder.embedder.convolution.weight"), "conv2d_0.w_0");
  EXPECT_EQ(transformers("encoder.stages.0.layers.0.layer.2.normalization.running_mean"),
            "batch_norm_3.w_1");
  EXPECT_EQ(transformers("resnet.encoder.stages.0.layers.0.shortcut.convolution.weight"),
            "conv2d_4.w_0");
  EXPECT_EQ(transformers("classifier.1.bias"), "fc_0.b_0");
}

TEST(ResNetRules, KnowThatPaddleMakesShortcutsFirst) {
  const auto paddle = [](const char* name) { return Ruled(ResNetSource::kPaddle, 18, name); };
  EXPECT_EQ(paddle("conv2d_4.w_0"), "conv2d_4.w_0");
  EXPECT_EQ(paddle("conv2d_5.w_0"), "conv2d_7.w_0") << "the shortcut";
  EXPECT_EQ(paddle("conv2d_6.w_0"), "conv2d_5.w_0");
  EXPECT_EQ(paddle("batch_norm2d_7.w_2"), "batch_norm_6.w_2");
  EXPECT_EQ(paddle("linear_0.w_0"), "fc_0.w_0");
}

// Fills a tensor with a number that no other one of the model has.
Tensor Numbered(const Shape& shape) {
  static float next = 0;
  Tensor tensor(shape, DType::kFloat32);
  const float number = ++next;
  for (float& x : tensor.values<float>()) x = number;
  return tensor;
}

void AddConv(const std::string& conv, const std::string& norm, int64_t out, int64_t in,
             int64_t kernel, TensorMap* tensors) {
  tensors->emplace(conv + ".weight", Numbered({out, in, kernel, kernel}));
  for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
    tensors->emplace(StrCat(norm, ".", part), Numbered({out}));
  }
  tensors->emplace(norm + ".num_batches_tracked", Tensor({}, DType::kInt64));
}

// torchvision's resnet18 of so many classes.
TensorMap ResNet18(int64_t classes) {
  TensorMap tensors;
  AddConv("conv1", "bn1", 64, 3, 7, &tensors);
  int64_t in = 64;
  for (int64_t stage = 1; stage <= 4; ++stage) {
    const int64_t out = int64_t{32} << stage;
    for (int64_t block = 0; block < 2; ++block) {
      const std::string start = StrCat("layer", stage, ".", block, ".");
      AddConv(start + "conv1", start + "bn1", out, in, 3, &tensors);
      AddConv(start + "conv2", start + "bn2", out, out, 3, &tensors);
      if (in != out) AddConv(start + "downsample.0", start + "downsample.1", out, in, 1, &tensors);
      in = out;
    }
  }
  tensors.emplace("fc.weight", Numbered({classes, 512}));
  tensors.emplace("fc.bias", Numbered({classes}));
  return tensors;
}

class PretrainedResNetTest : public testing::Test {
 protected:
  PretrainedResNetTest() { CreateNewDirectory(source_); }

  void WriteWeights(const TensorMap& tensors) {
    WriteSafetensors(JoinPath(source_, "model.safetensors"), tensors);
  }
  std::string Convert() { return ConvertResNet(conversion_); }
  std::string Refusal() {
    const std::string text = ErrorText([&] { Convert(); });
    EXPECT_FALSE(PathExists(output_)) << "no half folder";
    return text;
  }

  TempDirectory directory_;
  std::string source_ = directory_ / "source";
  std::string output_ = directory_ / "output";
  ResNetConversion conversion_{{.source = source_, .output = output_}};
};

TEST_F(PretrainedResNetTest, TakesAllWeights) {
  const TensorMap tensors = ResNet18(3);
  WriteWeights(tensors);
  const std::string report = Convert();
  EXPECT_THAT(report, StartsWith("taken: 102\nmissing: 0\nunused: 0\ndropped: 20\n"));
  EXPECT_THAT(report, HasSubstr("--depth=18 --stem=large --initial_model=" + output_));
  Scope scope;
  const InferenceModel model = LoadInferenceModel(output_, &scope);
  EXPECT_EQ(model.fetch_names.size(), 2u) << "probabilities and logits";
  const auto expect = [&](const char* ours, const char* theirs) {
    EXPECT_EQ(scope.Get(ours).ToVector<float>()[0], tensors.at(theirs).ToVector<float>()[0]);
  };
  expect("conv2d_0.w_0", "conv1.weight");
  expect("batch_norm_12.w_2", "layer3.0.downsample.1.running_var");
  expect("batch_norm_19.b_0", "layer4.1.bn2.bias");
  expect("fc_0.w_0", "fc.weight");
  EXPECT_EQ(scope.Get("fc_0.w_0").shape(), Shape({512, 3}));
}

TEST_F(PretrainedResNetTest, NeedsNoClassifier) {
  TensorMap tensors = ResNet18(3);
  tensors.erase("fc.weight");
  tensors.erase("fc.bias");
  WriteWeights(tensors);
  EXPECT_THAT(Convert(), StartsWith("taken: 100\nmissing: 0\n"));
}

void ReplaceAll(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size()) {
    text->replace(at, from.size(), to);
  }
}

// Saves the converted model under the names that Paddle gives, with a change of its text.
void SaveLikePaddle(const std::string& from, const std::string& to,
                    const std::function<void(std::string*)>& change) {
  Scope scope;
  const InferenceModel model = LoadInferenceModel(from, &scope);
  std::string text = PrintProgram(*model.program);
  Scope renamed;
  const auto rename = [&](const std::string& ours, const std::string& theirs) {
    renamed.Set(theirs, scope.Get(ours));
    // Most of these names are also names of ours.
    std::string marked = theirs;
    ReplaceAll(&marked, "_", "~");
    ReplaceAll(&text, ours, marked);
  };
  for (int64_t number = 0; number < 20; ++number) {
    // In stages 2 to 4, the shortcut is third here and first there.
    const int64_t place = (number - 5) % 5;
    const int64_t there = number < 5 || place > 2 ? number : number + (place == 2 ? -2 : 1);
    rename(StrCat("conv2d_", number, ".w_0"), StrCat("conv2d_", there, ".w_0"));
    for (const char* part : {".w_0", ".b_0", ".w_1", ".w_2"}) {
      rename(StrCat("batch_norm_", number, part), StrCat("batch_norm2d_", there, part));
    }
  }
  rename("fc_0.w_0", "linear_0.w_0");
  rename("fc_0.b_0", "linear_0.b_0");
  ReplaceAll(&text, "~", "_");
  change(&text);
  SaveInferenceModel(to, model.feed_names, model.fetch_names, *ParseProgramText(text), renamed,
                     {.files = {.params_filename = kCombinedParamsFile}});
}

TEST_F(PretrainedResNetTest, ComparesTheOpsOfPaddlesProgram) {
  WriteWeights(ResNet18(3));
  Convert();
  Scope scope;
  LoadInferenceModel(output_, &scope);
  const std::string converted = output_;
  conversion_.from = ResNetSource::kPaddle;
  conversion_.source = directory_ / "same";
  conversion_.output = output_ = directory_ / "again";
  SaveLikePaddle(converted, conversion_.source, [](std::string*) {});
  EXPECT_THAT(Convert(), StartsWith("taken: 102\nmissing: 0\nunused: 0\ndropped: 0\n"));
  Scope again;
  LoadInferenceModel(output_, &again);
  for (const char* name : {"conv2d_7.w_0", "conv2d_5.w_0", "batch_norm_13.w_1", "fc_0.w_0"}) {
    EXPECT_EQ(again.Get(name).ToVector<float>(), scope.Get(name).ToVector<float>()) << name;
  }
  conversion_.source = directory_ / "other";
  conversion_.output = output_ = directory_ / "third";
  SaveLikePaddle(converted, conversion_.source, [](std::string* text) {
    ReplaceAll(text, "strides = ints [2, 2]", "strides = ints [1, 1]");
  });
  EXPECT_THAT(Refusal(), HasSubstr("the conv2d of parameter \"conv2d_0.w_0\" has another strides"));
}

TEST_F(PretrainedResNetTest, RefusesOtherNetworks) {
  TensorMap tensors = ResNet18(3);
  // As in a wide ResNet.
  tensors["layer1.0.conv1.weight"] = Numbered({128, 64, 3, 3});
  WriteWeights(tensors);
  EXPECT_THAT(Refusal(), HasSubstr("(tensor \"layer1.0.conv1.weight\") is float32[128, 64, 3, 3], "
                                   "expected float32[64, 64, 3, 3]"));
  tensors.erase("layer4.1.conv1.weight");
  for (const char* part :
       {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}) {
    tensors.erase(StrCat("layer4.1.bn1.", part));
    tensors.erase(StrCat("layer4.1.bn2.", part));
  }
  tensors.erase("layer4.1.conv2.weight");
  WriteWeights(tensors);
  EXPECT_THAT(Refusal(), HasSubstr("found a ResNet with stages of 2, 2, 2, 1 basic blocks"));
}

TEST_F(PretrainedResNetTest, RefusesWhatOnlyTheConfigurationTells) {
  WriteWeights(ResNet18(3));
  conversion_.from = ResNetSource::kTimm;
  AtomicWriteFile(JoinPath(source_, "config.json"), R"({"architecture": "resnetblur18"})");
  EXPECT_THAT(Refusal(), HasSubstr("\"architecture\": found \"resnetblur18\", expected "
                                   "\"resnet18\""));
  AtomicWriteFile(JoinPath(source_, "config.json"), R"({"architecture": "resnet18"})");
  EXPECT_THAT(Convert(), StartsWith("taken: 102\n"));
}

}  // namespace
}  // namespace skiff::models
