#include "tests/onnx/networks.h"

#include <cstdint>

#include "framework/base/str_cat.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/transformer_decoder.h"
#include "models/ernie/ernie.h"
#include "models/lenet/lenet.h"
#include "models/mlp/mlp.h"
#include "models/resnet/resnet.h"
#include "models/vgg/vgg.h"
#include "tests/harness/array_tensor.h"

namespace skiff::onnx_tests {
namespace {

using harness::Integers;
using harness::ToTensor;
using harness::Uniform;

Variable Images(const Shape& shape, TensorMap* feeds) {
  (*feeds)["image"] = ToTensor(Uniform(shape, 1), DType::kFloat32);
  std::vector<int64_t> dims = shape.ToVector();
  dims[0] = -1;
  return layers::Data("image", dims);
}

Variable Ids(const std::string& name, int64_t kinds, TensorMap* feeds) {
  constexpr int64_t kBatch = 3;
  constexpr int64_t kLength = 7;
  (*feeds)[name] = ToTensor(Integers({kBatch, kLength}, 2, 0, kinds), DType::kInt64);
  return layers::Data(name, {-1, -1}, DType::kInt64);
}

Variable Ernie(TensorMap* feeds) {
  models::ErnieInputs inputs;
  inputs.token_ids = Ids("token_ids", 50, feeds);
  inputs.sentence_ids = Ids("sentence_ids", 2, feeds);
  inputs.position_ids = Ids("position_ids", 16, feeds);
  Tensor mask(Shape{3, 7}, DType::kFloat32);
  for (int64_t i = 0; i < mask.element_count(); ++i) mask.data<float>()[i] = i % 7 < 4 + i / 7;
  (*feeds)["input_mask"] = mask;
  inputs.input_mask = layers::Data("input_mask", {-1, -1});
  models::ErnieOptions options;
  options.vocabulary = 50;
  options.hidden = 32;
  options.feed_forward = 64;
  options.positions = 16;
  const Variable pooled = models::ErniePool(models::ErnieEncoder(inputs, options), options);
  return models::ErnieSequenceScores(pooled, 3, "topic", options);
}

// A decoder as in Llama: rotary, gated, rms_norm.
Variable Llama(TensorMap* feeds) {
  (*feeds)["x"] = ToTensor(Uniform({2, 5, 16}, 3), DType::kFloat32);
  layers::TransformerDecoderOptions options;
  options.layers = 2;
  options.heads = 2;
  options.feed_forward = 32;
  options.rotary = true;
  options.gated = true;
  options.act = "swish";
  options.normalize_first = true;
  options.norm = "rms_norm";
  return layers::TransformerDecoder(layers::Data("x", {-1, -1, 16}), options);
}

Variable Gpt2(TensorMap* feeds) {
  (*feeds)["x"] = ToTensor(Uniform({2, 5, 16}, 3), DType::kFloat32);
  layers::TransformerDecoderOptions options;
  options.layers = 2;
  options.heads = 4;
  options.feed_forward = 32;
  options.normalize_first = true;
  options.packed = true;
  return layers::TransformerDecoder(layers::Data("x", {-1, -1, 16}), options);
}

}  // namespace

std::vector<Network> Networks() {
  const auto of_images = [](const Shape& shape, auto network) {
    return [=](TensorMap* feeds) { return network(Images(shape, feeds)); };
  };
  std::vector<Network> networks;
  networks.push_back({"mlp", of_images({4, 30}, [](const Variable& x) {
                        return models::Mlp(x, {.hidden_units = 16, .dropout = 0.3f});
                      })});
  networks.push_back(
      {"lenet", of_images({3, 1, 28, 28}, [](const Variable& x) { return models::LeNet(x, 10); })});
  for (const int32_t depth : {20, 18, 50}) {
    const Shape shape = depth == 20 ? Shape{2, 3, 32, 32} : Shape{2, 3, 64, 64};
    networks.push_back({StrCat("resnet", depth), of_images(shape, [=](const Variable& x) {
                          return models::ResNet(x, {.depth = depth});
                        })});
  }
  networks.push_back({"vgg11", of_images({2, 3, 32, 32}, [](const Variable& x) {
                        return models::Vgg(x, {.depth = 11});
                      })});
  networks.push_back({"ernie", Ernie});
  networks.push_back({"llama", Llama});
  networks.push_back({"gpt2", Gpt2});
  return networks;
}

BuiltNetwork Build(const Network& network) {
  BuiltNetwork built{.program = std::make_unique<Program>(),
                     .executor = std::make_unique<Executor>(Place::Cpu())};
  Program startup;
  startup.seed = 7;
  {
    const ProgramGuard guard(built.program.get(), &startup);
    built.fetch = network.build(&built.feeds).name();
  }
  built.executor->Run(startup);
  FeedList given;
  for (const auto& [name, tensor] : built.feeds) {
    built.feed_names.push_back(name);
    given.emplace_back(name, tensor);
  }
  built.output = built.executor->Run(*built.program->CloneForTest(), given, {built.fetch})[0];
  return built;
}

}  // namespace skiff::onnx_tests
