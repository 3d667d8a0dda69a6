#include "models/resnet/pretrained.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>
#include <utility>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/json.h"
#include "models/resnet/resnet.h"

namespace skiff::models {
namespace {

// A convolution of a network and the batch norm behind it. Counts from 0.
struct Place {
  enum class Kind { kStem, kBlock, kShortcut } kind = Kind::kStem;
  int64_t stage = 0;
  int64_t block = 0;
  int64_t conv = 0;
};

struct Depth {
  int32_t depth;
  bool bottleneck;
  std::vector<int64_t> blocks;
};

const std::vector<Depth>& Depths() {
  static const auto& depths = *new std::vector<Depth>{{18, false, {2, 2, 2, 2}},
                                                      {34, false, {3, 4, 6, 3}},
                                                      {50, true, {3, 4, 6, 3}},
                                                      {101, true, {3, 4, 23, 3}}};
  return depths;
}

const Depth& DepthOf(int32_t depth) {
  const auto found = std::ranges::find(Depths(), depth, &Depth::depth);
  SKIFF_ENFORCE(found != Depths().end(), kInvalidArgument, "ResNet of depth ", depth,
                ": expected 18, 34, 50 or 101");
  return *found;
}

// Calls visit for the places in the order in which models/resnet numbers them; `shortcut_first`: in
// that of paddle.vision, which makes the shortcut of a block before its convolutions.
template <typename Visit>
void VisitPlaces(const Depth& depth, bool shortcut_first, const Visit& visit) {
  using Kind = Place::Kind;
  visit(Place{.kind = Kind::kStem});
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t block = 0; block < depth.blocks[static_cast<size_t>(stage)]; ++block) {
      const Place shortcut{.kind = Kind::kShortcut, .stage = stage, .block = block};
      const bool has_shortcut = block == 0 && (stage > 0 || depth.bottleneck);
      if (has_shortcut && shortcut_first) visit(shortcut);
      for (int64_t conv = 0; conv < (depth.bottleneck ? 3 : 2); ++conv) {
        visit(Place{.kind = Kind::kBlock, .stage = stage, .block = block, .conv = conv});
      }
      if (has_shortcut && !shortcut_first) visit(shortcut);
    }
  }
}

// How a source calls a place's convolution and batch norm, as regular expressions.
struct PlaceNames {
  std::string conv;
  std::string norm;
};

PlaceNames TorchvisionNames(const Place& place) {
  if (place.kind == Place::Kind::kStem) return {"conv1", "bn1"};
  const std::string block = StrCat("layer", place.stage + 1, R"(\.)", place.block, R"(\.)");
  if (place.kind == Place::Kind::kShortcut) {
    return {block + R"(downsample\.0)", block + R"(downsample\.1)"};
  }
  return {StrCat(block, "conv", place.conv + 1), StrCat(block, "bn", place.conv + 1)};
}

PlaceNames HuggingFaceNames(const Place& place) {
  std::string part = R"(embedder\.embedder)";
  if (place.kind != Place::Kind::kStem) {
    part = StrCat(R"(encoder\.stages\.)", place.stage, R"(\.layers\.)", place.block, R"(\.)");
    part += place.kind == Place::Kind::kShortcut ? "shortcut" : StrCat(R"(layer\.)", place.conv);
  }
  return {part + R"(\.convolution)", part + R"(\.normalization)"};
}

// Endings of names: the matrix and bias of a classifier, then scale, shift, mean and variance of a
// batch norm.
struct Endings {
  std::string conv;
  std::vector<const char*> norm;
};

const Endings kTorch = {R"(\.weight)",
                        {R"(\.weight)", R"(\.bias)", R"(\.running_mean)", R"(\.running_var)"}};
const Endings kOfPaddle = {R"(\.w_0)", {R"(\.w_0)", R"(\.b_0)", R"(\.w_1)", R"(\.w_2)"}};
// Those of models/resnet.
constexpr const char* kNorm[] = {".w_0", ".b_0", ".w_1", ".w_2"};

void AddPlace(int64_t number, const PlaceNames& names, const Endings& endings,
              std::vector<NameRule>* rules) {
  rules->push_back({names.conv + endings.conv, StrCat("conv2d_", number, ".w_0")});
  for (size_t i = 0; i < std::size(kNorm); ++i) {
    rules->push_back({names.norm + endings.norm[i], StrCat("batch_norm_", number, kNorm[i])});
  }
}

void AddHead(const std::string& name, std::vector<NameRule>* rules) {
  rules->push_back({name + R"(\.weight)", StrCat(kResNetHead, ".w_0"), NameChange::kTranspose});
  rules->push_back({name + R"(\.bias)", StrCat(kResNetHead, ".b_0")});
}

std::vector<NameRule> TorchRules(const Depth& depth, bool hugging_face) {
  // How many batches the running statistics have seen, which a momentum doesn't need.
  std::vector<NameRule> rules = {
      {.pattern = R"(.*\.num_batches_tracked)", .change = NameChange::kDrop}};
  if (hugging_face) rules.push_back({R"(resnet\.(.*))", "$1"});
  int64_t number = 0;
  VisitPlaces(depth, /*shortcut_first=*/false, [&](const Place& place) {
    AddPlace(number++, hugging_face ? HuggingFaceNames(place) : TorchvisionNames(place), kTorch,
             &rules);
  });
  AddHead(hugging_face ? R"(classifier\.1)" : "fc", &rules);
  return rules;
}

std::vector<NameRule> PaddleRules(const Depth& depth) {
  using Key = std::tuple<Place::Kind, int64_t, int64_t, int64_t>;
  const auto key = [](const Place& place) {
    return Key(place.kind, place.stage, place.block, place.conv);
  };
  std::map<Key, int64_t> numbers;
  VisitPlaces(depth, /*shortcut_first=*/true,
              [&](const Place& place) { numbers.emplace(key(place), numbers.size()); });
  // The source's names are names of other places here. So all get a start that no name has, and
  // lose it at the end.
  std::vector<NameRule> rules = {{R"((conv2d_.*|batch_norm2d_.*|linear_.*))", "paddle/$1"}};
  int64_t number = 0;
  VisitPlaces(depth, /*shortcut_first=*/false, [&](const Place& place) {
    const int64_t there = numbers.at(key(place));
    AddPlace(number++, {StrCat("paddle/conv2d_", there), StrCat("paddle/batch_norm2d_", there)},
             kOfPaddle, &rules);
  });
  rules.push_back({R"(paddle/linear_0\.(.*))", StrCat(kResNetHead, ".$1")});
  return rules;
}

// --- What the source is ---

constexpr const char* kHowTold = "as far as the names of the weights tell";

int64_t BlocksOf(const NamedShapes& shapes, const std::string& start, const std::string& end,
                 int64_t stage_offset, int64_t stage) {
  int64_t blocks = 0;
  while (std::ranges::any_of(shapes, [&](const auto& entry) {
    return entry.first.starts_with(StrCat(start, stage + stage_offset, end, blocks, "."));
  })) {
    ++blocks;
  }
  return blocks;
}

// The depth that the names of torchvision, timm or transformers tell.
int32_t DepthOfNames(const std::string& weights, const NamedShapes& shapes, bool hugging_face) {
  Depth found{.depth = 0, .bottleneck = false};
  for (int64_t stage = 0; stage < 4; ++stage) {
    found.blocks.push_back(hugging_face ? BlocksOf(shapes, "encoder.stages.", ".layers.", 0, stage)
                                        : BlocksOf(shapes, "layer", ".", 1, stage));
  }
  found.bottleneck =
      shapes.contains(hugging_face ? "encoder.stages.0.layers.0.layer.2.convolution.weight"
                                   : "layer1.0.conv3.weight");
  for (const Depth& depth : Depths()) {
    if (depth.blocks == found.blocks && depth.bottleneck == found.bottleneck) return depth.depth;
  }
  Throw(ErrorCode::kInvalidArgument, weights, ": found a ResNet with stages of ",
        Join(found.blocks, ", "), found.bottleneck ? " bottleneck" : " basic", " blocks, ",
        kHowTold, ", expected ResNet-18, 34, 50 or 101");
}

int32_t DepthOfPaddle(const std::string& folder, const NamedShapes& shapes) {
  const auto convolutions = std::ranges::count_if(
      shapes, [](const auto& entry) { return entry.first.starts_with("conv2d_"); });
  for (const Depth& depth : Depths()) {
    int64_t expected = 0;
    VisitPlaces(depth, false, [&](const Place&) { ++expected; });
    if (convolutions == expected) return depth.depth;
  }
  Throw(ErrorCode::kInvalidArgument, folder, ": found ", convolutions,
        " convolutions named conv2d_<number>, expected those of ResNet-18, 34, 50 or 101");
}

void CheckKey(const nlohmann::json& json, const std::string& path, const char* key,
              const nlohmann::json& expected) {
  const auto found = json.find(key);
  SKIFF_ENFORCE(found == json.end() || *found == expected, kInvalidArgument, path, ": \"", key,
                "\": found ", QuotedJson(*found), ", expected ", QuotedJson(expected),
                ": models/resnet has no other network");
}

// What the weights don't show.
void CheckConfig(const std::string& folder, ResNetSource from, int32_t depth) {
  const std::string path = JoinPath(folder, "config.json");
  if (!PathExists(path)) return;
  const nlohmann::json json = ParseJson(ReadFile(path), path);
  SKIFF_ENFORCE(json.is_object(), kInvalidArgument, path, ": found ", QuotedJson(json),
                ", expected an object");
  if (from == ResNetSource::kHuggingFace) {
    CheckKey(json, path, "model_type", "resnet");
    CheckKey(json, path, "hidden_act", "relu");
    CheckKey(json, path, "downsample_in_first_stage", false);
    CheckKey(json, path, "downsample_in_bottleneck", false);
  } else if (from == ResNetSource::kTimm) {
    CheckKey(json, path, "architecture", StrCat("resnet", depth));
  }
}

// Returns the op that reads a parameter of a convolution or a batch norm, or nullptr.
const Op* ReaderOf(const Program& program, const std::string& name) {
  for (const auto& op : program.root()->ops()) {
    for (const char* slot : {"Filter", "Scale"}) {
      const auto& inputs = op->Input(slot);
      if (inputs.size() == 1 && inputs[0] == name) return op.get();
    }
  }
  return nullptr;
}

// Throws an Error unless Paddle's program uses each weight as ours does.
void CheckOps(const std::string& folder, const Program& theirs, const Program& ours,
              const std::vector<std::pair<std::string, std::string>>& names) {
  for (const auto& [name, to] : names) {
    const Op* their_op = ReaderOf(theirs, name);
    const Op* our_op = ReaderOf(ours, to);
    if (our_op == nullptr) continue;
    SKIFF_ENFORCE(their_op != nullptr && their_op->type == our_op->type, kInvalidArgument, folder,
                  ": parameter \"", name, "\": expected an op ", our_op->type, " that reads it");
    const auto check = [&](const char* attribute, const auto& expected, const auto& absent) {
      const auto found = their_op->Attr<std::decay_t<decltype(expected)>>(attribute, absent);
      SKIFF_ENFORCE(found == expected, kInvalidArgument, folder, ": the ", our_op->type,
                    " of parameter \"", name, "\" has another ", attribute,
                    " than the one of models/resnet");
    };
    using Numbers = std::vector<int32_t>;
    if (our_op->type == "conv2d") {
      check("strides", our_op->Attr<Numbers>("strides"), Numbers{1, 1});
      check("paddings", our_op->Attr<Numbers>("paddings"), Numbers{0, 0});
      check("dilations", our_op->Attr<Numbers>("dilations"), Numbers{1, 1});
      check("groups", our_op->Attr<int32_t>("groups"), int32_t{1});
    } else if (our_op->type == "batch_norm") {
      check("epsilon", our_op->Attr<float>("epsilon"), 1e-5f);
    }
  }
}

// --- The model ---

const std::vector<int64_t>& ShapeOf(const std::string& weights, const NamedShapes& shapes,
                                    const std::string& name, size_t rank) {
  const auto found = shapes.find(name);
  SKIFF_ENFORCE(found != shapes.end() && found->second.size() == rank, kInvalidArgument, weights,
                ": found no tensor of rank ", rank, " for parameter \"", name, "\"");
  return found->second;
}

struct Sizes {
  int64_t channels;
  int64_t classes;  // 0: no classifier
};

void Build(int32_t depth, const Sizes& shape, int64_t extent, EmptyModel* model) {
  const ProgramGuard guard(&model->main, &model->startup);
  const Variable image = layers::Data("image", {-1, shape.channels, extent, extent});
  model->feeds = {image.name()};
  const ResNetOptions options{.depth = depth, .classes = shape.classes, .stem = ResNetStem::kLarge};
  if (shape.classes == 0) {
    model->fetches = {ResNetVectors(image, options).name()};
    return;
  }
  const Variable logits = ResNet(image, options);
  model->fetches = {layers::Softmax(logits).name(), logits.name()};
}

}  // namespace

std::vector<NameRule> ResNetRules(ResNetSource from, int32_t depth) {
  if (from == ResNetSource::kPaddle) return PaddleRules(DepthOf(depth));
  return TorchRules(DepthOf(depth), from == ResNetSource::kHuggingFace);
}

std::string ConvertResNet(const ResNetConversion& conversion) {
  const ResNetSource from = conversion.from;
  const bool is_paddle = from == ResNetSource::kPaddle;
  const bool hugging_face = from == ResNetSource::kHuggingFace;
  const PretrainedFiles files =
      is_paddle ? FindPaddleModel(conversion.source) : FindSafetensors(conversion.source);
  std::vector<NameRule> plain = conversion.rename;
  if (hugging_face) plain.push_back({R"(resnet\.(.*))", "$1"});
  const NamedShapes named = RuledShapes(files.weights, plain);
  const int32_t depth = is_paddle ? DepthOfPaddle(files.folder, named)
                                  : DepthOfNames(files.weights, named, hugging_face);
  CheckConfig(files.folder, from, depth);
  const std::vector<NameRule> rules = InTurn(conversion.rename, ResNetRules(from, depth));
  const NamedShapes shapes = RuledShapes(files.weights, rules);
  const std::string head = StrCat(kResNetHead, ".w_0");
  const Sizes shape{
      .channels = ShapeOf(files.weights, shapes, "conv2d_0.w_0", 4)[1],
      .classes = shapes.contains(head) ? ShapeOf(files.weights, shapes, head, 2)[1] : 0};
  EmptyModel model;
  Build(depth, shape, conversion.extent, &model);
  if (is_paddle) {
    Scope scope;
    const InferenceModel theirs = LoadInferenceModel(files.folder, &scope);
    CheckOps(files.folder, *theirs.program, model.main, RuledPairs(files.weights, rules));
  }
  return StrCat(WriteConverted(files.weights, rules, conversion, model),
                "fine-tune: bazel-bin/models/resnet/train --depth=", depth,
                " --stem=large --initial_model=", conversion.output, "\n");
}

}  // namespace skiff::models
